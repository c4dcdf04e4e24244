# what: Bazel with the tar as an http_archive
# packages: bazel-bootstrap bazel-platforms cmake g++ make pkg-config
# kiln: tar
# expects: 7
cat > WORKSPACE <<END
load("@bazel_tools//tools/build_defs/repo:http.bzl", "http_archive")
http_archive(name = "kiln", url = "file:///kiln.tar.gz", sha256 = "$(sha256sum /kiln.tar.gz | cut -d' ' -f1)", strip_prefix = "$(basename "$KILN_HOME")/share/kiln/bazel")
register_toolchains("@kiln//:toolchain")
END
for r in rules_cc rules_java remote_coverage_tools; do echo "build --override_repository=$r=/shims/$r"; done > .bazelrc
echo 'build --override_repository=platforms=/usr/share/bazel/platforms' >> .bazelrc
rm -rf "$KILN_HOME"
cp /examples/digits/* .
cat > BUILD <<'END'
load("@kiln//aot/bazel:defs.bzl", "kiln_library")

kiln_library(name = "digits", module = "digits.mlir")
cc_binary(name = "app", srcs = ["digits_main.cc", "image.h"], copts = ["-std=c++17"], deps = [":digits"])
END
bazel build --noshow_progress --spawn_strategy=processwrapper-sandbox //:app
bazel-bin/app digit_7.pgm
