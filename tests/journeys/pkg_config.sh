# what: flags and the compiler's place from pkg-config, before and after the package is moved
# packages: cmake g++ make pkg-config
# kiln: tar
# expects: 7
build() {
  export PKG_CONFIG_PATH="$1/lib/pkgconfig"
  pkg-config --exists 'kiln >= 0.1'
  "$(pkg-config --variable=kiln kiln)" compile /examples/digits/digits.mlir --name digits -o "$2"
  g++ -std=c++17 "-I$2" $(pkg-config --cflags kiln) /examples/digits/digits_main.cc "$2/libdigits.a" $(pkg-config --libs kiln) -o "$2/app"
}
build "$KILN_HOME" first
mv "$KILN_HOME" "/srv/a place"
mv "/srv/a place" /srv/kiln
build /srv/kiln second
cmp first/libdigits.a second/libdigits.a
second/app /examples/digits/digit_7.pgm
