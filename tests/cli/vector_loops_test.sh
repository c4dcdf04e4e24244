#!/usr/bin/env bash
# Loops that work in place run in vectors, arrays with extents of 1 too: LLVM could not tell that iterations are apart.
set -euo pipefail
kiln=$PWD/$1
cd "$TEST_TMPDIR"
cat > m.hlo << 'END'
HloModule m
ENTRY e {
  x = f32[1,12,128,64] parameter(0)
  y = f32[1,12,128,64] parameter(1)
  m = f32[1,12,128] parameter(2)
  d = f32[1,12,128,128] dot(x, y), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={3}
  b = f32[1,12,128,128] broadcast(m), dimensions={0,1,2}
  s = f32[1,12,128,128] subtract(d, b)
  p = f32[1,12,128,128] exponential(s)
  z = f32[1,12,128,64] dot(p, y), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={2}
  ROOT r = f32[1,12,128,64] multiply(z, x)
}
END
mkdir dump
# What follows a product would join it: here it is a kernel of its own.
echo 'debug { dump_dir: "dump" disable_passes: "cpu-product-epilogue-fusion" }' > m.config
"$kiln" compile m.hlo --name m --out out --target v3 --config m.config > /dev/null
sed -n '/^define.*exponential/,/^}/p' dump/*.ir-with-opt.ll > kernel.ll
grep -q '<8 x float>' kernel.ll
! grep -q 'call float @llvm.fmuladd.f32' kernel.ll || { echo "FAILED: a scalar loop is left"; exit 1; }
