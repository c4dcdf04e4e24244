"""The kiln compiler as a toolchain: the rules take the one that is registered, prebuilt or built from source.

A prebuilt one is in kiln's package, as @kiln//:toolchain; @kiln//aot/bazel:source_toolchain builds it.
"""

# A label of the repository that this file is in, whatever its name is where it is used.
TOOLCHAIN_TYPE = str(Label("//aot/bazel:toolchain_type"))

KilnToolchainInfo = provider(
    doc = "What a rule needs to run kiln.",
    fields = {"compiler": "FilesToRunProvider of the kiln command."},
)

def _kiln_toolchain_impl(ctx):
    info = KilnToolchainInfo(compiler = ctx.attr.compiler[DefaultInfo].files_to_run)
    return [
        platform_common.ToolchainInfo(kiln = info),
        DefaultInfo(files = ctx.attr.compiler[DefaultInfo].files, runfiles = ctx.attr.compiler[DefaultInfo].default_runfiles),
    ]

kiln_toolchain = rule(
    implementation = _kiln_toolchain_impl,
    attrs = {
        # A file is the same in every configuration. What is built from source is not built a second time for the host:
        # kiln writes code for the machine that it runs on anyway.
        "compiler": attr.label(mandatory = True, executable = True, allow_files = True, cfg = "target", doc = "The kiln command."),
    },
)
