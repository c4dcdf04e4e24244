// Dense factorisations of real matrices, row major, computed in double: LU, QR, symmetric eigenvalues, singular values.
// Each works on one matrix in a scratch of doubles; the caller's arrays are f32 or f64 (`wide`).
#include <stdint.h>

double sqrt(double), fabs(double), copysign(double, double);

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
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

void kiln_lapack_getrf(const void* a, void* lu, int32_t* pivots, int32_t* info, int64_t m, int64_t n, int64_t batch,
                       int64_t wide, double* w) {
  int64_t k = least(m, n);
  for (; batch-- > 0; a = cstep(a, m * n, (int)wide), lu = step(lu, m * n, (int)wide), pivots += k, ++info) {
    for (int64_t q = 0; q < m * n; ++q) w[q] = get(a, q, (int)wide);
    *info = 0;
    for (int64_t j = 0; j < k; ++j) {
      int64_t p = j;
      for (int64_t r = j + 1; r < m; ++r)
        if (fabs(w[r * n + j]) > fabs(w[p * n + j])) p = r;
      pivots[j] = (int32_t)(p + 1);
      if (p != j)
        for (int64_t c = 0; c < n; ++c) {
          double t = w[p * n + c];
          w[p * n + c] = w[j * n + c];
          w[j * n + c] = t;
        }
      double d = w[j * n + j];
      if (d == 0.0) {
        if (!*info) *info = (int32_t)(j + 1);
        continue;
      }
      for (int64_t r = j + 1; r < m; ++r) {
        double f = w[r * n + j] /= d;
        for (int64_t c = j + 1; c < n; ++c) w[r * n + c] -= f * w[j * n + c];
      }
    }
    for (int64_t q = 0; q < m * n; ++q) put(lu, q, w[q], (int)wide);
  }
}

// Householder reflectors as LAPACK keeps them: H = I - tau v v^T with v[j] = 1, below the diagonal; R above.
void kiln_lapack_geqrf(const void* a, void* qr, void* tau, int64_t m, int64_t n, int64_t batch, int64_t wide,
                       double* w) {
  int64_t k = least(m, n);
  for (; batch-- > 0; a = cstep(a, m * n, (int)wide), qr = step(qr, m * n, (int)wide), tau = step(tau, k, (int)wide)) {
    for (int64_t q = 0; q < m * n; ++q) w[q] = get(a, q, (int)wide);
    for (int64_t j = 0; j < k; ++j) {
      double s = 0, x = w[j * n + j], t = 0;
      for (int64_t r = j + 1; r < m; ++r) s += w[r * n + j] * w[r * n + j];
      if (s != 0.0) {
        double beta = -copysign(sqrt(x * x + s), x);
        t = (beta - x) / beta;
        for (int64_t r = j + 1; r < m; ++r) w[r * n + j] /= x - beta;
        w[j * n + j] = beta;
        for (int64_t c = j + 1; c < n; ++c) {
          double d = w[j * n + c];
          for (int64_t r = j + 1; r < m; ++r) d += w[r * n + j] * w[r * n + c];
          d *= t;
          w[j * n + c] -= d;
          for (int64_t r = j + 1; r < m; ++r) w[r * n + c] -= d * w[r * n + j];
        }
      }
      put(tau, j, t, (int)wide);
    }
    for (int64_t q = 0; q < m * n; ++q) put(qr, q, w[q], (int)wide);
  }
}

// The first n columns of the product of k reflectors; needs m * n doubles.
void kiln_lapack_orgqr(const void* a, const void* tau, void* out, int64_t m, int64_t n, int64_t k, int64_t batch,
                       int64_t wide, double* w) {
  for (; batch-- > 0;
       a = cstep(a, m * n, (int)wide), tau = cstep(tau, k, (int)wide), out = step(out, m * n, (int)wide)) {
    for (int64_t r = 0; r < m; ++r)
      for (int64_t c = 0; c < n; ++c) w[r * n + c] = r == c;
    for (int64_t j = k - 1; j >= 0; --j) {
      double t = get(tau, j, (int)wide);
      for (int64_t c = j; c < n; ++c) {
        double d = w[j * n + c];
        for (int64_t r = j + 1; r < m; ++r) d += get(a, r * n + j, (int)wide) * w[r * n + c];
        d *= t;
        w[j * n + c] -= d;
        for (int64_t r = j + 1; r < m; ++r) w[r * n + c] -= d * get(a, r * n + j, (int)wide);
      }
    }
    for (int64_t q = 0; q < m * n; ++q) put(out, q, w[q], (int)wide);
  }
}

// Cyclic Jacobi rotations; eigenvalues ascending. `info` may be null. Needs 2 n^2 doubles.
void kiln_lapack_syevd(const void* a, void* vectors, void* values, int32_t* info, int64_t n, int64_t batch,
                       int64_t wide, int64_t lower, double* w) {
  double *s = w, *v = w + n * n;
  for (; batch-- > 0;
       a = cstep(a, n * n, (int)wide), vectors = step(vectors, n * n, (int)wide), values = step(values, n, (int)wide)) {
    int finite = 1;
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c <= r; ++c) {
        double x = get(a, lower ? r * n + c : c * n + r, (int)wide);
        finite = finite && x - x == 0.0;
        s[r * n + c] = s[c * n + r] = x;
        v[r * n + c] = v[c * n + r] = r == c;
      }
    if (info) *info++ = finite ? 0 : 1;
    for (int sweep = 0; finite && sweep < 60; ++sweep) {
      double off = 0, all = 0;
      for (int64_t r = 0; r < n; ++r)
        for (int64_t c = 0; c < n; ++c) {
          all += s[r * n + c] * s[r * n + c];
          if (r != c) off += s[r * n + c] * s[r * n + c];
        }
      if (off <= 1e-31 * all) break;
      for (int64_t p = 0; p < n; ++p)
        for (int64_t q = p + 1; q < n; ++q) {
          double g = s[p * n + q];
          if (g == 0.0) continue;
          double theta = (s[q * n + q] - s[p * n + p]) / (2 * g);
          double t = copysign(1.0, theta) / (fabs(theta) + sqrt(theta * theta + 1)), c = 1 / sqrt(t * t + 1), z = t * c;
          for (int64_t k = 0; k < n; ++k) {
            double x = s[k * n + p], y = s[k * n + q];
            s[k * n + p] = c * x - z * y;
            s[k * n + q] = z * x + c * y;
          }
          for (int64_t k = 0; k < n; ++k) {
            double x = s[p * n + k], y = s[q * n + k];
            s[p * n + k] = c * x - z * y;
            s[q * n + k] = z * x + c * y;
            x = v[k * n + p];
            y = v[k * n + q];
            v[k * n + p] = c * x - z * y;
            v[k * n + q] = z * x + c * y;
          }
        }
    }
    // Selection by value: each position takes the smallest that is left.
    for (int64_t k = 0; k < n; ++k) {
      int64_t best = k;
      for (int64_t j = k + 1; j < n; ++j)
        if (s[j * n + j] < s[best * n + best]) best = j;
      if (best != k) {
        double t = s[k * n + k];
        s[k * n + k] = s[best * n + best];
        s[best * n + best] = t;
        for (int64_t r = 0; r < n; ++r) {
          t = v[r * n + k];
          v[r * n + k] = v[r * n + best];
          v[r * n + best] = t;
        }
      }
      put(values, k, s[k * n + k], (int)wide);
    }
    for (int64_t q = 0; q < n * n; ++q) put(vectors, q, v[q], (int)wide);
  }
}

// One-sided Jacobi on the columns of the taller of A and its transpose; singular values descending. u is m x uc, vt is
// vr x n; what goes beyond the smaller side is completed to orthonormal vectors. Needs l k + k^2 + k + l max(uc, vr)
// doubles for l, k the larger and smaller side.
void kiln_lapack_gesdd(const void* a, void* copy, void* values, void* u, void* vt, int32_t* info, int64_t m, int64_t n,
                       int64_t uc, int64_t vr, int64_t batch, int64_t wide, int64_t vectors, double* w) {
  int64_t tall = m >= n, l = tall ? m : n, k = tall ? n : m;
  double *g = w, *v = g + l * k, *sigma = v + k * k, *basis = sigma + k;
  for (; batch-- > 0; a = cstep(a, m * n, (int)wide), copy = step(copy, m * n, (int)wide),
                      values = step(values, k, (int)wide), u = step(u, m * uc, (int)wide),
                      vt = step(vt, vr * n, (int)wide), ++info) {
    int finite = 1;
    for (int64_t r = 0; r < m; ++r)
      for (int64_t c = 0; c < n; ++c) {
        double x = get(a, r * n + c, (int)wide);
        finite = finite && x - x == 0.0;
        put(copy, r * n + c, x, (int)wide);
        g[tall ? r * k + c : c * k + r] = x;
      }
    *info = finite ? 0 : 1;
    for (int64_t q = 0; q < k * k; ++q) v[q] = q / k == q % k;
    for (int sweep = 0, busy = 1; finite && busy && sweep < 60; ++sweep) {
      busy = 0;
      for (int64_t p = 0; p < k; ++p)
        for (int64_t q = p + 1; q < k; ++q) {
          double x = 0, y = 0, d = 0;
          for (int64_t r = 0; r < l; ++r) {
            x += g[r * k + p] * g[r * k + p];
            y += g[r * k + q] * g[r * k + q];
            d += g[r * k + p] * g[r * k + q];
          }
          if (d == 0.0 || fabs(d) <= 1e-15 * sqrt(x * y)) continue;
          busy = 1;
          double theta = (y - x) / (2 * d), t = copysign(1.0, theta) / (fabs(theta) + sqrt(theta * theta + 1));
          double c = 1 / sqrt(t * t + 1), z = t * c;
          for (int64_t r = 0; r < l; ++r) {
            double e = g[r * k + p], f = g[r * k + q];
            g[r * k + p] = c * e - z * f;
            g[r * k + q] = z * e + c * f;
          }
          for (int64_t r = 0; r < k; ++r) {
            double e = v[r * k + p], f = v[r * k + q];
            v[r * k + p] = c * e - z * f;
            v[r * k + q] = z * e + c * f;
          }
        }
    }
    for (int64_t j = 0; j < k; ++j) {
      double x = 0;
      for (int64_t r = 0; r < l; ++r) x += g[r * k + j] * g[r * k + j];
      sigma[j] = sqrt(x);
    }
    for (int64_t j = 0; j < k; ++j) {
      int64_t best = j;
      for (int64_t q = j + 1; q < k; ++q)
        if (sigma[q] > sigma[best]) best = q;
      double t = sigma[j];
      sigma[j] = sigma[best];
      sigma[best] = t;
      for (int64_t r = 0; best != j && r < l; ++r) {
        t = g[r * k + j];
        g[r * k + j] = g[r * k + best];
        g[r * k + best] = t;
      }
      for (int64_t r = 0; best != j && r < k; ++r) {
        t = v[r * k + j];
        v[r * k + j] = v[r * k + best];
        v[r * k + best] = t;
      }
      put(values, j, sigma[j], (int)wide);
    }
    if (!vectors) continue;
    // The long side's vectors, one a row of `basis`: columns of g scaled to length one, then unit vectors made
    // orthogonal to all before them. A vanishing singular value gives no direction either.
    int64_t count = tall ? uc : vr, next = 0;
    for (int64_t j = 0; j < count; ++j) {
      double* b = basis + j * l;
      int given = j < k && sigma[j] > 1e-300 && sigma[j] > 1e-15 * sigma[0];
      for (;;) {
        for (int64_t r = 0; r < l; ++r) b[r] = given ? g[r * k + j] / sigma[j] : r == next;
        if (given) break;
        ++next;
        for (int twice = 0; twice < 2; ++twice)
          for (int64_t p = 0; p < j; ++p) {
            double d = 0;
            for (int64_t r = 0; r < l; ++r) d += b[r] * basis[p * l + r];
            for (int64_t r = 0; r < l; ++r) b[r] -= d * basis[p * l + r];
          }
        double x = 0;
        for (int64_t r = 0; r < l; ++r) x += b[r] * b[r];
        if (x > 0.25 / (double)l || next >= l) {
          x = x > 0 ? sqrt(x) : 1;
          for (int64_t r = 0; r < l; ++r) b[r] /= x;
          break;
        }
      }
    }
    for (int64_t r = 0; r < m; ++r)
      for (int64_t c = 0; c < uc; ++c) put(u, r * uc + c, tall ? basis[c * l + r] : v[r * k + c], (int)wide);
    for (int64_t r = 0; r < vr; ++r)
      for (int64_t c = 0; c < n; ++c) put(vt, r * n + c, tall ? v[c * k + r] : basis[r * l + c], (int)wide);
  }
}
