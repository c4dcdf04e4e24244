# what: find_package(kiln), with a library, a test, a benchmark and a size report
# packages: cmake g++ make pkg-config
# kiln: deb
# expects: 7
# within: 120
cp -r /examples/cmake_consumer /examples/digits .
cmake -S cmake_consumer -B build -DCMAKE_BUILD_TYPE=Release
cmake --build build
(cd build && ctest --output-on-failure)
build/digits_benchmark --runs 20 --json | grep '"name":"digits"'
grep '^digits  *cpu' build/sizes.txt
touch digits/digits.mlir
cmake --build build | grep 'Compiling model digits'
build/digits_main digits/digit_7.pgm
