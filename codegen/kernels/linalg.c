// Dense linear algebra of real matrices, row major: Cholesky, triangular solves, LU and QR in the matrix's own type;
// symmetric eigenvalues and singular values in double, whatever the arrays hold (`wide`: f64).
#include <stddef.h>
#include <stdint.h>

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// A copy for each call would cost time to compile and no less to run.
#define OUTLINE __attribute__((noinline)) static
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
#define NAME(x) kiln_linalg_##x##_f32
#include "linalg_blas.inc"
#include "linalg_factor.inc"
#include "linalg_solve.inc"
#undef REAL
#undef LANES
#undef SMALL_SQUARE
#undef NAME
#define REAL double
#define LANES 8
#define SMALL_SQUARE 1e-280
#define NAME(x) kiln_linalg_##x##_f64
#include "linalg_blas.inc"
#include "linalg_factor.inc"
#include "linalg_solve.inc"

static double get(const void* p, int64_t k, int wide) { return wide ? ((const double*)p)[k] : ((const float*)p)[k]; }
static void put(void* p, int64_t k, double v, int wide) {
  if (wide)
    ((double*)p)[k] = v;
  else
    ((float*)p)[k] = (float)v;
}
static void* step(void* p, int64_t elements, int wide) { return (char*)p + elements * (wide ? 8 : 4); }
static const void* cstep(const void* p, int64_t elements, int wide) {
  return (const char*)p + elements * (wide ? 8 : 4);
}

// These are of double too.
#include "linalg_eigen.inc"
#include "linalg_singular.inc"
