"""kiln_benchmark: a program that times a kiln_library on seeded inputs.

    kiln_benchmark(name = "mlp_benchmark", library = ":mlp")      # bazel run :mlp_benchmark -- --json --threads 4
"""

load(":kiln_library.bzl", "KilnLibraryInfo")
load(":toolchain.bzl", "TOOLCHAIN_TYPE")

def _benchmark_main_impl(ctx):
    main = ctx.actions.declare_file(ctx.label.name + ".c")
    manifest = ctx.attr.library[KilnLibraryInfo].manifest
    ctx.actions.run(
        executable = ctx.toolchains[TOOLCHAIN_TYPE].kiln.compiler,
        arguments = ["benchmark", manifest.path, "--out", main.path] +
                    (["--entry", ctx.attr.entry] if ctx.attr.entry else []),
        inputs = [manifest],
        outputs = [main],
        mnemonic = "KilnBenchmark",
    )
    return [DefaultInfo(files = depset([main]))]

_benchmark_main = rule(
    implementation = _benchmark_main_impl,
    attrs = {
        "library": attr.label(providers = [KilnLibraryInfo], mandatory = True),
        "entry": attr.string(doc = "Which to time, of a library with several."),
    },
    toolchains = [TOOLCHAIN_TYPE],
    incompatible_use_toolchain_transition = True,
)

def kiln_benchmark(name, library, entry = "", **kwargs):
    """A cc_binary that runs `library`, or an entry of it, with seeded inputs and prints times; --json, --runs N, --threads N."""
    _benchmark_main(
        name = name + "_main",
        library = library,
        entry = entry,
        tags = ["manual"],
        testonly = kwargs.get("testonly", False),
        visibility = ["//visibility:private"],
    )
    native.cc_binary(
        name = name,
        srcs = [name + "_main"],
        copts = ["-std=gnu11"],
        deps = [library],
        **kwargs
    )
