"""kiln_library: an HLO or StableHLO module as a C++ library target.

    load("@kiln//aot/bazel:defs.bzl", "kiln_library")

    kiln_library(name = "mlp", module = "mlp.mlir")
    cc_binary(name = "app", srcs = ["app.cc"], deps = [":mlp"])     # app.cc: #include "mlp.h"

    # Several functions in one library, which share weights and memory (docs/entries.md).
    kiln_library(name = "lm", entries = {"prefill": "prefill.mlir", "decode": "decode.mlir"})
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load(":toolchain.bzl", "TOOLCHAIN_TYPE")

KilnLibraryInfo = provider(
    doc = "A compiled module.",
    fields = {
        "name": "What the library, its namespace and its functions are called.",
        "manifest": "NAME.manifest.json.",
        "library": "libNAME.a.",
    },
)

def _compile(ctx, kiln, lib, others):
    args = ctx.actions.args()
    args.add("compile")
    modules = [ctx.file.module] if ctx.file.module else ctx.files.entries
    if ctx.file.module:
        args.add(ctx.file.module)
    elif not modules:
        fail("kiln_library: neither module nor entries are given")
    for label, name in ctx.attr.entries.items():
        if ctx.file.module:
            fail("kiln_library: entries have modules of their own, and module is given too")
        args.add(label.files.to_list()[0], format = "--entry=" + name + "=%s")
    args.add("--name", ctx.label.name)
    args.add("--out", lib.dirname)
    if ctx.file.config:
        args.add("--config", ctx.file.config)
    args.add_all(ctx.files.tuning, before_each = "--tuning")
    args.add_all(ctx.attr.cpu_levels + ctx.attr.gpu_targets, before_each = "--target")
    args.add_all(ctx.attr.batch_sizes, before_each = "--batch")
    if ctx.attr.dim >= 0:
        args.add("--dim", str(ctx.attr.dim))
    if ctx.attr.entry:
        args.add("--entry", ctx.attr.entry)
    args.add_all(ctx.attr.functions, before_each = "--entry")
    ctx.actions.run(
        executable = kiln.compiler,
        arguments = [args],
        inputs = modules + ctx.files.config + ctx.files.tuning,
        outputs = [lib] + others,
        # ptxas, which machine code for GPUs needs, is found by PATH.
        use_default_shell_env = bool(ctx.attr.gpu_targets),
        mnemonic = "KilnCompile",
        progress_message = "Compiling model %s" % " ".join([m.short_path for m in modules]),
    )

def _sizes(ctx, kiln, manifest):
    report = ctx.actions.declare_file(ctx.label.name + ".sizes.txt")
    ctx.actions.run(
        executable = kiln.compiler,
        arguments = ["sizes", manifest.path, "--out", report.path],
        inputs = [manifest],
        outputs = [report],
        mnemonic = "KilnSizes",
    )
    return report

def _linking_context(ctx, lib):
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
    return cc_common.create_linking_context(
        linker_inputs = depset([cc_common.create_linker_input(
            owner = ctx.label,
            libraries = depset([library]),
            user_link_flags = depset(["-lm", "-lpthread", "-ldl"]),
        )]),
    )

def _kiln_library_impl(ctx):
    kiln = ctx.toolchains[TOOLCHAIN_TYPE].kiln
    name = ctx.label.name
    lib = ctx.actions.declare_file("lib" + name + ".a")
    headers = [ctx.actions.declare_file(name + suffix) for suffix in [".h", "_c.h"]]
    manifest = ctx.actions.declare_file(name + ".manifest.json")
    weights = [ctx.actions.declare_file(name + ".safetensors")] if ctx.attr.weights_file else []
    texts = [ctx.actions.declare_file(name + ".hlo")] if ctx.attr.hlo else []
    _compile(ctx, kiln, lib, headers + [manifest] + weights + texts)
    own = CcInfo(
        compilation_context = cc_common.create_compilation_context(
            headers = depset(headers),
            quote_includes = depset([lib.dirname]),
        ),
        linking_context = _linking_context(ctx, lib),
    )
    return [
        DefaultInfo(
            files = depset([lib, manifest] + headers + weights + texts),
            # What programs that link the library open at run time, and what tests find that have the library as data.
            default_runfiles = ctx.runfiles(files = weights),
            data_runfiles = ctx.runfiles(files = [lib, manifest] + headers + weights + texts),
        ),
        OutputGroupInfo(sizes = depset([_sizes(ctx, kiln, manifest)])),
        KilnLibraryInfo(name = name, manifest = manifest, library = lib),
        cc_common.merge_cc_infos(direct_cc_infos = [own], cc_infos = [d[CcInfo] for d in ctx.attr.deps]),
    ]

_kiln_library = rule(
    doc = "A module as a C and C++ library. Output group `sizes`: what it takes, as text.",
    implementation = _kiln_library_impl,
    provides = [CcInfo, KilnLibraryInfo],
    attrs = {
        "module": attr.label(allow_single_file = True, doc = "HLO text or proto, StableHLO text or bytecode. Of several public functions, each becomes an entry."),
        "entries": attr.label_keyed_string_dict(allow_files = True, doc = "In place of module: a module for each entry of the library."),
        "config": attr.label(allow_single_file = True, doc = "kiln.config.Config as text proto."),
        "hlo": attr.bool(doc = "The config has line_tables: HLO, or profile: keep the optimised program, NAME.hlo."),
        "cpu_levels": attr.string_list(doc = "x86-64 levels in the archive: v2, v3, v3dot, v4, v4dot, v4fp16, v4bf16, amx, native. Default: the config's."),
        "gpu_targets": attr.string_list(doc = "NVIDIA GPUs in the archive: sm_90, ..., or cuda. Without cpu_levels, the GPU program alone."),
        "batch_sizes": attr.int_list(doc = "Variants for these sizes of the unbounded dimension, beside the config's."),
        "dim": attr.int(default = -1, doc = "The extent of every unbounded dimension; -1: the module has none."),
        "entry": attr.string(doc = "The only function to compile, where several are public."),
        "functions": attr.string_list(doc = "The functions to compile as entries, where several are public. Default: all."),
        "weights_file": attr.bool(doc = "The config keeps constants out of the archive (weights { constants_from_bytes }): NAME.safetensors is made too, and is where programs run."),
        "tuning": attr.label_list(allow_files = True, doc = "What tuning programs wrote (kiln tune)."),
        "deps": attr.label_list(providers = [CcInfo], doc = "Libraries with the functions that custom calls name."),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type", TOOLCHAIN_TYPE],
    incompatible_use_toolchain_transition = True,
)

def kiln_library(name, entries = {}, **kwargs):
    """A module, or several, as a C and C++ library.

    Args:
      name: what the library, its header and its class are called.
      entries: in place of `module`: a module for each entry, by its name.
      **kwargs: the attributes above.
    """
    modules = {}
    for entry, module in entries.items():
        if module in modules:
            fail("kiln_library %s: %s is given twice; module with functions takes several entries of one file" % (name, module))
        modules[module] = entry
    _kiln_library(name = name, entries = modules, **kwargs)
