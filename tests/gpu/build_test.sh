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
cat >"$out/first/main.cc" <<'EOF'
#include <cstdio>
#include <vector>

#include "m.h"

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
grep -q -e 'a GPU' -e 'there is no NVIDIA driver' -e 'finds no GPU' "$out/said"
# Without the CUDA Toolkit the archive holds PTX, and the compile says so.
env PATH=/nonexistent "$kiln" compile tests/gpu/pack/transpose_4096.hlo --name m --out "$out/ptx" --target sm_90 \
  >"$out/said" 2>&1 || true
if [ ! -x /usr/local/cuda/bin/ptxas ]; then grep -q 'no ptxas' "$out/said"; fi
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
# Errors name the GPUs that there are.
if "$kiln" compile tests/gpu/pack/transpose_4096.hlo --name m --out "$out/bad" --target sm_17 >"$out/said" 2>&1; then exit 1; fi
grep -q "GPU 'sm_17' is unknown; there are sm_75, sm_80" "$out/said"
echo "$count programs built for 7 GPUs"
