// The lapack_*_ffi targets that JAX emits on CPU, on top of a Fortran LAPACK that the program links.
//
// What: one function for each target and type, with the prototype of kiln's typed custom calls (NAME_buffer and the
//   attributes by name). Matrices are column major: `dims` ends in columns, rows. Batches are the leading extents.
// Guarantees: `info` of each matrix goes to the last result; a failure of LAPACK is data, not a failed run.
// Cost: LAPACK's workspace is taken from malloc for the time of a call.
#include <complex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  void* data;
  const int64_t* dims;
  int32_t rank;
  int32_t type;
} buffer;

typedef float s_t;
typedef double d_t;
typedef float _Complex c_t;
typedef double _Complex z_t;
typedef float s_r;
typedef double d_r;
typedef float c_r;
typedef double z_r;

static int64_t batches(const buffer* b, int inner) {
  int64_t n = 1;
  for (int32_t k = 0; k + inner < b->rank; ++k) n *= b->dims[k];
  return n;
}
static int rows(const buffer* b) { return (int)b->dims[b->rank - 1]; }
static int cols(const buffer* b) { return (int)b->dims[b->rank - 2]; }
static int least(int a, int b) { return a < b ? a : b; }
static int most(int a, int b) { return a > b ? a : b; }

// The matrix is overwritten with its factors, so the operand is copied into the result first.
static void copy_in(const buffer* from, const buffer* to, size_t element) {
  size_t n = element;
  for (int32_t k = 0; k < from->rank; ++k) n *= (size_t)from->dims[k];
  if (from->data != to->data) memcpy(to->data, from->data, n);
}

#define TARGET(t, name) int32_t lapack_##t##name##_ffi(const buffer* in, const buffer* out, const void* attributes)
#define EACH(n) for (int64_t k = 0; k < (n); ++k)
#define AT(T, b, k, size) ((T*)(b).data + (k) * (int64_t)(size))

#define GETRF(t)                                                                            \
  void t##getrf_(int*, int*, t##_t*, int*, int*, int*);                                     \
  TARGET(t, getrf) {                                                                        \
    (void)attributes;                                                                       \
    int m = rows(in), n = cols(in), ld = most(m, 1);                                        \
    copy_in(in, out, sizeof(t##_t));                                                        \
    EACH(batches(in, 2))                                                                    \
    t##getrf_(&m, &n, AT(t##_t, out[0], k, m* n), &ld, AT(int32_t, out[1], k, least(m, n)), \
              AT(int32_t, out[2], k, 1));                                                   \
    return 0;                                                                               \
  }
GETRF(s)
GETRF(d)
GETRF(c)
GETRF(z)
#define GEQRF(t)                                                                                                \
  void t##geqrf_(int*, int*, t##_t*, int*, t##_t*, t##_t*, int*, int*);                                         \
  TARGET(t, geqrf) {                                                                                            \
    (void)attributes;                                                                                           \
    int m = rows(in), n = cols(in), ld = most(m, 1), ask = -1, info, lwork;                                     \
    t##_t best = 0;                                                                                             \
    copy_in(in, out, sizeof(t##_t));                                                                            \
    t##geqrf_(&m, &n, NULL, &ld, NULL, &best, &ask, &info);                                                     \
    lwork = most((int)creal(best), 1);                                                                          \
    t##_t* work = malloc(sizeof *work * (size_t)lwork);                                                         \
    if (!work) return 1;                                                                                        \
    EACH(batches(in, 2))                                                                                        \
    t##geqrf_(&m, &n, AT(t##_t, out[0], k, m* n), &ld, AT(t##_t, out[1], k, least(m, n)), work, &lwork, &info); \
    free(work);                                                                                                 \
    return 0;                                                                                                   \
  }
GEQRF(s)
GEQRF(d)
GEQRF(c)
GEQRF(z)
#define ORGQR(t, name)                                                                                    \
  void t##name##_(int*, int*, int*, t##_t*, int*, t##_t*, t##_t*, int*, int*);                            \
  TARGET(t, name) {                                                                                       \
    (void)attributes;                                                                                     \
    int m = rows(in), n = cols(in), r = (int)in[1].dims[in[1].rank - 1], ld = most(m, 1);                 \
    int ask = -1, info, lwork;                                                                            \
    t##_t best = 0;                                                                                       \
    copy_in(in, out, sizeof(t##_t));                                                                      \
    t##name##_(&m, &n, &r, NULL, &ld, NULL, &best, &ask, &info);                                          \
    lwork = most((int)creal(best), 1);                                                                    \
    t##_t* work = malloc(sizeof *work * (size_t)lwork);                                                   \
    if (!work) return 1;                                                                                  \
    EACH(batches(in, 2))                                                                                  \
    t##name##_(&m, &n, &r, AT(t##_t, out[0], k, m* n), &ld, AT(t##_t, in[1], k, r), work, &lwork, &info); \
    free(work);                                                                                           \
    return 0;                                                                                             \
  }
ORGQR(s, orgqr)
ORGQR(d, orgqr)
ORGQR(c, ungqr)
ORGQR(z, ungqr)

typedef struct {
  uint8_t mode, uplo;
} eigh_attributes;

#define SYEVD(t)                                                                                       \
  void t##syevd_(char*, char*, int*, t##_t*, int*, t##_t*, t##_t*, int*, int*, int*, int*);            \
  TARGET(t, syevd) {                                                                                   \
    const eigh_attributes* a = attributes;                                                             \
    char job = (char)a->mode, part = (char)a->uplo;                                                    \
    int n = rows(in), ld = most(n, 1), lwork = 1 + 6 * n + 2 * n * n, liwork = 3 + 5 * n;              \
    copy_in(in, out, sizeof(t##_t));                                                                   \
    t##_t* work = malloc(sizeof *work * (size_t)lwork + sizeof(int) * (size_t)liwork);                 \
    if (!work) return 1;                                                                               \
    EACH(batches(in, 2))                                                                               \
    t##syevd_(&job, &part, &n, AT(t##_t, out[0], k, n* n), &ld, AT(t##_t, out[1], k, n), work, &lwork, \
              (int*)(work + lwork), &liwork, AT(int32_t, out[2], k, 1));                               \
    free(work);                                                                                        \
    return 0;                                                                                          \
  }
SYEVD(s)
SYEVD(d)
#define HEEVD(t)                                                                                                  \
  void t##heevd_(char*, char*, int*, t##_t*, int*, t##_r*, t##_t*, int*, t##_r*, int*, int*, int*, int*);         \
  TARGET(t, heevd) {                                                                                              \
    const eigh_attributes* a = attributes;                                                                        \
    char job = (char)a->mode, part = (char)a->uplo;                                                               \
    int n = rows(in), ld = most(n, 1), lwork = 1 + 2 * n + n * n, lr = 1 + 5 * n + 2 * n * n, li = 3 + 5 * n;     \
    copy_in(in, out, sizeof(t##_t));                                                                              \
    t##_t* work = malloc(sizeof(t##_t) * (size_t)lwork + sizeof(t##_r) * (size_t)lr + sizeof(int) * (size_t)li);  \
    if (!work) return 1;                                                                                          \
    t##_r* real = (t##_r*)(work + lwork);                                                                         \
    EACH(batches(in, 2))                                                                                          \
    t##heevd_(&job, &part, &n, AT(t##_t, out[0], k, n* n), &ld, AT(t##_r, out[1], k, n), work, &lwork, real, &lr, \
              (int*)(real + lr), &li, AT(int32_t, out[2], k, 1));                                                 \
    free(work);                                                                                                   \
    return 0;                                                                                                     \
  }
HEEVD(c)
HEEVD(z)

typedef struct {
  uint8_t mode;
} svd_attributes;

#define GESDD(t, COMPLEX)                                                                                             \
  void t##gesdd_(char*, int*, int*, t##_t*, int*, t##_r*, t##_t*, int*, t##_t*, int*, t##_t*, int*,                   \
                 COMPLEX(t##_r*, ) int*, int*);                                                                       \
  TARGET(t, gesdd) {                                                                                                  \
    char job = (char)((const svd_attributes*)attributes)->mode;                                                       \
    int m = rows(in), n = cols(in), r = least(m, n), ld = most(m, 1), ask = -1, info, lwork;                          \
    int ldu = most(rows(&out[2]), 1), ldv = most(rows(&out[3]), 1), big = most(m, n);                                 \
    const int64_t us = (int64_t)rows(&out[2]) * cols(&out[2]), vs = (int64_t)rows(&out[3]) * cols(&out[3]);           \
    t##_t best = 0;                                                                                                   \
    copy_in(in, out, sizeof(t##_t));                                                                                  \
    const size_t lr = (size_t)most(1, 5 * r * r + 7 * r + 2 * big * r + 2 * r * r + r);                               \
    t##_r* real = malloc(sizeof *real * lr + sizeof(int) * 8 * (size_t)most(r, 1));                                   \
    if (!real) return 1;                                                                                              \
    int* iwork = (int*)(real + lr);                                                                                   \
    t##gesdd_(&job, &m, &n, NULL, &ld, NULL, NULL, &ldu, NULL, &ldv, &best, &ask, COMPLEX(real, ) iwork, &info);      \
    lwork = most((int)creal(best), 1);                                                                                \
    t##_t* work = malloc(sizeof *work * (size_t)lwork);                                                               \
    if (!work) {                                                                                                      \
      free(real);                                                                                                     \
      return 1;                                                                                                       \
    }                                                                                                                 \
    EACH(batches(in, 2))                                                                                              \
    t##gesdd_(&job, &m, &n, AT(t##_t, out[0], k, m* n), &ld, AT(t##_r, out[1], k, r), AT(t##_t, out[2], k, us), &ldu, \
              AT(t##_t, out[3], k, vs), &ldv, work, &lwork, COMPLEX(real, ) iwork, AT(int32_t, out[4], k, 1));        \
    free(work);                                                                                                       \
    free(real);                                                                                                       \
    return 0;                                                                                                         \
  }
#define WITHOUT(...)
#define WITH(...) __VA_ARGS__
GESDD(s, WITHOUT)
GESDD(d, WITHOUT)
GESDD(c, WITH)
GESDD(z, WITH)

typedef struct {
  uint8_t compute_left, compute_right;
} eig_attributes;

// LAPACK writes a conjugate pair of eigenvectors as two columns: the real and the imaginary parts.
#define UNPACK(t, C)                                                                              \
  static void t##unpack(int n, const t##_t* wi, const t##_t* v, C* out) {                         \
    for (int j = 0; j < n; ++j) {                                                                 \
      const int pair = wi[j] != 0 && j + 1 < n;                                                   \
      for (int i = 0; i < n; ++i) {                                                               \
        out[j * n + i] = pair ? v[j * n + i] + v[(j + 1) * n + i] * (C)_Complex_I : v[j * n + i]; \
        if (pair) out[(j + 1) * n + i] = v[j * n + i] - v[(j + 1) * n + i] * (C)_Complex_I;       \
      }                                                                                           \
      j += pair;                                                                                  \
    }                                                                                             \
  }
UNPACK(s, c_t)
UNPACK(d, z_t)
#define GEEV_REAL(t, C)                                                                                            \
  void t##geev_(char*, char*, int*, t##_t*, int*, t##_t*, t##_t*, t##_t*, int*, t##_t*, int*, t##_t*, int*, int*); \
  TARGET(t, geev) {                                                                                                \
    const eig_attributes* a = attributes;                                                                          \
    char left = (char)a->compute_left, right = (char)a->compute_right;                                             \
    int n = rows(in), ld = most(n, 1), ask = -1, info, lwork;                                                      \
    t##_t best = 0;                                                                                                \
    t##geev_(&left, &right, &n, NULL, &ld, NULL, NULL, NULL, &ld, NULL, &ld, &best, &ask, &info);                  \
    lwork = most((int)best, 4 * most(n, 1));                                                                       \
    const size_t nn = (size_t)n * (size_t)n;                                                                       \
    t##_t* work = malloc(sizeof *work * ((size_t)lwork + 3 * nn));                                                 \
    if (!work) return 1;                                                                                           \
    t##_t *x = work + lwork, *l = x + nn, *r = l + nn;                                                             \
    EACH(batches(in, 2)) {                                                                                         \
      t##_t *wr = AT(t##_t, out[0], k, n), *wi = AT(t##_t, out[1], k, n);                                          \
      memcpy(x, AT(t##_t, in[0], k, nn), sizeof *x* nn);                                                           \
      t##geev_(&left, &right, &n, x, &ld, wr, wi, l, &ld, r, &ld, work, &lwork, AT(int32_t, out[4], k, 1));        \
      if (left == 'V') t##unpack(n, wi, l, AT(C, out[2], k, nn));                                                  \
      if (right == 'V') t##unpack(n, wi, r, AT(C, out[3], k, nn));                                                 \
    }                                                                                                              \
    free(work);                                                                                                    \
    return 0;                                                                                                      \
  }
GEEV_REAL(s, c_t)
GEEV_REAL(d, z_t)
#define GEEV_COMPLEX(t)                                                                                            \
  void t##geev_(char*, char*, int*, t##_t*, int*, t##_t*, t##_t*, int*, t##_t*, int*, t##_t*, int*, t##_r*, int*); \
  TARGET(t, geev) {                                                                                                \
    const eig_attributes* a = attributes;                                                                          \
    char left = (char)a->compute_left, right = (char)a->compute_right;                                             \
    int n = rows(in), ld = most(n, 1), lwork = 8 * most(n, 1);                                                     \
    const size_t nn = (size_t)n * (size_t)n;                                                                       \
    t##_t* work = malloc(sizeof *work * ((size_t)lwork + nn) + sizeof(t##_r) * 2 * (size_t)most(n, 1));            \
    if (!work) return 1;                                                                                           \
    t##_t* x = work + lwork;                                                                                       \
    EACH(batches(in, 2)) {                                                                                         \
      memcpy(x, AT(t##_t, in[0], k, nn), sizeof *x* nn);                                                           \
      t##geev_(&left, &right, &n, x, &ld, AT(t##_t, out[0], k, n), AT(t##_t, out[1], k, nn), &ld,                  \
               AT(t##_t, out[2], k, nn), &ld, work, &lwork, (t##_r*)(x + nn), AT(int32_t, out[3], k, 1));          \
    }                                                                                                              \
    free(work);                                                                                                    \
    return 0;                                                                                                      \
  }
GEEV_COMPLEX(c)
GEEV_COMPLEX(z)

typedef struct {
  uint8_t mode, sort;
} schur_attributes;

#define GEES_REAL(t)                                                                                              \
  void t##gees_(char*, char*, void*, int*, t##_t*, int*, int*, t##_t*, t##_t*, t##_t*, int*, t##_t*, int*, int*,  \
                int*);                                                                                            \
  TARGET(t, gees) {                                                                                               \
    char job = (char)((const schur_attributes*)attributes)->mode, unsorted = 'N';                                 \
    int n = rows(in), ld = most(n, 1), lwork = 16 * most(n, 1);                                                   \
    const int64_t nn = (int64_t)n * n;                                                                            \
    copy_in(in, out, sizeof(t##_t));                                                                              \
    t##_t* work = malloc(sizeof *work * (size_t)lwork);                                                           \
    if (!work) return 1;                                                                                          \
    EACH(batches(in, 2))                                                                                          \
    t##gees_(&job, &unsorted, NULL, &n, AT(t##_t, out[0], k, nn), &ld, AT(int32_t, out[4], k, 1),                 \
             AT(t##_t, out[2], k, n), AT(t##_t, out[3], k, n), AT(t##_t, out[1], k, nn), &ld, work, &lwork, NULL, \
             AT(int32_t, out[5], k, 1));                                                                          \
    free(work);                                                                                                   \
    return 0;                                                                                                     \
  }
GEES_REAL(s)
GEES_REAL(d)
#define GEES_COMPLEX(t)                                                                                          \
  void t##gees_(char*, char*, void*, int*, t##_t*, int*, int*, t##_t*, t##_t*, int*, t##_t*, int*, t##_r*, int*, \
                int*);                                                                                           \
  TARGET(t, gees) {                                                                                              \
    char job = (char)((const schur_attributes*)attributes)->mode, unsorted = 'N';                                \
    int n = rows(in), ld = most(n, 1), lwork = 16 * most(n, 1);                                                  \
    const int64_t nn = (int64_t)n * n;                                                                           \
    copy_in(in, out, sizeof(t##_t));                                                                             \
    t##_t* work = malloc(sizeof *work * (size_t)lwork + sizeof(t##_r) * (size_t)ld);                             \
    if (!work) return 1;                                                                                         \
    EACH(batches(in, 2))                                                                                         \
    t##gees_(&job, &unsorted, NULL, &n, AT(t##_t, out[0], k, nn), &ld, AT(int32_t, out[3], k, 1),                \
             AT(t##_t, out[2], k, n), AT(t##_t, out[1], k, nn), &ld, work, &lwork, (t##_r*)(work + lwork), NULL, \
             AT(int32_t, out[4], k, 1));                                                                         \
    free(work);                                                                                                  \
    return 0;                                                                                                    \
  }
GEES_COMPLEX(c)
GEES_COMPLEX(z)

typedef struct {
  int32_t high, low;
} hessenberg_attributes;

#define GEHRD(t)                                                                                                     \
  void t##gehrd_(int*, int*, int*, t##_t*, int*, t##_t*, t##_t*, int*, int*);                                        \
  TARGET(t, gehrd) {                                                                                                 \
    const hessenberg_attributes* a = attributes;                                                                     \
    int n = rows(in), ld = most(n, 1), lwork = 64 * most(n, 1), low = a->low, high = a->high;                        \
    copy_in(in, out, sizeof(t##_t));                                                                                 \
    t##_t* work = malloc(sizeof *work * (size_t)lwork);                                                              \
    if (!work) return 1;                                                                                             \
    EACH(batches(in, 2))                                                                                             \
    t##gehrd_(&n, &low, &high, AT(t##_t, out[0], k, (int64_t)n* n), &ld, AT(t##_t, out[1], k, most(n - 1, 0)), work, \
              &lwork, AT(int32_t, out[2], k, 1));                                                                    \
    free(work);                                                                                                      \
    return 0;                                                                                                        \
  }
GEHRD(s)
GEHRD(d)
GEHRD(c)
GEHRD(z)

typedef struct {
  uint8_t uplo;
} tridiagonal_attributes;

#define SYTRD(t, name)                                                                                           \
  void t##name##_(char*, int*, t##_t*, int*, t##_r*, t##_r*, t##_t*, t##_t*, int*, int*);                        \
  TARGET(t, name) {                                                                                              \
    char part = (char)((const tridiagonal_attributes*)attributes)->uplo;                                         \
    int n = rows(in), ld = most(n, 1), lwork = 64 * most(n, 1), less = most(n - 1, 0);                           \
    copy_in(in, out, sizeof(t##_t));                                                                             \
    t##_t* work = malloc(sizeof *work * (size_t)lwork);                                                          \
    if (!work) return 1;                                                                                         \
    EACH(batches(in, 2))                                                                                         \
    t##name##_(&part, &n, AT(t##_t, out[0], k, (int64_t)n* n), &ld, AT(t##_r, out[1], k, n),                     \
               AT(t##_r, out[2], k, less), AT(t##_t, out[3], k, less), work, &lwork, AT(int32_t, out[4], k, 1)); \
    free(work);                                                                                                  \
    return 0;                                                                                                    \
  }
SYTRD(s, sytrd)
SYTRD(d, sytrd)
SYTRD(c, hetrd)
SYTRD(z, hetrd)

#define GTSV(t)                                                                                                      \
  void t##gtsv_(int*, int*, t##_t*, t##_t*, t##_t*, t##_t*, int*, int*);                                             \
  TARGET(t, gtsv) {                                                                                                  \
    (void)attributes;                                                                                                \
    int n = rows(&in[3]), right = cols(&in[3]), ld = most(n, 1);                                                     \
    for (int b = 0; b < 4; ++b) copy_in(&in[b], &out[b], sizeof(t##_t));                                             \
    EACH(batches(&in[3], 2)) {                                                                                       \
      /* JAX's diagonals are all of length n: the lower one starts with a zero. */                                   \
      t##_t *lower = AT(t##_t, out[0], k, n), *upper = AT(t##_t, out[2], k, n);                                      \
      t##gtsv_(&n, &right, lower + 1, AT(t##_t, out[1], k, n), upper, AT(t##_t, out[3], k, (int64_t)n * right), &ld, \
               AT(int32_t, out[4], k, 1));                                                                           \
    }                                                                                                                \
    return 0;                                                                                                        \
  }
GTSV(s) GTSV(d) GTSV(c) GTSV(z)
