#!/bin/sh
# Lays out what a package of kiln holds: stage.sh KILN FOLDER, in the root of the source tree.
#
# The result is the same for every package; deb.sh and tar.sh add what belongs to one format. Nothing in it depends on the
# folder that it is installed in: every file finds the others by its own place.
set -eu
kiln=$1
to=$2
version=$("$kiln" --version | awk 'NR == 1 { print $2 }')

put() {  # put MODE FILE FOLDER
  mkdir -p "$to/$3"
  install -m "$1" "$2" "$to/$3/"
}
fill() {  # fill FILE NEW_FILE: with the version in place of @VERSION@
  mkdir -p "$(dirname "$to/$2")"
  sed "s/@VERSION@/$version/g" "$1" > "$to/$2"
}

mkdir -p "$to/bin"
strip --strip-all -o "$to/bin/kiln" "$kiln"
chmod 755 "$to/bin/kiln"

for header in kiln.h kiln_host.h types.h; do put 644 "runtime_min/$header" include/kiln; done
put 644 aot/cmake/KilnLibrary.cmake lib/cmake/kiln
put 644 packaging/kiln-config.cmake lib/cmake/kiln
fill packaging/kiln-config-version.cmake.in lib/cmake/kiln/kiln-config-version.cmake
fill packaging/kiln.pc.in lib/pkgconfig/kiln.pc

mkdir -p "$to/share/man/man1" "$to/share/bash-completion/completions"
"$kiln" help --man | gzip -9n > "$to/share/man/man1/kiln.1.gz"
"$kiln" help --bash > "$to/share/bash-completion/completions/kiln"

put 644 aot/config.proto share/kiln
doc=share/doc/kiln
put 644 README.md "$doc"
put 644 NOTICE "$doc"
put 644 docs/install.md "$doc"
put 644 packaging/copyright "$doc"
gzip -9n < CHANGELOG.md > "$to/$doc/CHANGELOG.md.gz"
# The licences of what is linked into the tool, as the packages state them that it was linked from.
mkdir -p "$to/$doc/third_party"
for library in libabsl-dev libprotobuf-dev libzstd-dev llvm-19-dev zlib1g-dev; do
  install -m 644 "/usr/share/doc/$library/copyright" "$to/$doc/third_party/$library.txt"
done

# A Bazel workspace with the rules under the labels that they have in the source tree; the package adds its bin/kiln.
bazel=share/kiln/bazel
mkdir -p "$to/$bazel/bin"
fill packaging/bazel/WORKSPACE.in "$bazel/WORKSPACE"
fill packaging/bazel/MODULE.in "$bazel/MODULE.bazel"
fill packaging/bazel/root.BUILD "$bazel/BUILD.bazel"
fill packaging/bazel/aot_bazel.BUILD "$bazel/aot/bazel/BUILD.bazel"
fill packaging/bazel/aot_lapack.BUILD "$bazel/aot/lapack/BUILD.bazel"
fill packaging/bazel/runtime_min.BUILD "$bazel/runtime_min/BUILD.bazel"
for header in kiln.h kiln_host.h types.h; do put 644 "runtime_min/$header" "$bazel/runtime_min"; done
for rule in aot/bazel/*.bzl; do put 644 "$rule" "$bazel/aot/bazel"; done
put 644 aot/lapack/lapack_ffi.c "$bazel/aot/lapack"
