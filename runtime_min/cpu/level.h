// Which x86-64 level this machine has, for the parts of the runtime that choose by it.
#ifndef KILN_RUNTIME_MIN_CPU_LEVEL_H_
#define KILN_RUNTIME_MIN_CPU_LEVEL_H_

#include <cpuid.h>

#include "runtime_min/abi.h"

// The levels of KILN_CPU_LEVELS.
enum { V2, V3, V3DOT, V4, V4DOT, V4BF16, AMX, LEVELS };

// Sums of products of bytes, in 256-bit registers (AVX-VNNI) or in 512-bit ones.
static int have_byte_dots(int vector_bits) {
  unsigned a, b, c, d, wide;
  if (!__get_cpuid_count(7, 0, &a, &b, &wide, &d)) return 0;
  if (vector_bits == 512) return (wide & bit_AVX512VNNI) != 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & bit_AVXVNNI);
}

static int have_bf16_dots(void) {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & bit_AVX512BF16);
}

// Tile registers exist, and Linux hands them to this process (arch_prctl, ARCH_REQ_XCOMP_PERM for tile data).
static int have_tiles(void) {
  unsigned a, b, c, d, lo, hi;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & 0x3400000) != 0x3400000) return 0;
  __asm__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  if ((lo & 0x60000) != 0x60000) return 0;
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(158L), "D"(0x1023L), "S"(18L) : "rcx", "r11", "memory");
  return result == 0;
}

// 1 to 4: the x86-64 level of this machine, with the operating system's support for its registers.
static int cpu_level(void) {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return 1;
  const unsigned v2 = bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT | bit_CMPXCHG16B;
  if ((c & v2) != v2) return 1;
  const unsigned avx = bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C | bit_MOVBE;
  if ((c & avx) != avx) return 2;
  unsigned lo, hi;
  __asm__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  if ((lo & 6) != 6) return 2;
  unsigned e, f;
  if (!__get_cpuid_count(7, 0, &a, &b, &e, &f)) return 2;
  if ((b & (bit_AVX2 | bit_BMI | bit_BMI2)) != (bit_AVX2 | bit_BMI | bit_BMI2)) return 2;
  unsigned x;
  if (!__get_cpuid(0x80000001, &x, &x, &c, &x) || !(c & bit_LZCNT)) return 2;
  const unsigned avx512 = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512CD | bit_AVX512VL;
  return (b & avx512) == avx512 && (lo & 0xe6) == 0xe6 ? 4 : 3;
}

// Whether code of a level runs here.
static int level_runs(int level) {
  const int machine = cpu_level();
  switch (level) {
    case V2:
      return machine >= 2;
    case V3:
      return machine >= 3;
    case V3DOT:
      return machine >= 3 && have_byte_dots(256);
    case V4:
      return machine >= 4;
    case V4DOT:
      return machine >= 4 && have_byte_dots(512);
    case V4BF16:
      return machine >= 4 && have_byte_dots(512) && have_bf16_dots();
    default:
      return machine >= 4 && have_byte_dots(512) && have_bf16_dots() && have_tiles();
  }
}

// On Intel's cores a 512-bit sum of products of bf16 is slower than multiplying as f32 (docs/design/cpu_code.md).
static int slow_bf16_dots(void) {
  unsigned a, b, c, d;
  return __get_cpuid(0, &a, &b, &c, &d) && b == signature_INTEL_ebx;
}

// The best level for this machine of those whose bits, 1 << level, are in `held`; -1 if none runs here.
static inline int best_level(unsigned held) {
  for (int level = LEVELS - 1; level >= 0; --level) {
    if (!(held >> level & 1) || !level_runs(level)) continue;
    if (level == V4BF16 && (held & (1 << V4 | 1 << V4DOT)) && slow_bf16_dots()) continue;
    return level;
  }
  return -1;
}

#endif  // KILN_RUNTIME_MIN_CPU_LEVEL_H_
