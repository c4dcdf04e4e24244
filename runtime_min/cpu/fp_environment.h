// The floating-point environment of a run: round to nearest, no exception traps, subnormal numbers as the model was
// compiled for. What the caller had comes back afterwards, its exception flags included. x86-64.
//
// x87 matters because libm uses it (fmod). Its control word is rarely anything but the default, so the slow
// instructions run only where it is, or where x87 code left flags.
#ifndef KILN_RUNTIME_MIN_CPU_FP_ENVIRONMENT_H_
#define KILN_RUNTIME_MIN_CPU_FP_ENVIRONMENT_H_

#include <stdint.h>

enum { KILN_MXCSR = 0x1f80, KILN_MXCSR_FLUSH = 0x8040 };

struct fp_environment {
  unsigned mxcsr;
  uint16_t x87_control, x87_status;
  uint16_t x87[14];  // as fnstenv stores it; only if the control word was not the default
};

enum { kX87Default = 0x33f, kX87Settings = 0xf3f, kX87Flags = 0x3f, kX87StatusWord = 2 };

static inline int x87_is_default(uint16_t control) { return (control & kX87Settings) == kX87Default; }

static inline void fp_enter(struct fp_environment* saved, unsigned mxcsr) {
  saved->mxcsr = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(mxcsr);
  __asm__ volatile("fnstcw %0" : "=m"(saved->x87_control));
  __asm__ volatile("fnstsw %0" : "=m"(saved->x87_status));
  if (x87_is_default(saved->x87_control)) return;
  const uint16_t control = 0x37f;
  __asm__ volatile("fnstenv %0" : "=m"(saved->x87));  // masks exceptions, so that nothing traps below
  __asm__ volatile("fnclex");
  __asm__ volatile("fldcw %0" : : "m"(control));
}

static inline void fp_leave(const struct fp_environment* saved) {
  __builtin_ia32_ldmxcsr(saved->mxcsr);
  if (!x87_is_default(saved->x87_control)) {
    __asm__ volatile("fldenv %0" : : "m"(saved->x87));
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
