#include "compiler/eval/matrix.h"

#include <algorithm>
#include <cmath>

namespace kiln {

Matrix Identity(int64_t n) {
  Matrix m(n, n);
  for (int64_t k = 0; k < n; ++k) m.at(k, k) = 1;
  return m;
}

Matrix Adjoint(const Matrix& a) {
  Matrix out(a.cols, a.rows);
  for (int64_t r = 0; r < a.rows; ++r)
    for (int64_t c = 0; c < a.cols; ++c) out.at(c, r) = std::conj(a.at(r, c));
  return out;
}

Matrix Times(const Matrix& a, const Matrix& b) {
  Matrix out(a.rows, b.cols);
  for (int64_t r = 0; r < a.rows; ++r)
    for (int64_t k = 0; k < a.cols; ++k)
      for (int64_t c = 0; c < b.cols; ++c) out.at(r, c) += a.at(r, k) * b.at(k, c);
  return out;
}

Matrix Turned(const Matrix& a) {
  Matrix out(a.rows, a.cols);
  for (int64_t r = 0; r < a.rows; ++r)
    for (int64_t c = 0; c < a.cols; ++c) out.at(r, c) = a.at(a.rows - 1 - r, a.cols - 1 - c);
  return out;
}

bool IsFinite(const Matrix& a) {
  return std::all_of(a.v.begin(), a.v.end(),
                     [](Number x) { return std::isfinite(x.real()) && std::isfinite(x.imag()); });
}

Reflector ReflectorOf(const Matrix& a, int64_t column, int64_t first, int64_t last) {
  Reflector h;
  h.v.resize(a.rows);
  h.v[first] = 1;
  const Number alpha = h.left = a.at(first, column);
  double below = 0;
  for (int64_t r = first + 1; r < last; ++r) below += std::norm(a.at(r, column));
  if (below == 0 && alpha.imag() == 0) return h;
  h.left = -std::copysign(std::sqrt(std::norm(alpha) + below), alpha.real());
  h.tau = (h.left - alpha) / h.left;
  for (int64_t r = first + 1; r < last; ++r) h.v[r] = a.at(r, column) / (alpha - h.left);
  return h;
}

void ApplyLeft(const Reflector& h, Number tau, int64_t from, Matrix* a) {
  for (int64_t c = from; c < a->cols; ++c) {
    Number d = 0;
    for (int64_t r = 0; r < a->rows; ++r) d += std::conj(h.v[r]) * a->at(r, c);
    for (int64_t r = 0; r < a->rows; ++r) a->at(r, c) -= tau * d * h.v[r];
  }
}

void ApplyRight(const Reflector& h, Matrix* a) {
  for (int64_t r = 0; r < a->rows; ++r) {
    Number d = 0;
    for (int64_t c = 0; c < a->cols; ++c) d += a->at(r, c) * h.v[c];
    for (int64_t c = 0; c < a->cols; ++c) a->at(r, c) -= h.tau * d * std::conj(h.v[c]);
  }
}

void Keep(const Reflector& h, int64_t column, int64_t first, int64_t last, Matrix* a) {
  a->at(first, column) = h.left;
  for (int64_t r = first + 1; r < last; ++r) a->at(r, column) = h.v[r];
}

}  // namespace kiln
