#!/bin/sh
# GPU programs built where there is no GPU: ptxas takes the code of every program for every target, the same bytes come
# out twice, and a program linked with one starts, says why there is no GPU, and computes on the CPU.
set -eu
kiln=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
targets="--target sm_75 --target sm_80 --target sm_86 --target sm_89 --target sm_90 --target sm_100 --target sm_120"
count=0
for f in tests/gpu/pack/*.hlo; do
  # shellcheck disable=SC2086
  "$kiln" compile "$f" --name m --out "$out" $targets >"$out/said" 2>&1 || { cat "$out/said"; exit 1; }
  if grep -q 'no ptxas' "$out/said"; then
    echo "ptxas is needed (./dev setup installs it)"
    exit 1
  fi
  count=$((count + 1))
done
for again in first second; do
  "$kiln" compile tests/gpu/pack/softmax_4096x1024.hlo --name m --out "$out/$again" --target cuda --target v3 >/dev/null
done
cmp "$out/first/libm.a" "$out/second/libm.a"
# Code for a GPU or a CPU level does not depend on which others the archive has, but for names, which have a fingerprint.
code_of() { ar p "$out/$1/libm.a" "$2" | LC_ALL=C sed 's/m_[0-9a-f]\{16\}_/m_/g'; }
same_code() {
  code_of "$1" "$3" >"$out/one"
  code_of "$2" "$3" >"$out/other"
  [ -s "$out/one" ]
  cmp "$out/one" "$out/other"
}
# Among them one whose CPU program alone has constants.
for f in conv_3x3_56x56x64 gemm_f32_1024 layer_norm_4096x768 scatter_add_1m running_sums_4096 loop_1000_steps; do
  for targets in sm_90 v3 'v3 --target sm_90' 'v3 --target v4'; do
    # shellcheck disable=SC2086
    "$kiln" compile "tests/gpu/pack/$f.hlo" --name m --out "$out/of $targets" --target $targets >/dev/null 2>&1
  done
  same_code 'of sm_90' 'of v3 --target sm_90' m_gpu.o
  same_code 'of v3' 'of v3 --target sm_90' m_v3.o
  same_code 'of v3' 'of v3 --target v4' m_v3.o
done
# Nor does PTX with calls, which LLVM would number, depend on what was compiled before.
cat >"$out/lu.hlo" <<'EOF'
HloModule m
ENTRY e {
  a = f32[4,4] parameter(0)
  ROOT f = (f32[4,4], s32[4], s32[]) custom-call(a), custom_call_target="lapack_sgetrf_ffi"
}
EOF
for targets in sm_90 'sm_80 --target sm_90'; do
  mkdir "$out/ptx $targets"
  echo "debug { dump_dir: \"$out/ptx $targets\" }" >"$out/dump.config"
  # shellcheck disable=SC2086
  "$kiln" compile "$out/lu.hlo" --name m --out "$out/lu" --config "$out/dump.config" --target $targets >/dev/null 2>&1
done
grep -q 'call.uni' "$out/ptx sm_90/m.sm_90.ptx"
cmp "$out/ptx sm_90/m.sm_90.ptx" "$out/ptx sm_80 --target sm_90/m.sm_90.ptx"
cat >"$out/first/main.cc" <<'EOF'
#include <cstdio>
#include <vector>

#include "m.h"

// Arrays on the device are plain pointers.
m::Status OnDevice(m::Gpu& gpu, const float* d_x, float* d_r) { return gpu.run_on_device(nullptr, d_x, d_r); }

int main() {
  std::vector<float> x(4096 * 1024, 1.f), r(x.size());
  m::Gpu gpu;
  std::printf("%s\n", gpu.ok() ? "a GPU" : gpu.error());
  m::Context context;
  const m::Status s = m::run_anywhere(gpu, context, m::Argument_x::Of(x.data(), x.size()),
                                      m::Result_result0::Of(r.data(), r.size()));
  std::printf("%s %.6f\n", s.text(), 1024 * static_cast<double>(r[5]));
}
EOF
c++ -std=c++17 -Wall -Wextra -Werror "$out/first/main.cc" -I"$out/first" "$out/first/libm.a" -o "$out/main"
"$out/main" >"$out/said"
cat "$out/said"
grep -q '^ok 1.000000$' "$out/said"
grep -q -e 'a GPU' -e 'there is no NVIDIA driver' -e 'the NVIDIA driver does not start' "$out/said"
# A program that is linked with a library for GPUs alone has everything of it that it needs, and nothing of cuBLASLt
# where it has no products.
cat >"$out/linked.hlo" <<'EOF'
HloModule m
ENTRY e {
  a = f32[64,1024] parameter(0)
  w = f32[4] constant({1,2,3,4})
  v = f32[4,256] broadcast(w), dimensions={0}
  u = f32[1024] reshape(v)
  b = f32[64,1024] broadcast(u), dimensions={1}
  c = f32[64,1024] add(a, b)
  ROOT d = f32[64,64] dot(c, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}
EOF
# Its folder has no other m.h.
mkdir "$out/linked"
cat >"$out/linked/main.cc" <<'EOF'
#include "m.h"

int main() {
  m::Gpu gpu, other(0, nullptr);
  return gpu.ok() == other.ok() && *gpu.report() && gpu.ok() == (*gpu.image() != 0) ? 0 : 1;
}
EOF
echo 'gpu { no_libraries: true }' >"$out/none.config"
echo 'gpu { fallback_kernels: false }' >"$out/library_only.config"
echo '' >"$out/both.config"
for config in both none library_only; do
  "$kiln" compile "$out/linked.hlo" --name m --out "$out/linked" --target sm_90 --config "$out/$config.config" >/dev/null 2>&1
  c++ -std=c++17 -Wall -Wextra -Werror "$out/linked/main.cc" "$out/linked/libm.a" -o "$out/linked/main"
  "$out/linked/main"
  nm "$out/linked/main" >"$out/symbols"
  grep -Eq ' m_[0-9a-f]{16}_weights$' "$out/symbols"
  if [ $config = none ]; then
    if grep -Eq ' m_[0-9a-f]{16}_gpu_gemm$' "$out/symbols"; then exit 1; fi
  else
    grep -Eq ' [Tt] m_[0-9a-f]{16}_gpu_gemm$' "$out/symbols"
  fi
  wc -c <"$out/linked/libm.a" >"$out/$config.size"
done
# A kernel for a product costs some tens of kilobytes.
more=$(($(cat "$out/both.size") - $(cat "$out/library_only.size")))
[ $more -gt 0 ]
[ $more -lt 60000 ]
# Several entries: a class for each, beside programs of the CPU and alone; C hosts have functions for each.
cat >"$out/lm.mlir" <<'EOF'
func.func public @prefill(%x: tensor<3x4xf32> loc("x")) -> (tensor<3x4xf32> {jax.result_info = "y"}) {
  %t = stablehlo.constant dense<[[0.0, -1.0, 2.0, -1.0], [1.0, -0.5, 0.0, 2.0], [-0.5, -2.0, -2.0, -2.0], [0.5, 2.0, 1.0, 2.0]]> : tensor<4x4xf32>
  %y = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
func.func public @decode(%x: tensor<4x4xf32> loc("x")) -> (tensor<4x4xf32> {jax.result_info = "y"}) {
  %t = stablehlo.constant dense<[[0.0, -1.0, 2.0, -1.0], [1.0, -0.5, 0.0, 2.0], [-0.5, -2.0, -2.0, -2.0], [0.5, 2.0, 1.0, 2.0]]> : tensor<4x4xf32>
  %y = stablehlo.multiply %x, %t : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
EOF
mkdir "$out/lm" "$out/lm_gpu"
cat >"$out/main.cc" <<'EOF'
#include <cstdio>

#include "lm.h"

int main() {
  lm::Context context;
  lm::prefill::Gpu prefill;
  lm::decode::Gpu decode;
  float x[3][4] = {{1}, {2}, {3}}, y[3][4], s[4][4] = {{1, 1, 1, 1}}, t[4][4];
  const bool ok = lm::prefill::run_anywhere(prefill, context, x, y) && lm::decode::run_anywhere(decode, context, s, t);
  static_assert(LM_GPU_ARENA_BYTES >= LM_PREFILL_GPU_ARENA_BYTES && LM_GPU_ARENA_BYTES >= LM_DECODE_GPU_ARENA_BYTES, "");
  std::printf("%d %g %g\n", ok, y[2][2], t[0][2]);
}
EOF
cat >"$out/main.c" <<'EOF'
#include <stdio.h>

#include "lm_c.h"

int main(void) {
  char error[1024] = "none";
  lm_decode_gpu* decode = NULL;
  lm_prefill_gpu* prefill = NULL;
  const int code = lm_decode_gpu_create(&decode, 0, LM_DECODE_GPU_OWN_STREAM, error, sizeof error);
  if (lm_prefill_gpu_create(&prefill, 0, LM_PREFILL_GPU_OWN_STREAM, error, sizeof error) != code) return 1;
  lm_decode_gpu_destroy(decode);
  lm_prefill_gpu_destroy(prefill);
  return code == LM_OK || code == LM_NO_DEVICE ? 0 : 1;
}
EOF
"$kiln" compile "$out/lm.mlir" --name lm --out "$out/lm" --target sm_90 --target v3 --entry prefill --entry decode \
  >"$out/said" 2>&1
grep -q '^lm (prefill, decode): ' "$out/said"
c++ -std=c++17 -Wall -Wextra -Werror "$out/main.cc" -I"$out/lm" "$out/lm/liblm.a" -o "$out/lm/main"
"$out/lm/main" | grep -qx '1 6 2'
"$kiln" compile "$out/lm.mlir" --name lm --out "$out/lm_gpu" --target sm_90 >/dev/null 2>&1
for folder in lm lm_gpu; do
  cc -std=c11 -Wall -Wextra -Werror "$out/main.c" -I"$out/$folder" "$out/$folder/liblm.a" -o "$out/lm/main_c"
  "$out/lm/main_c"
  echo '#include "lm.h"' | c++ -std=c++17 -Wall -Wextra -Werror -I"$out/$folder" -fsyntax-only -x c++ -
done
"$kiln" inspect "$out/lm_gpu/liblm.a" --entry decode | grep -q 'GPUs: sm_90'
# Without the CUDA Toolkit the archive holds PTX, and the compile says so.
env PATH=/nonexistent "$kiln" compile tests/gpu/pack/transpose_4096.hlo --name m --out "$out/ptx" --target sm_90 \
  >"$out/said" 2>&1 || true
if [ ! -x /usr/local/cuda/bin/ptxas ]; then grep -q 'no ptxas' "$out/said"; fi
# The runtime's own kernel, which the driver compiles.
cat >"$out/condition.c" <<'EOF'
#include <stdio.h>

#include "runtime_min/gpu/condition.h"

int main(void) { return fputs(kiln_condition_ptx, stdout) < 0; }
EOF
cc -I. "$out/condition.c" -o "$out/condition"
"$out/condition" >"$out/condition.ptx"
ptxas=$(command -v ptxas || echo /usr/local/cuda/bin/ptxas)
for target in sm_75 sm_90 sm_120; do "$ptxas" -arch="$target" "$out/condition.ptx" -o "$out/condition.cubin"; done
# What the kernels are meant to be made of: vector loads, shuffles, one kernel for a softmax.
cat >"$out/add.hlo" <<'EOF'
HloModule m
ENTRY e { x = f32[1024,1024] parameter(0) y = f32[1024,1024] parameter(1) ROOT a = f32[1024,1024] add(x, y) }
EOF
echo "debug { dump_dir: \"$out\" } gpu { targets: \"sm_90\" }" >"$out/dump.config"
"$kiln" compile "$out/add.hlo" --name add --out "$out" --config "$out/dump.config" >/dev/null
grep -q 'ld.global.nc.v4.f32' "$out/add.sm_90.ptx"
grep -q 'st.global.v4.f32' "$out/add.sm_90.ptx"
"$kiln" compile tests/gpu/pack/softmax_4096x1024.hlo --name soft --out "$out" --config "$out/dump.config" >/dev/null
[ "$(grep -c '.entry' "$out/soft.sm_90.ptx")" = 1 ]
grep -q 'shfl.sync.bfly.b32' "$out/soft.sm_90.ptx"
# Products of kiln's own run on tensor cores, with 16-byte loads, in registers that suffice.
echo "debug { dump_dir: \"$out\" } gpu { targets: \"sm_90\" no_libraries: true }" >"$out/own.config"
for model in gemm_bf16_1024 gemm_f16_1024 conv_3x3_56x56x64; do
  "$kiln" compile tests/gpu/pack/$model.hlo --name own --out "$out" --config "$out/own.config" >/dev/null 2>&1
  grep -q 'mma.sync.aligned.m16n8k16.row.col.f32' "$out/own.sm_90.ptx" || grep -q 'fma.rn' "$out/own.sm_90.ptx"
  grep -q 'ld.global.nc.v4.u32' "$out/own.sm_90.ptx"
done
"$kiln" compile tests/gpu/pack/gemm_bf16_1024.hlo --name own --out "$out" --config "$out/own.config" >/dev/null 2>&1
grep -q 'mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32' "$out/own.sm_90.ptx"
# A tuning program is built here, and on a machine without a GPU says so.
"$kiln" tune tests/gpu/pack/gemm_bf16_1024.hlo --name own --target sm_90 --config "$out/own.config" --out "$out/tuner" \
  >"$out/said"
grep -q '1 products and convolutions, 16 candidates' "$out/said"
"$out/tuner" --help | grep -q -e '--redzone-bytes'
if ! ldconfig -p | grep -q libcuda.so.1; then
  if "$out/tuner" >/dev/null 2>"$out/said"; then exit 1; fi
  grep -q 'there is no NVIDIA driver' "$out/said"
fi
echo 'gpu { targets: "sm_90" strict_tuning: true }' >"$out/strict.config"
if "$kiln" compile tests/gpu/pack/gemm_bf16_1024.hlo --name own --out "$out/bad" --config "$out/strict.config" \
  >"$out/said" 2>&1; then exit 1; fi
grep -q 'gemm_bf16_1024.hlo:[0-9]*:[0-9]*: error: .* has no tuning result for sm_90, and strict_tuning asks' "$out/said"
key=$(sed -n 's/.*its key is \([0-9a-f]*\).*/\1/p' "$out/said")
echo "devices { target: \"sm_90\" entries { key: \"$key\" candidates { algorithm: 3 microseconds: 1 } } }" >"$out/t.tuning"
"$kiln" compile tests/gpu/pack/gemm_bf16_1024.hlo --name own --out "$out" --config "$out/strict.config" \
  --tuning "$out/t.tuning" >/dev/null
grep -q '"untuned":\[\]' "$out/own.manifest.json"
echo 'devices { target: "sm_90" entry' >"$out/t.tuning"
if "$kiln" compile tests/gpu/pack/gemm_bf16_1024.hlo --name own --out "$out" --target sm_90 --tuning "$out/t.tuning" \
  >"$out/said" 2>&1; then exit 1; fi
grep -q 't.tuning:[0-9]*:[0-9]*: error: ' "$out/said"
# Errors name the GPUs that there are.
if "$kiln" compile tests/gpu/pack/transpose_4096.hlo --name m --out "$out/bad" --target sm_17 >"$out/said" 2>&1; then exit 1; fi
grep -q "GPU 'sm_17' is unknown; there are sm_75, sm_80" "$out/said"
echo "$count programs built for 7 GPUs"
