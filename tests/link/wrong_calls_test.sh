#!/usr/bin/env bash
# Calls that cannot be right do not compile, and the compiler's message says what is wrong.
. tests/link/prepare.sh
kiln=$root/$1
cat > m.hlo << 'END'
HloModule m, entry_computation_layout={(f32[4,10]{1,0}, bf16[10,3]{1,0}, s32[4]{0}, c64[2]{0}, pred[]) -> (f32[4,3]{1,0}, s32[4]{0})}, input_output_alias={ {1}: (2, {}, may-alias) }
ENTRY e {
  x = f32[4,10] parameter(0), metadata={op_name="x"}
  w = bf16[10,3] parameter(1), metadata={op_name="params['w']"}
  n = s32[4] parameter(2), metadata={op_name="counts"}
  z = c64[2] parameter(3), metadata={op_name="z"}
  p = pred[] parameter(4), metadata={op_name="flag"}
  wf = f32[10,3] convert(w)
  wa = f32[10,3] abs(wf)
  d = f32[4,3] dot(x, wa), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  m = s32[4] negate(n)
  ROOT t = (f32[4,3], s32[4]) tuple(d, m)
}
END
"$kiln" compile m.hlo --name m --out . --target v3 --target sm_90 > /dev/null 2>&1
# `right` declares what is right; each case puts a statement behind it.
right='#include <array>
#include <complex>
#include <memory>
#include <vector>
#include "m.h"
void f() {
  m::Context context;
  float x[4][10] = {}, y[4][3];
  std::vector<kiln::bf16> w(30);
  std::array<int32_t, 4> n = {};
  std::complex<float> z[2];
  const bool flag = true;
  (void)x, (void)y, (void)n, (void)z, (void)flag;
'
try() {  # STATEMENT MESSAGE
  printf '%s  %s\n}\n' "$right" "$1" > case.cc
  for cc in g++ clang++-19; do
    if $cc -std=c++17 -Wall -Wextra -Werror -fsyntax-only case.cc 2> err; then
      [ -z "$2" ] || fail "$cc accepts: $1"
    else
      [ -n "$2" ] || fail "$cc refuses: $1: $(head -5 err)"
      grep -qF "$2" err || fail "$cc, $1: $(head -5 err)"
    fi
  done
}
try 'm::run(context, x, w, n, z, flag, y);' ''
try 'm::Arguments a; a.params.w = w; a.x = x; a.counts = n; a.z = z; a.flag = flag; m::run(context, a, {y});' ''
try 'float t[10][4]; m::run(context, t, w, n, z, flag, y);' "kiln: this array has other extents than the model's"
try 'float t[39]; m::run(context, t, w, n, z, flag, y);' "kiln: this array has other extents than the model's"
try 'double t[4][10]; m::run(context, t, w, n, z, flag, y);' "kiln: this array's elements have another type than the model's"
try 'std::vector<uint16_t> t(30); m::run(context, x, t, n, z, flag, y);' "kiln: this array's elements have another type than the model's"
try 'std::vector<kiln::f16> t(30); m::run(context, x, t, n, z, flag, y);' "kiln: this array's elements have another type than the model's"
try 'const float t[4][3] = {}; m::run(context, x, w, n, z, flag, t);' 'kiln: the model writes to this array, which is const'
try 'const std::array<int32_t, 4> t = {}; m::run(context, x, w, t, z, flag, y);' 'kiln: the model writes to this array, which is const'
try 'm::run(context, &x[0][0], w, n, z, flag, y);' 'kiln: a pointer does not say how many elements it has; use Of(pointer, count)'
try 'm::run(context, nullptr, w, n, z, flag, y);' 'kiln: a pointer does not say how many elements it has; use Of(pointer, count)'
try 'm::run(context, x, w, n, z, 1, y);' "kiln: this array's elements have another type than the model's"
try 'std::unique_ptr<float[]> t(new float[40]); m::run(context, t, w, n, z, flag, y);' 'kiln: this is no array of contiguous elements'
try 'std::vector<std::vector<float>> t; m::run(context, t, w, n, z, flag, y);' "kiln: this array's elements have another type than the model's"
try 'm::Result_result0::Owned r; r(1, 2) = r(1);' 'kiln: an element has one index for each dimension'
try 'm::run(context, x, w, n, z, y);' 'no matching function for call'
try 'char small[1]; m::Context c(small);' 'this array is smaller than the arena'
try 'm::Context a, b; b = a;' 'deleted'
try 'm::Arguments a; a.params.v = w;' 'no member named'
# Arrays on the device. Every way that is right, then calls that are not.
right='#include <type_traits>
#include "m.h"
using kiln::DeviceArray;
static_assert(std::is_same<m::Gpu::DeviceArgument_x, DeviceArray<const float, 4, 10>>::value, "");
static_assert(!std::is_convertible<float*, m::Gpu::DeviceArgument_x>::value, "");
static_assert(!std::is_convertible<m::Argument_x, m::Gpu::DeviceArgument_x>::value, "");
static_assert(!std::is_convertible<unsigned long long, m::Gpu::DeviceArgument_x>::value, "");
void f(m::Gpu& gpu, void* memory, float* p, unsigned long long number) {
  DeviceArray<const float, 4, 10> x(p);
  DeviceArray<kiln::bf16, 10, 3> w(memory);
  DeviceArray<std::int32_t, 4> n(number);
  DeviceArray<std::complex<float>, 2> z(number);
  const DeviceArray<bool> flag(memory);
  auto y = gpu.allocate<m::Gpu::DeviceResult_result0>();
  float host[4][3] = {};
  (void)x, (void)w, (void)n, (void)z, (void)flag, (void)y, (void)host;
'
try 'gpu.run_on_device(nullptr, x, w, n, z, flag, y); gpu.release(y);' ''
try 'gpu.run_on_device(memory, p, w.pointer(), n.pointer(), z.pointer(), flag.pointer(), p);' ''
try 'gpu.upload(y, host); gpu.download(host, y); gpu.upload(memory, host, 4); gpu.download(host, x.pointer(), 4);' ''
try 'm::Argument_x::Owned mine; DeviceArray<float, 4, 10> t(number); gpu.upload(t, mine); gpu.download(mine, x);' ''
try 'DeviceArray<float, 10, 4> t(p); gpu.run_on_device(nullptr, t, w, n, z, flag, y);' "kiln: this array has other extents than the model's"
try 'DeviceArray<float, 40> t(p); gpu.run_on_device(nullptr, t, w, n, z, flag, y);' "kiln: this array has other extents than the model's"
try 'DeviceArray<double, 4, 10> t(memory); gpu.run_on_device(nullptr, t, w, n, z, flag, y);' "kiln: this array's elements have another type than the model's"
try 'DeviceArray<const float, 4, 3> t(p); gpu.run_on_device(nullptr, x, w, n, z, flag, t);' 'kiln: the model writes to this array, which is const'
try 'DeviceArray<double, 4, 10> t(p);' "kiln: this array's elements have another type than the model's"
try 'const float* c = p; DeviceArray<float, 4, 10> t(c);' 'kiln: the model writes to this array, which is const'
try 'const void* c = memory; DeviceArray<float, 4, 10> t(c);' 'kiln: the model writes to this array, which is const'
try 'const void* c = memory; m::Gpu::DeviceArgument_x t(c); gpu.run_on_device(c ? memory : nullptr, t, w, n, z, flag, y);' ''
try 'float t[4][10] = {}; gpu.run_on_device(nullptr, t, w, n, z, flag, y);' 'no matching'
try 'float t[4][10] = {}; DeviceArray<float, 4, 10> d(t);' 'kiln: this is no address on the device'
try 'float t[40] = {}; DeviceArray<float, 4, 10> d(t);' 'kiln: this is no address on the device'
try 'm::Argument_x::Owned t; DeviceArray<float, 4, 10> d(t);' 'kiln: this is no address on the device'
try 'DeviceArray<float, 4, 10> d(1);' 'kiln: this is no address on the device'
try 'm::Context context; m::run_anywhere(gpu, context, x, w, n, z, flag, y);' 'kiln: this is no array of contiguous elements'
try 'gpu.upload(x, host);' "kiln: this array has other extents than the model's"
try 'float t[3][4] = {}; gpu.upload(y, t);' "kiln: this array has other extents than the model's"
try 'gpu.upload(y, p);' 'kiln: a pointer does not say how many elements it has'
try 'const float t[4][3] = {}; gpu.download(t, y);' 'kiln: the model writes to this array, which is const'
echo ok
