"""All rules of kiln."""

load(":kiln_benchmark.bzl", _kiln_benchmark = "kiln_benchmark")
load(":kiln_library.bzl", _KilnLibraryInfo = "KilnLibraryInfo", _kiln_library = "kiln_library")
load(":kiln_shared_object.bzl", _kiln_shared_object = "kiln_shared_object")
load(":kiln_size_report.bzl", _kiln_size_report = "kiln_size_report")
load(":kiln_test.bzl", _kiln_test = "kiln_test")
load(":toolchain.bzl", _kiln_toolchain = "kiln_toolchain")

kiln_benchmark = _kiln_benchmark
kiln_library = _kiln_library
kiln_shared_object = _kiln_shared_object
kiln_size_report = _kiln_size_report
kiln_test = _kiln_test
kiln_toolchain = _kiln_toolchain
KilnLibraryInfo = _KilnLibraryInfo
