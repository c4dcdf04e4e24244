"""runtime_object: a C source compiled by clang to objects, plain, sanitized and with unwind tables, as C++ arrays."""

# The last for libraries that debuggers and profilers shall see through.
_VARIANTS = [
    ("Plain", ""),
    ("Address", "-fsanitize=address"),
    ("Thread", "-fsanitize=thread"),
    ("Unwound", "-fasynchronous-unwind-tables -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer"),
]

def runtime_object(name, src, symbol, deps = [], flags = ""):
    steps = ["(echo '#include \"codegen/kernels/runtime_objects.h\"'; echo 'namespace kiln {'; echo 'namespace {') > $@"]
    for variant, flag in _VARIANTS:
        steps += [
            "/usr/bin/clang-19 -std=c11 -O2 -march=x86-64 -ffreestanding -fPIC -ffp-contract=on -fno-math-errno -fno-builtin -fno-stack-protector " +
            "-fno-unwind-tables -fno-asynchronous-unwind-tables -fno-ident -fno-addrsig -ffunction-sections %s " % flags +
            "-Wall -Wno-incompatible-library-redeclaration -I. %s -c $(location %s) -o $@.o" % (flag, src),
            "echo 'const unsigned char k%s[] = {' >> $@" % variant,
            "od -An -v -tx1 $@.o | sed 's/ \\(..\\)/0x\\1,/g' >> $@",
            "echo '};' >> $@",
            "rm $@.o",
        ]
    steps.append("(echo '}  // namespace'; echo 'const EmbeddedObject %s[4] = {%s};'; echo '}  // namespace kiln') >> $@" %
                 (symbol, ", ".join(["{k%s, sizeof k%s}" % (v, v) for v, _ in _VARIANTS])))
    native.genrule(
        name = name,
        srcs = [src] + deps,
        outs = [name + ".cc"],
        cmd = " && ".join(steps),
    )
