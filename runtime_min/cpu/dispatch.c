// <model>_run: checks its arguments, finds the best CPU level that the archive holds, and runs it.
// Compiled to bitcode; kiln renames kiln_model_* for each model and drops the levels that were not asked for.
#include <cpuid.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime_min/abi.h"

typedef int32_t (*entry_fn)(void* const*, void* const*, void*, const struct kiln_pool*, const struct kiln_comm*);
__attribute__((weak)) int32_t kiln_model_entry_v2(void* const*, void* const*, void*, const struct kiln_pool*,
                                                  const struct kiln_comm*);
__attribute__((weak)) int32_t kiln_model_entry_v3(void* const*, void* const*, void*, const struct kiln_pool*,
                                                  const struct kiln_comm*);
__attribute__((weak)) int32_t kiln_model_entry_v4(void* const*, void* const*, void*, const struct kiln_pool*,
                                                  const struct kiln_comm*);
__attribute__((weak)) int32_t kiln_model_entry_amx(void* const*, void* const*, void*, const struct kiln_pool*,
                                                   const struct kiln_comm*);

// Set by the compiler: whether subnormal numbers are flushed to zero.
extern const int kiln_model_flush;

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

// The form of <model>_run for programs that communicate; the compiler keeps the one that the model needs.
int32_t kiln_model_run_device(void* const* arguments, void* const* results, void* arena, const struct kiln_pool* pool,
                              const struct kiln_comm* comm) {
  static entry_fn chosen;
  entry_fn f = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
  if (!f) {
    int level = cpu_level();
    f = level >= 4 && kiln_model_entry_amx && have_tiles() ? kiln_model_entry_amx
        : level >= 4 && kiln_model_entry_v4                ? kiln_model_entry_v4
        : level >= 3 && kiln_model_entry_v3                ? kiln_model_entry_v3
        : level >= 2 && kiln_model_entry_v2                ? kiln_model_entry_v2
                                                           : NULL;
    if (!f) return KILN_UNSUPPORTED_CPU;
    __atomic_store_n(&chosen, f, __ATOMIC_RELAXED);
  }
  if (!kiln_model_flush) return f(arguments, results, arena, pool, comm);
  // Subnormal operands and results count as zero while the model runs; the caller's mode comes back afterwards.
  unsigned mode = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(mode | 0x8040);
  int32_t status = f(arguments, results, arena, pool, comm);
  __builtin_ia32_ldmxcsr(mode);
  return status;
}

int32_t kiln_model_run(void* const* arguments, void* const* results, void* arena, const struct kiln_pool* pool) {
  return kiln_model_run_device(arguments, results, arena, pool, NULL);
}
