"""kiln_size_report: what libraries take, as one table.

    kiln_size_report(name = "sizes", libraries = [":mlp", ":decoder"])      # bazel-bin/sizes.txt
"""

load(":kiln_library.bzl", "KilnLibraryInfo")
load(":toolchain.bzl", "TOOLCHAIN_TYPE")

def _kiln_size_report_impl(ctx):
    report = ctx.actions.declare_file(ctx.label.name + ".txt")
    manifests = [library[KilnLibraryInfo].manifest for library in ctx.attr.libraries]
    ctx.actions.run(
        executable = ctx.toolchains[TOOLCHAIN_TYPE].kiln.compiler,
        arguments = ["sizes", "--out", report.path] + [m.path for m in manifests],
        inputs = manifests,
        outputs = [report],
        mnemonic = "KilnSizes",
    )
    return [DefaultInfo(files = depset([report]))]

kiln_size_report = rule(
    doc = "A text file with code, weights, arena and arrays of each library, in bytes.",
    implementation = _kiln_size_report_impl,
    attrs = {"libraries": attr.label_list(providers = [KilnLibraryInfo], mandatory = True)},
    toolchains = [TOOLCHAIN_TYPE],
    incompatible_use_toolchain_transition = True,
)
