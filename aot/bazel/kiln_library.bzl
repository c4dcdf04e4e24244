"""kiln_library: an HLO or StableHLO module as a C++ library target.

    load("@kiln//aot/bazel:kiln_library.bzl", "kiln_library")

    kiln_library(name = "mlp", module = "mlp.mlir")
    cc_binary(name = "app", srcs = ["app.cc"], deps = [":mlp"])     # app.cc: #include "mlp.h"
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _kiln_library_impl(ctx):
    name = ctx.label.name
    lib = ctx.actions.declare_file("lib" + name + ".a")
    headers = [ctx.actions.declare_file(name + suffix) for suffix in [".h", "_c.h"]]
    manifest = ctx.actions.declare_file(name + ".manifest.json")
    texts = [ctx.actions.declare_file(name + ".hlo")] if ctx.attr.hlo else []
    args = ctx.actions.args()
    args.add("compile")
    args.add(ctx.file.module)
    args.add("--name", name)
    args.add("--out", lib.dirname)
    inputs = [ctx.file.module]
    if ctx.file.config:
        args.add("--config", ctx.file.config)
        inputs.append(ctx.file.config)
    for results in ctx.files.tuning:
        args.add("--tuning", results)
        inputs.append(results)
    for level in ctx.attr.cpu_levels:
        args.add("--target", level)
    ctx.actions.run(
        executable = ctx.executable._compiler,
        arguments = [args],
        inputs = inputs,
        outputs = [lib, manifest] + headers + texts,
        mnemonic = "KilnCompile",
        progress_message = "Compiling model %s" % ctx.file.module.short_path,
    )
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    library = cc_common.create_library_to_link(
        actions = ctx.actions,
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        static_library = lib,
        pic_static_library = lib,  # objects are always position independent
        alwayslink = False,
    )
    own = CcInfo(
        compilation_context = cc_common.create_compilation_context(
            headers = depset(headers),
            quote_includes = depset([lib.dirname]),
        ),
        linking_context = cc_common.create_linking_context(
            linker_inputs = depset([cc_common.create_linker_input(
                owner = ctx.label,
                libraries = depset([library]),
                user_link_flags = depset(["-lm", "-lpthread", "-ldl"]),
            )]),
        ),
    )
    return [
        DefaultInfo(
            files = depset([lib, manifest] + headers + texts),
            # For tests that have the library itself as data; programs that link it need nothing at run time.
            data_runfiles = ctx.runfiles(files = [lib, manifest] + headers + texts),
        ),
        cc_common.merge_cc_infos(direct_cc_infos = [own], cc_infos = [d[CcInfo] for d in ctx.attr.deps]),
    ]

kiln_library = rule(
    implementation = _kiln_library_impl,
    provides = [CcInfo],
    attrs = {
        "module": attr.label(allow_single_file = True, mandatory = True, doc = "HLO text or proto, or StableHLO text."),
        "config": attr.label(allow_single_file = True, doc = "kiln.config.Config as text proto."),
        "hlo": attr.bool(doc = "The config has line_tables: HLO, or profile: keep the optimised program, NAME.hlo."),
        "cpu_levels": attr.string_list(doc = "x86-64 levels in the archive: v2, v3, v4, amx, native. Default: the config's."),
        "tuning": attr.label_list(allow_files = True, doc = "What tuning programs wrote (kiln tune)."),
        "deps": attr.label_list(providers = [CcInfo], doc = "Libraries with the functions that custom calls name."),
        # The target configuration, so that the compiler is not built a second time for the host.
        "_compiler": attr.label(default = "//aot/tools:kiln", executable = True, cfg = "target"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    incompatible_use_toolchain_transition = True,
)
