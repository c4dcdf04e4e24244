"""C++ rules of kiln: those of rules_cc, with a prelude that every file begins with.

A prelude is a list of headers that are compiled once (a precompiled header). Without it, a file of the compiler spends
half of its compile time on reading them. A file still includes what it uses: a prelude is only a cache. Headers of
kiln belong into one only where a change to them recompiles all its users anyway.
"""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@rules_cc//cc:defs.bzl", _cc_binary = "cc_binary", _cc_library = "cc_library", _cc_test = "cc_test")

STANDARD_AND_ABSEIL = [
    "<algorithm>",
    "<array>",
    "<cmath>",
    "<cstdint>",
    "<cstdio>",
    "<cstdlib>",
    "<cstring>",
    "<functional>",
    "<map>",
    "<memory>",
    "<optional>",
    "<set>",
    "<string>",
    "<utility>",
    "<vector>",
    '"absl/container/flat_hash_map.h"',
    '"absl/container/flat_hash_set.h"',
    '"absl/status/status.h"',
    '"absl/status/statusor.h"',
    '"absl/strings/match.h"',
    '"absl/strings/str_cat.h"',
    '"absl/strings/str_join.h"',
    '"absl/strings/str_split.h"',
    '"absl/strings/string_view.h"',
]

# What nearly every file of the compiler reads.
GRAPH = STANDARD_AND_ABSEIL + ['"compiler/base/status.h"', '"compiler/hlo/instruction.h"']

def _prelude(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain, requested_features = ctx.features, unsupported_features = ctx.disabled_features)
    text = ctx.actions.declare_file(ctx.label.name + ".h")
    compiled = ctx.actions.declare_file(ctx.label.name + ".h.pch")
    ctx.actions.write(text, "".join(["#include %s\n" % i for i in ctx.attr.includes]))
    merged = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps])
    context = merged.compilation_context
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = text.path,
        output_file = compiled.path,
        use_pic = True,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + [
            "-x",
            "c++-header",
            "-fpch-instantiate-templates",
            # The compiled form holds no times of files, and their places relative to the sandbox that made it.
            "-Xclang",
            "-fno-pch-timestamp",
            "-relocatable-pch",
        ],
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
    )
    ctx.actions.run_shell(
        command = 'exec "$@" -isysroot "$PWD"',
        arguments = [cc_common.get_tool_for_action(feature_configuration = features, action_name = CPP_COMPILE_ACTION_NAME)] +
                    cc_common.get_memory_inefficient_command_line(feature_configuration = features, action_name = CPP_COMPILE_ACTION_NAME, variables = variables),
        env = cc_common.get_environment_variables(feature_configuration = features, action_name = CPP_COMPILE_ACTION_NAME, variables = variables),
        inputs = depset([text], transitive = [context.headers, toolchain.all_files]),
        outputs = [compiled],
        mnemonic = "PrecompileHeader",
        progress_message = "Precompiling %s" % text.short_path,
    )
    own = cc_common.create_compilation_context(headers = depset([text, compiled], transitive = [context.headers]))
    return [CcInfo(compilation_context = own)]

prelude = rule(
    implementation = _prelude,
    attrs = {
        "includes": attr.string_list(doc = "Headers, with their brackets or quotes."),
        "deps": attr.label_list(providers = [CcInfo]),
        "_cc_toolchain": attr.label(default = Label("@bazel_tools//tools/cpp:current_cc_toolchain")),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

# With -isysroot, the files of a relocatable precompiled header are looked for below the directory of the action.
def _with(prelude, attrs):
    path = "$(BINDIR)/" + prelude.replace("//", "").replace(":", "/") + ".h"
    return dict(attrs, copts = ["-isysroot", ".", "-include", path] + (attrs.get("copts") or []), deps = (attrs.get("deps") or []) + [prelude])

def cc_library(prelude = "//compiler/hlo:prelude", **attrs):
    if not attrs.get("srcs"):
        _cc_library(**attrs)
    else:
        _cc_library(**_with(prelude, attrs))

def cc_binary(prelude = "//compiler/hlo:prelude", **attrs):
    _cc_binary(**_with(prelude, attrs))

def cc_test(prelude = "//tests:prelude", **attrs):
    _cc_test(**_with(prelude, attrs))
