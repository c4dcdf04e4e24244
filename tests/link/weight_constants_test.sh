#!/usr/bin/env bash
# Large constants in a file beside the archive: the same results, a smaller archive, other values found out; and what
# cannot be a weight is refused with its reason.
. tests/link/prepare.sh
kiln=$root/$1
{
  echo 'HloModule c'
  echo 'ENTRY e {'
  echo '  x = f32[8] parameter(0)'
  echo "  a = f32[64] constant({$(seq -s, 0 63)})"
  echo "  b = s8[64] constant({$(seq -s, 1 64)})"
  echo '  small = f32[8] constant({1,2,3,4,5,6,7,8})'
  echo '  s = f32[8] slice(a), slice={[8:16]}'
  echo '  t = s8[8] slice(b), slice={[0:8]}'
  echo '  f = f32[8] convert(t)'
  echo '  p = f32[8] add(s, f)'
  echo '  q = f32[8] multiply(p, small)'
  echo '  ROOT y = f32[8] add(q, x)'
  echo '}'
} > c.hlo
cat > main.cc << 'END'
#include <cstdio>
#include "c.h"
int main(int, char** argv) {
  c::Weights weights(argv[1]);
  if (!weights.ok()) return std::puts(weights.error()), 1;
  if (!weights.Verify()) return std::puts(weights.error()), 1;
  float x[8] = {}, y[8];
  c::Context context;
  if (!c::run(context, weights, x, y)) return 2;
  for (int k = 0; k < 8; ++k)
    if (y[k] != static_cast<float>((8 + k + k + 1) * (k + 1))) return 3;
  std::puts("ok");
}
END
echo 'weights { constants_from_bytes: 64 }' > c.config
"$kiln" compile c.hlo --name c --out out --config c.config > /dev/null
"$kiln" compile c.hlo --name c --out again --config c.config > /dev/null
cmp out/c.safetensors again/c.safetensors || fail "the file is not deterministic"
cmp out/libc.a again/libc.a || fail "the archive is not deterministic"
g++ -std=c++17 -Wall -Wextra -Werror -Iout main.cc out/libc.a -o main
[ "$(./main out/c.safetensors)" = ok ] || fail "other results"
# The last byte is one of the array of bytes, which comes behind that of floats.
printf 'x' | dd of=out/c.safetensors bs=1 seek=$(($(stat -c %s out/c.safetensors) - 1)) conv=notrunc 2> /dev/null
[ "$(./main out/c.safetensors)" = "constants.1: other values than the library was compiled with" ] ||
  fail "other values pass: $(./main out/c.safetensors)"
"$kiln" run c.hlo --config c.config --seed 1 > /dev/null || fail "kiln run takes the program's own arguments"

refused() {  # MODULE CONFIG MESSAGE
  echo "$2" > bad.config
  "$kiln" compile "$1" --name bad --out bad --config bad.config 2> err && fail "accepted: $2"
  grep -qF "$3" err || fail "$2: $(cat err)"
}
refused c.hlo 'weights { arguments: "y" }' "no argument's path or name matches 'y'"
refused c.hlo 'weights { arguments: "(" }' "bad.config:1:11: error: '(' is not a regular expression"
refused c.hlo 'weights { constants_from_bytes: -1 }' "bad.config:1:11: error: constants_from_bytes is negative"
sed 's/HloModule c/HloModule c, input_output_alias={ {}: (0, {}, may-alias) }/' c.hlo > donated.hlo
refused donated.hlo 'weights { arguments: "x" }' "argument x cannot come from a file: it is donated: runs write to it"
sed 's/x = f32\[8\] parameter(0)/z = s4[8] parameter(0)\n  x = f32[8] convert(z)/' c.hlo > s4.hlo
refused s4.hlo 'weights { arguments: "z" }' "it has type s4, which safetensors files do not have"
echo ok
