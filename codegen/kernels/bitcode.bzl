"""bitcode: C sources compiled by clang to LLVM bitcode, as a C++ array."""

def bitcode(name, src, symbol, deps = [], defines = ""):
    native.genrule(
        name = name,
        srcs = [src] + deps,
        outs = [name + ".cc"],
        cmd = " && ".join([
            "/usr/bin/clang-19 -std=c11 -O1 -ffreestanding -fPIC -ffp-contract=on -fno-math-errno -fno-builtin -fno-stack-protector -fno-ident " +
            "-Wall -Wno-incompatible-library-redeclaration -Wno-pass-failed -I. %s -emit-llvm -c $(location %s) -o $@.bc" % (defines, src),
            "echo '#include \"codegen/kernels/bitcode.h\"' > $@",
            "echo 'namespace kiln {' >> $@",
            "echo 'const unsigned char %s[] = {' >> $@" % symbol,
            "od -An -v -tx1 $@.bc | sed 's/ \\(..\\)/0x\\1,/g' >> $@",
            "echo '};' >> $@",
            "echo 'const size_t %sSize = sizeof(%s);' >> $@" % (symbol, symbol),
            "echo '}  // namespace kiln' >> $@",
            "rm $@.bc",
        ]),
    )
