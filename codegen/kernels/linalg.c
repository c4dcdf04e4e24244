// Dense linear algebra of row-major matrices: Cholesky, triangular solves, LU, QR and tridiagonal systems in the
// matrix's own type; eigenvalues, singular values, pivoted QR and the reductions to few diagonals in double, whatever
// the arrays hold (`wide`: f64; `parts`: 2 if complex).
#include <stddef.h>
#include <stdint.h>

// Products as written down: numbers that are not finite need no care here.
#pragma STDC CX_LIMITED_RANGE ON

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// A copy for each call would cost time to compile and no less to run.
#define OUTLINE __attribute__((noinline)) static
// What real and complex matrices share, and each has a copy of: there the choices are constants.
#define INLINE __attribute__((always_inline)) static inline
// Loops over what is left of vectors, and over what is copied once: no versions in vectors.
#define ONE_BY_ONE _Pragma("clang loop vectorize(disable) unroll(disable)")

// Columns and rows of what is worked on before the rest is brought up to date.
#define BLOCK 32
// Of what is transposed in place: a square's rows and columns both lie in the first cache.
#define SQUARE 8
// Of a product: terms that are summed at a time, rows of a register tile, rows of A that are copied where its columns
// lie apart, and rows that share a packed panel of B.
#define DEPTH 192
#define TILE_ROWS 6
#define COPIED_ROWS 48
#define ROWS_IN_PLACE 384

#define REAL float
#define LANES 16
#define SMALL_SQUARE 1e-30f
#define INTERLEAVE_FIRST(x, y) __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define INTERLEAVE_LAST(x, y) \
  __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define NAME(x) kiln_linalg_##x##_f32
#define COMPLEX_NAME(x) kiln_linalg_##x##_c64
#include "linalg_typed.inc"
#undef INTERLEAVE_FIRST
#undef INTERLEAVE_LAST
#undef REAL
#undef LANES
#undef SMALL_SQUARE
#undef NAME
#undef COMPLEX_NAME
#define REAL double
#define LANES 8
#define SMALL_SQUARE 1e-280
#define INTERLEAVE_FIRST(x, y) __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define INTERLEAVE_LAST(x, y) __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15)
#define NAME(x) kiln_linalg_##x##_f64
#define COMPLEX_NAME(x) kiln_linalg_##x##_c128
#include "linalg_typed.inc"

INLINE double get(const void* p, int64_t k, int wide) { return wide ? ((const double*)p)[k] : ((const float*)p)[k]; }
INLINE void put(void* p, int64_t k, double v, int wide) {
  if (wide)
    ((double*)p)[k] = v;
  else
    ((float*)p)[k] = (float)v;
}
static void* step(void* p, int64_t elements, int wide) { return (char*)p + elements * (wide ? 8 : 4); }
static const void* cstep(const void* p, int64_t elements, int wide) {
  return (const char*)p + elements * (wide ? 8 : 4);
}

INLINE NAME(number) get_number(const void* p, int64_t k, int wide, int64_t parts) {
  return __builtin_complex(get(p, k * parts, wide), parts > 1 ? get(p, k * parts + 1, wide) : 0.0);
}
INLINE void put_number(void* p, int64_t k, NAME(number) v, int wide, int64_t parts) {
  put(p, k * parts, __real__ v, wide);
  if (parts > 1) put(p, k * parts + 1, __imag__ v, wide);
}
#define NOT_A_NUMBER __builtin_complex(__builtin_nan(""), __builtin_nan(""))
// Of sizes, NaN if any is.
INLINE double larger(double most, double x) { return __builtin_fabs(x) > most || x != x ? __builtin_fabs(x) : most; }

// These are of double too.
#include "linalg_double.inc"
