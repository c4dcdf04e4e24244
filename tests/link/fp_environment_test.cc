// The floating-point environment of a run is the model's on every thread, whatever the caller's is, and the caller's
// comes back: rounding, traps, subnormals and exception flags, of SSE and of x87, on errors too.
#include <xmmintrin.h>

#include <cfenv>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#ifdef KEEPS_SUBNORMALS
#include "fp_environment_keep.h"
using M = fp_environment_keep;
#else
#include "fp_environment.h"
using M = fp_environment;
#endif

namespace {

int failures = 0;
void Expect(bool ok, const char* what, const char* where) {
  if (!ok) std::printf("FAILED: %s (%s)\n", what, where), ++failures;
}

constexpr int kCount = 65536;
#ifdef KEEPS_SUBNORMALS
constexpr bool kKeeps = true;
const auto CreatePool = fp_environment_keep_pool_create;
const auto DestroyPool = fp_environment_keep_pool_destroy;
#else
constexpr bool kKeeps = false;
const auto CreatePool = fp_environment_pool_create;
const auto DestroyPool = fp_environment_pool_destroy;
#endif

struct Arrays {
  std::vector<float> x, y, sum, quotient;
  double d[4] = {7, 7, 1, -5}, n[4] = {0, 2, 0, 3}, rest[4];
  Arrays() : x(kCount), y(kCount), sum(kCount), quotient(kCount) {
    for (int k = 0; k < kCount; ++k) {
      switch (k % 4) {
        case 0:
          x[k] = 1, y[k] = 0x1p-24f;
          break;  // a tie: to even, to 1
        case 1:
          x[k] = 1, y[k] = 0;
          break;  // divides by zero
        case 2:
          x[k] = 0x1p-140f, y[k] = 0x1p-140f;
          break;  // subnormal
        default:
          x[k] = 3e38f, y[k] = 3e38f;  // overflows
      }
    }
  }
};

M::Status Run(const M::Context& context, Arrays& a) {
  return M::run(context, M::Argument_x::Unchecked(a.x.data()), M::Argument_y::Unchecked(a.y.data()), a.d, a.n,
                M::Result_result0::Unchecked(a.sum.data()), M::Result_result1::Unchecked(a.quotient.data()), a.rest);
}

uint16_t X87Control() {
  uint16_t control;
  __asm__ volatile("fnstcw %0" : "=m"(control));
  return control;
}

void Check(kiln_pool* pool, const Arrays& want, const char* where) {
  Arrays a;
  M::Context context(pool);
  const unsigned mxcsr = _mm_getcsr();
  const uint16_t control = X87Control();
  const int flags = std::fetestexcept(FE_ALL_EXCEPT);
  const M::Status s = Run(context, a);
  const int flags_after = std::fetestexcept(FE_ALL_EXCEPT);
  const unsigned mxcsr_after = _mm_getcsr();
  const uint16_t control_after = X87Control();
  const M::Status refused = M::run(context, {}, {}, {}, {}, {}, {}, {});
  const bool same = mxcsr == mxcsr_after && control == control_after && flags == flags_after && _mm_getcsr() == mxcsr;
  // The comparisons below shall not depend on the environment either.
  std::fenv_t old;
  std::feholdexcept(&old);
  _mm_setcsr(0x1f80);
  Expect(s.ok(), s.text(), where);
  Expect(refused.code == KILN_NULL_POINTER, "a wrong call", where);
  Expect(same, "the caller's environment comes back", where);
  Expect(!std::memcmp(a.sum.data(), want.sum.data(), 4 * kCount), "sums", where);
  Expect(!std::memcmp(a.quotient.data(), want.quotient.data(), 4 * kCount), "quotients", where);
  Expect(a.rest[1] == 1 && a.rest[3] == -2 && a.rest[0] != a.rest[0], "remainders", where);
  std::fesetenv(&old);
}

}  // namespace

int main() {
  Arrays want;
  M::Context context;
  Run(context, want);
  Expect(want.sum[0] == 1, "rounding is to nearest", "default");
  Expect((want.sum[2] != 0) == kKeeps, "subnormal numbers", "default");
  kiln_pool* pool = CreatePool(3);
  for (kiln_pool* p : {static_cast<kiln_pool*>(nullptr), pool}) {
    Check(p, want, "default");
    for (int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      std::fesetround(mode);
      Check(p, want, "rounding");
      std::fesetround(FE_TONEAREST);
    }
    const unsigned plain = _mm_getcsr();
    _mm_setcsr(plain | 0x8040);
    Check(p, want, "subnormals flushed by the caller");
    _mm_setcsr(plain);
    std::feraiseexcept(FE_INEXACT);
    Check(p, want, "flags of the caller's");
    std::feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW | FE_INEXACT);
    Check(p, want, "traps");
    fedisableexcept(FE_ALL_EXCEPT);
    const uint16_t control = X87Control(), single = 0x7f;  // 24 bits of precision
    __asm__ volatile("fldcw %0" : : "m"(single));
    Check(p, want, "precision of x87");
    __asm__ volatile("fldcw %0" : : "m"(control));
  }
  // Threads of a pool that traps were enabled on when it was made.
  feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
  kiln_pool* trapping = CreatePool(3);
  Check(trapping, want, "threads with traps");
  fedisableexcept(FE_ALL_EXCEPT);
  Check(trapping, want, "threads with traps, caller without");
  DestroyPool(trapping);
  DestroyPool(pool);
  if (!failures) std::printf("floating-point environment: ok\n");
  return failures != 0;
}
