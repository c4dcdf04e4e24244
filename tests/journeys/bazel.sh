# what: Bazel from outside with two lines: libraries, tests, a benchmark, sizes
# packages: bazel-bootstrap bazel-platforms cmake g++ make pkg-config
# kiln: deb
# expects: 7
awk -f /tools/blocks.awk /docs/first_model.md
awk -f /tools/blocks.awk /docs/install.md  # the WORKSPACE of two lines, and a BUILD
rm CMakeLists.txt
# Not kiln's: repositories that Debian's Bazel would fetch, which no machine without the network has.
for r in rules_cc rules_java remote_coverage_tools; do echo "build --override_repository=$r=/shims/$r"; done > .bazelrc
echo 'build --override_repository=platforms=/usr/share/bazel/platforms' >> .bazelrc
cp -r /examples/digits models
cat > models/BUILD <<'END'
load("@kiln//aot/bazel:defs.bzl", "kiln_benchmark", "kiln_library", "kiln_size_report", "kiln_test")

CXX17 = ["-std=c++17"]  # Bazel's default was C++11 before Bazel 7

kiln_library(name = "digits", module = "digits.mlir", cpu_levels = ["v2", "v3"])
kiln_library(name = "sum", module = "sum.mlir", batch_sizes = [1, 4])
kiln_library(name = "sum3", module = "sum.mlir", dim = 3)
kiln_library(name = "apart", module = "digits.mlir", config = "apart.config", weights_file = True)
kiln_test(name = "digits_test", module = "digits.mlir", cpu_levels = ["v2"], ulps = "64")
kiln_test(name = "sum_test", module = "sum.mlir", dim = 3)
kiln_benchmark(name = "digits_benchmark", library = ":digits")
kiln_size_report(name = "sizes", libraries = [":digits", ":sum", ":sum3"])
cc_binary(name = "app", srcs = ["digits_main.cc", "image.h"], copts = CXX17, deps = [":digits"])
cc_test(name = "two_test", srcs = ["two_test.cc"], copts = CXX17, deps = [":digits", ":sum"])
END
cat > models/sum.mlir <<'END'
func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.add %a, %a : tensor<?xf32>
  return %0 : tensor<?xf32>
}
END
echo 'weights { constants_from_bytes: 1000 }' > models/apart.config
cat > models/two_test.cc <<'END'
#include "digits.h"
#include "sum.h"
#include "sum_c.h"
int main() {
  sum::Context sums;
  float a[4] = {1, 2, 3, 4}, out[4];
  void *arguments[] = {a}, *results[] = {out};
  return sum_run(4, arguments, results, sums.arena(), nullptr) == KILN_OK && out[3] == 8 && digits::kArenaBytes > 0 ? 0 : 1;
}
END
flags="--noshow_progress --spawn_strategy=processwrapper-sandbox"
bazel build $flags //:all //models:all --output_groups=+sizes
bazel test $flags --test_output=errors //:all //models:all
test "$(bazel-bin/app)" = "1.499 1.996 -0.002"
bazel run $flags //models:digits_benchmark -- --json --runs 20 | grep '"name":"digits"'
test -s bazel-bin/models/apart.safetensors
grep '^mlp' bazel-bin/sizes.txt
grep '^sum3' bazel-bin/models/sizes.txt
grep '^digits' bazel-bin/models/digits.sizes.txt
bazel aquery $flags 'mnemonic("KilnCompile", //models:digits)' > actions
if grep -A9 "Command Line" actions | grep /usr/share/kiln; then echo "an absolute path in an action"; exit 1; fi
bazel-bin/models/app models/digit_7.pgm
