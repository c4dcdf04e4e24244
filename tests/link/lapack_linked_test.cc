// JAX's LAPACK targets on the system's LAPACK: general eigenvalues, a Schur form, and an LU factorisation that kiln's
// own kernels would serve if the config did not ask for LAPACK.
#include "lapack_linked.h"

#include <cmath>
#include <complex>
#include <cstdio>
#include <utility>

namespace {
int failures = 0;
void Near(double got, double want, const char* what) {
  if (!(std::fabs(got - want) < 1e-5)) std::printf("FAILED: %s: %g, not %g\n", what, got, want), ++failures;
}
}  // namespace

int main() {
  double a[32], re[8], im[8], schur[32], basis[32];
  std::complex<double> vectors[32];
  float r[15], factors[15];
  int32_t pivots[3];
  for (int k = 0; k < 32; ++k) a[k] = std::sin(3.7 * k) + (k % 5 == 0);
  for (int k = 0; k < 15; ++k) r[k] = static_cast<float>(std::cos(2.3 * k));
  void* arguments[] = {a, r};
  void* results[] = {re, im, vectors, schur, basis, factors, pivots};
  lapack_linked::Context context;
  if (lapack_linked_run(arguments, results, context.arena(), nullptr) != 0) return 1;
  for (int b = 0; b < 2; ++b)
    for (int j = 0; j < 4; ++j)
      for (int i = 0; i < 4; ++i) {
        std::complex<double> left = 0;
        double product = 0;
        for (int k = 0; k < 4; ++k) {
          left += a[16 * b + 4 * i + k] * vectors[16 * b + 4 * k + j];
          for (int l = 0; l < 4; ++l)
            product += basis[16 * b + 4 * i + k] * schur[16 * b + 4 * k + l] * basis[16 * b + 4 * j + l];
        }
        const std::complex<double> right =
            std::complex<double>(re[4 * b + j], im[4 * b + j]) * vectors[16 * b + 4 * i + j];
        Near(std::abs(left - right), 0, "A v - lambda v");
        Near(product, a[16 * b + 4 * i + j], "Q T Q'");
      }
  // The rows of r, swapped as the pivots say, are L U.
  for (int k = 0; k < 3; ++k)
    for (int c = 0; c < 3; ++c) std::swap(r[3 * k + c], r[3 * (pivots[k] - 1) + c]);
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 3; ++j) {
      double product = 0;
      for (int k = 0; k <= (i < j ? i : j); ++k) product += (k == i ? 1.0 : factors[3 * i + k]) * factors[3 * k + j];
      Near(product, r[3 * i + j], "L U");
    }
  return failures != 0;
}
