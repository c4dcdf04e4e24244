// Which x86-64 levels this machine runs, for the parts of the runtime that choose by it.
#ifndef KILN_RUNTIME_MIN_CPU_LEVEL_H_
#define KILN_RUNTIME_MIN_CPU_LEVEL_H_

#include <cpuid.h>

#include "runtime_min/abi.h"

// The levels of KILN_CPU_LEVELS.
enum { V2, V3, V3DOT, V4, V4DOT, V4FP16, V4BF16, AMX };

// Tile registers exist, and Linux hands them to this process (arch_prctl, ARCH_REQ_XCOMP_PERM for tile data).
__attribute__((minsize)) static int have_tiles(void) {
  unsigned a, b, c, d, lo, hi;
  __cpuid_count(7, 0, a, b, c, d);
  if ((d & 0x3400000) != 0x3400000) return 0;
  __asm__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  if ((lo & 0x60000) != 0x60000) return 0;
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(158L), "D"(0x1023L), "S"(18L) : "rcx", "r11", "memory");
  return result == 0;
}

// On Intel's cores a 512-bit sum of products of bf16 is slower than multiplying as f32 (docs/design/cpu_code.md).
static int slow_bf16_dots(void) {
  unsigned a, b, c, d;
  __cpuid(0, a, b, c, d);
  return b == signature_INTEL_ebx;
}

// The bits, 1 << level, of the levels whose instructions this machine has and whose registers the operating system
// saves; of AMX without asking for the tiles.
__attribute__((minsize)) static unsigned machine_levels(void) {
  unsigned most, a, b, c, d, lo, hi, features, more;
  __cpuid(0, most, b, c, d);
  __cpuid(1, a, b, features, d);
  const unsigned v2 = bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT | bit_CMPXCHG16B;
  const unsigned avx = bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C | bit_MOVBE;
  if ((features & v2) != v2) return 0;
  if ((features & avx) != avx || most < 7) return 1u << V2;
  __cpuid(0x80000000, most, b, c, d);
  more = 0;
  if (most >= 0x80000001) __cpuid(0x80000001, a, b, more, d);
  __asm__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  __cpuid_count(7, 0, a, b, c, d);
  const unsigned avx2 = bit_AVX2 | bit_BMI | bit_BMI2;
  const unsigned avx512 = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512CD | bit_AVX512VL;
  if ((lo & 6) != 6 || (b & avx2) != avx2 || !(more & bit_LZCNT)) return 1u << V2;
  const int wide = (b & avx512) == avx512 && (lo & 0xe6) == 0xe6, wide_dots = wide && (c & bit_AVX512VNNI);
  const int halves = wide_dots && (d & bit_AVX512FP16);
  __cpuid_count(7, 1, a, b, c, d);
  const int bf16_dots = wide_dots && (a & bit_AVX512BF16);
  return 1u << V2 | 1u << V3 | (unsigned)((a & bit_AVXVNNI) != 0) << V3DOT | (unsigned)wide << V4 |
         (unsigned)wide_dots << V4DOT | (unsigned)halves << V4FP16 | (unsigned)bf16_dots << V4BF16 |
         (unsigned)bf16_dots << AMX;
}

// The best level for this machine of those whose bits are in `held`; -1 if none runs here.
__attribute__((minsize)) static int best_level(unsigned held) {
  const unsigned here = held & machine_levels();
  for (int level = KILN_LEVELS - 1; level >= 0; --level) {
    if (!(here >> level & 1)) continue;
    if (level == AMX && !have_tiles()) continue;
    if (level == V4BF16 && (held & (1 << V4 | 1 << V4DOT | 1 << V4FP16)) && slow_bf16_dots()) continue;
    return level;
  }
  return -1;
}

#endif  // KILN_RUNTIME_MIN_CPU_LEVEL_H_
