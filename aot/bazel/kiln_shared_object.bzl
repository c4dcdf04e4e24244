"""kiln_shared_object: compiled models as one shared object, for programs that load models (docs/c_api.md).

    load("@kiln//aot/bazel:defs.bzl", "kiln_library", "kiln_shared_object")

    kiln_library(name = "mlp", module = "mlp.mlir")
    kiln_shared_object(name = "models", models = [":mlp"])          # models.so
"""

load(":kiln_library.bzl", "KilnLibraryInfo")
load(":toolchain.bzl", "TOOLCHAIN_TYPE")

def _kiln_shared_object_impl(ctx):
    kiln = ctx.toolchains[TOOLCHAIN_TYPE].kiln
    out = ctx.actions.declare_file(ctx.label.name + ".so")
    archives = [m[KilnLibraryInfo].library for m in ctx.attr.models]
    args = ctx.actions.args()
    args.add("link")
    args.add_all(archives)
    args.add("--out", out)
    ctx.actions.run(
        executable = kiln.compiler,
        arguments = [args],
        inputs = archives,
        outputs = [out],
        mnemonic = "KilnLink",
        progress_message = "Linking models into %s" % out.short_path,
    )
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles(files = [out]))]

kiln_shared_object = rule(
    doc = "Models in one shared object, NAME.so, which shows the one symbol kiln_models.",
    implementation = _kiln_shared_object_impl,
    attrs = {
        "models": attr.label_list(providers = [KilnLibraryInfo], mandatory = True, doc = "Targets of kiln_library."),
    },
    toolchains = [TOOLCHAIN_TYPE],
    incompatible_use_toolchain_transition = True,
)
