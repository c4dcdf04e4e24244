#!/bin/sh
# The package, unpacked in a folder: what it holds and needs, the same bytes again, and a user's projects with CMake and
# with pkg-config and a plain compiler, also after the folder is moved.
set -eu
tar=$(realpath "$1")
kiln=$2
fail() { echo "FAILED: $1"; exit 1; }
examples=$PWD/examples
version=$("$kiln" --version | awk 'NR == 1 { print $2 }')
grep -q "^module(name = \"kiln\", version = \"$version\")" MODULE.bazel || fail "MODULE.bazel has another version than kiln"

packaging/tar.sh "$kiln" again.tar.gz
cmp "$tar" again.tar.gz || fail "the same tree gives other bytes"
if tar -tvf "$tar" | grep -v ' 0/0 .* 2026-01-01 00:00 '; then fail "a file with an owner or a time"; fi

mkdir "first place" second
tar -xf "$tar" -C "first place"
name=kiln-$version-linux-x86_64
home="$PWD/first place/$name"
for f in bin/kiln lib/cmake/kiln/kiln-config.cmake lib/cmake/kiln/kiln-config-version.cmake lib/cmake/kiln/KilnLibrary.cmake \
  lib/pkgconfig/kiln.pc share/man/man1/kiln.1.gz share/doc/kiln/README.md share/doc/kiln/LICENSE share/doc/kiln/copyright \
  share/doc/kiln/NOTICE share/kiln/bazel/WORKSPACE share/kiln/bazel/MODULE.bazel share/kiln/bazel/aot/bazel/defs.bzl \
  share/kiln/config.proto share/bash-completion/completions/kiln; do
  [ -s "$home/$f" ] || fail "$f is missing"
done
if grep -rIl -e "$PWD" -e bazel-out -e /root/ -e /home/ "$home" | grep .; then fail "a path of this machine"; fi
if grep -rI '@[A-Z_]*@' "$home" --include='*.cmake' --include='*.pc' --include='*.bazel' --include=WORKSPACE; then
  fail "something is not filled in"
fi
[ "$("$home/bin/kiln" --version)" = "$("$kiln" --version)" ] || fail "another kiln"
readelf -d "$home/bin/kiln" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^lib(c|m|stdc\+\+|gcc_s)\.so\.|^ld-linux' &&
  fail "the tool needs another library"
newest=$(objdump -T "$home/bin/kiln" | grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -1)
depends=$(sed -n 's/^Depends:.*libc6 (>= \(2\.[0-9]*\)).*/\1/p' packaging/control.in)
[ "$(printf '%s\nGLIBC_%s\n' "$newest" "$depends" | sort -V | tail -1)" = "GLIBC_$depends" ] ||
  fail "the tool needs $newest, the package says $depends"

# CMake, in a folder with a space in its name.
cp -rL "$examples" project
cmake -S project/cmake_consumer -B build "-DCMAKE_PREFIX_PATH=$home" > log 2>&1 || { cat log; fail "cmake"; }
cmake --build build > log 2>&1 || { cat log; fail "cmake --build"; }
[ "$(build/digits_main project/digits/digit_7.pgm)" = 7 ] || fail "CMake's program answers something else"
(cd build && ctest --output-on-failure) > log 2>&1 || { cat log; fail "kiln_test"; }
build/digits_benchmark --json --runs 5 | grep -q '^{"name":"digits".*"runs":5,.*"median_us":[0-9.]*,' || fail "kiln_benchmark"
grep -q '^digits  *cpu ' build/sizes.txt || fail "kiln_size_report"
cmake -S project/cmake_consumer -B wrong "-DCMAKE_PREFIX_PATH=$home" -DKILN_EXECUTABLE=/nowhere/kiln > log 2>&1 && fail "a kiln that is not there"
tr '\n' ' ' < log | tr -s ' ' | grep -q 'there is no compiler at /nowhere/kiln' || { cat log; fail "why kiln is not found"; }
printf 'cmake_minimum_required(VERSION 3.16)\nproject(p NONE)\nfind_package(kiln 99.1)\nif(kiln_FOUND)\n message(FATAL_ERROR found)\nendif()\nfind_package(Kiln %s EXACT REQUIRED)\nkiln_library(m m.mlir LEVELZ v3)\n' "$version" > CMakeLists.txt
cmake -S . -B wrong_words "-DCMAKE_PREFIX_PATH=$home" > log 2>&1 && fail "an unknown argument"
grep -q 'kiln_library: unknown arguments: LEVELZ;v3' log || { cat log; fail "what is wrong with an argument"; }

# pkg-config and the compiler, after a move.
mv "$home" second/kiln
home=$PWD/second/kiln
export PKG_CONFIG_PATH="$home/lib/pkgconfig"
[ "$(pkg-config --modversion kiln)" = "$version" ] || fail "pkg-config --modversion"
"$(pkg-config --variable=kiln kiln)" compile project/digits/digits.mlir --name digits -o out > /dev/null
# shellcheck disable=SC2046  # words
g++ -std=c++17 -Iout project/digits/digits_main.cc out/libdigits.a $(pkg-config --libs kiln) -o app
[ "$(./app project/digits/digit_7.pgm)" = 7 ] || fail "the program answers something else"
if g++ -std=c++14 -Iout -fsyntax-only project/digits/digits_main.cc 2> log; then fail "C++14 accepted"; fi
grep -q 'digits.h needs C++17' log || fail "why C++14 is not enough"
echo "packages: ok"
