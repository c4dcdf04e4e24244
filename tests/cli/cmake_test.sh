#!/bin/sh
# A CMake user's project builds with KilnLibrary.cmake and answers.
set -eu
kiln=$(realpath "$1")
here=$(pwd)
cmake -DKILN_EXECUTABLE="$kiln" -S "$here/examples/cmake_consumer" -B build > log 2>&1 || { cat log; exit 1; }
cmake --build build > log 2>&1 || { cat log; exit 1; }
test "$(build/digits_main examples/digits/digit_7.pgm)" = 7
