"""The repositories of the WORKSPACE file for projects with MODULE.bazel (Bazel 7 and newer)."""

load("@bazel_tools//tools/build_defs/repo:local.bzl", "new_local_repository")
load(":llvm_configure.bzl", "llvm_configure")

def _system_impl(_):
    llvm_configure(name = "llvm", version = "19")

    # Headers live in /usr/include, a built-in directory of the compiler; `path` just has to be a small existing one.
    new_local_repository(name = "com_google_absl", path = "/usr/include/absl", build_file = Label("//third_party:absl.BUILD"))
    new_local_repository(name = "com_google_googletest", path = "/usr/include/gtest", build_file = Label("//third_party:gtest.BUILD"))
    new_local_repository(name = "com_github_google_benchmark", path = "/usr/include/benchmark", build_file = Label("//third_party:benchmark.BUILD"))
    new_local_repository(name = "com_google_protobuf", path = "/usr/include/google/protobuf", build_file = Label("//third_party:protobuf.BUILD"))

system = module_extension(implementation = _system_impl)
