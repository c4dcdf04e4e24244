#!/usr/bin/env bash
# Weights in the section for large data: programs run when it lies 12 GiB from the code, linked in every way, by both
# linkers. The threshold is lowered, and the linker told the distance, so that no large file is needed.
. tests/link/prepare.sh
kiln=$root/$1
cat > w.hlo << 'END'
HloModule w
ENTRY e {
  x = f32[8] parameter(0)
  n = s32[] parameter(1)
  c = f32[32] constant({0,1,4,9,16,25,36,49,64,81,100,121,144,169,196,225,256,289,324,361,400,441,484,529,576,625,676,729,784,841,900,961})
  part = f32[8] dynamic-slice(c, n), dynamic_slice_sizes={8}
  ROOT y = f32[8] add(x, part)
}
END
cat > main.cc << 'END'
#include "big.h"
int main() {
  float x[8] = {100, 100, 100, 100, 100, 100, 100, 100}, y[8];
  std::int32_t n[1] = {20};
  big::Context context;
  if (!big::run(context, x, n, y)) return 1;
  for (int k = 0; k < 8; ++k)
    if (y[k] != 100 + (20 + k) * (20 + k)) return 2;
  return 0;
}
END
echo 'debug { large_weights_bytes: 100 }' > large.config
"$kiln" compile w.hlo --name big --out small > /dev/null
"$kiln" compile w.hlo --name big --out large --config large.config > /dev/null
sections() { readelf -S -W "$1/libbig.a" 2> /dev/null | grep -Eo ' \.l?rodata ' | sort -u | tr -d ' \n'; }
case $(sections small) in *.lrodata*) fail "small weights lie among large data" ;; esac
case $(sections large) in *.lrodata*) ;; *) fail "large weights do not lie among large data" ;; esac
run() {  # DIR FLAGS...
  c++ -std=c++17 -O1 "-I$1" main.cc "$1/libbig.a" -lm -lpthread "${@:2}" -o w || fail "no link: $*"
  ./w || fail "wrong: $*"
}
for linker in bfd /usr/lib/llvm-19/bin/ld.lld; do
  case $linker in bfd) use=-fuse-ld=bfd ;; *) use="-fuse-ld=lld -B/usr/lib/llvm-19/bin" ;; esac
  for archive in small large; do
    for kind in -pie -no-pie -static -static-pie; do
      # shellcheck disable=SC2086
      run $archive $use $kind
    done
  done
done
run large -fuse-ld=bfd -no-pie -Wl,--section-start=.lrodata=0x300000000
address=$((0x$(nm w | awk '$3 ~ /_weights$/ {print $1}')))
[ $address -ge $((0x300000000)) ] || fail "the weights are not where the test needs them"
if c++ -std=c++17 -Ismall main.cc small/libbig.a -fuse-ld=bfd -no-pie -Wl,--section-start=.rodata=0x300000000 -o w 2> /dev/null; then
  fail "code that reaches only 2 GiB linked across 12"
fi
echo "large weights: ok"
