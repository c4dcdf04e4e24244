// The floating-point environment of a run: round to nearest, no exception traps, subnormal numbers as the model was
// compiled for. What the caller had comes back afterwards, its exception flags included. x86-64.
//
// x87 matters where libm uses it (fmod) and to functions of the caller's. Asking for its state takes longer than a
// small program, so programs that call neither leave it alone. Its control word is rarely anything but the default, so
// the slow instructions run only where it is, or where x87 code left flags.
#ifndef KILN_RUNTIME_MIN_CPU_FP_ENVIRONMENT_H_
#define KILN_RUNTIME_MIN_CPU_FP_ENVIRONMENT_H_

#include <stdint.h>

enum { KILN_MXCSR = 0x1f80, KILN_MXCSR_FLUSH = 0x8040 };

struct fp_environment {
  unsigned mxcsr;
  int x87;  // the fields below hold what the caller had
  uint16_t x87_control, x87_status;
  uint16_t x87_all[14];  // as fnstenv stores it; only if the control word was not the default
};

enum { kX87Default = 0x33f, kX87Settings = 0xf3f, kX87Flags = 0x3f, kX87StatusWord = 2 };

static inline int x87_is_default(uint16_t control) { return (control & kX87Settings) == kX87Default; }

static inline void fp_enter(struct fp_environment* saved, unsigned mxcsr, int x87) {
  saved->mxcsr = __builtin_ia32_stmxcsr();
  saved->x87 = x87;
  __builtin_ia32_ldmxcsr(mxcsr);
  if (!x87) return;
  __asm__ volatile("fnstcw %0" : "=m"(saved->x87_control));
  __asm__ volatile("fnstsw %0" : "=m"(saved->x87_status));
  if (x87_is_default(saved->x87_control)) return;
  const uint16_t control = 0x37f;
  __asm__ volatile("fnstenv %0" : "=m"(saved->x87_all));  // masks exceptions, so that nothing traps below
  __asm__ volatile("fnclex");
  __asm__ volatile("fldcw %0" : : "m"(control));
}

static inline void fp_leave(const struct fp_environment* saved) {
  __builtin_ia32_ldmxcsr(saved->mxcsr);
  if (!saved->x87) return;
  if (!x87_is_default(saved->x87_control)) {
    __asm__ volatile("fldenv %0" : : "m"(saved->x87_all));
    return;
  }
  uint16_t status;
  __asm__ volatile("fnstsw %0" : "=m"(status));
  if ((status & kX87Flags) == (saved->x87_status & kX87Flags)) return;
  uint16_t now[14];
  __asm__ volatile("fnstenv %0" : "=m"(now));
  now[kX87StatusWord] = (uint16_t)((now[kX87StatusWord] & ~kX87Flags) | (saved->x87_status & kX87Flags));
  __asm__ volatile("fldenv %0" : : "m"(now));
}

#endif  // KILN_RUNTIME_MIN_CPU_FP_ENVIRONMENT_H_
