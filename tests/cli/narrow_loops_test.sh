#!/usr/bin/env bash
# Loops over narrow elements: neighbours are loaded, not put together from what the element before read, truths are
# added up without masks, and short tables lie in registers.
set -euo pipefail
kiln=$PWD/$1
cd "$TEST_TMPDIR"
cat > box.hlo << 'END'
HloModule box
ENTRY e {
  x = f16[64,1026] parameter(0)
  a = f16[64,1024] slice(x), slice={[0:64], [0:1024]}
  b = f16[64,1024] slice(x), slice={[0:64], [1:1025]}
  c = f16[64,1024] slice(x), slice={[0:64], [2:1026]}
  s = f16[64,1024] add(a, b)
  ROOT r = f16[64,1024] add(s, c)
}
END
cat > life.hlo << 'END'
HloModule life
ENTRY e {
  p = pred[65,405] parameter(0)
  x = s8[65,405] convert(p)
  a = s8[64,403] slice(x), slice={[0:64], [0:403]}
  b = s8[64,403] slice(x), slice={[0:64], [1:404]}
  c = s8[64,403] slice(x), slice={[0:64], [2:405]}
  d = s8[64,403] slice(x), slice={[1:65], [0:403]}
  f = s8[64,403] slice(x), slice={[1:65], [1:404]}
  g = s8[64,403] slice(x), slice={[1:65], [2:405]}
  ab = s8[64,403] add(a, b)
  cd = s8[64,403] add(c, d)
  fg = s8[64,403] add(f, g)
  abcd = s8[64,403] add(ab, cd)
  ROOT r = s8[64,403] add(abcd, fg)
}
END
cat > table.hlo << 'END'
HloModule table
ENTRY e {
  t = u8[256] parameter(0)
  i = u8[40000,1] parameter(1)
  ROOT r = u8[40000] gather(t, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
}
END
# The optimised code of a program, for AVX-512.
code() {
  mkdir -p "$1"
  echo "debug { dump_dir: \"$1\" }" > "$1.config"
  "$kiln" compile "$1.hlo" --name "$1" --out out --target v4 --config "$1.config" > /dev/null
  cat "$1"/*.ir-with-opt.ll
}
fail() { echo "FAILED: $1"; exit 1; }
code box > box.ll
grep -q '<16 x half>' box.ll || fail "no vectors of halves"
! grep -q 'shufflevector <16 x half>' box.ll || fail "neighbours are put together by shuffles"
code life > life.ll
grep -q 'umin.v64i8' life.ll || fail "truths are not the lesser of a byte and 1"
! grep -q 'shufflevector <64 x i8>' life.ll || fail "neighbours are put together by shuffles"
code table > table.ll
grep -q 'vpermi2var.d.512' table.ll || fail "a short table of bytes is not in registers"
