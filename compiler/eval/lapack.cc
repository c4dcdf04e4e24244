// Evaluator: the LAPACK routines of custom calls, by their definitions, in double.
#include "compiler/hlo/lapack.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/eval/families.h"

namespace kiln {
namespace {

struct Matrix {
  Matrix(int64_t r, int64_t c) : rows(r), cols(c), v(r * c) {}
  double& at(int64_t r, int64_t c) { return v[r * cols + c]; }
  double at(int64_t r, int64_t c) const { return v[r * cols + c]; }
  int64_t rows, cols;
  std::vector<double> v;
};

Matrix Identity(int64_t n) {
  Matrix m(n, n);
  for (int64_t k = 0; k < n; ++k) m.at(k, k) = 1;
  return m;
}

Matrix Read(const Literal& l, int64_t batch, int64_t rows, int64_t cols) {
  Matrix m(rows, cols);
  for (int64_t k = 0; k < rows * cols; ++k) m.v[k] = l.Get(batch * rows * cols + k).re;
  return m;
}

void Write(Literal* l, int64_t batch, const std::vector<double>& v) {
  for (size_t k = 0; k < v.size(); ++k) {
    Element e;
    e.re = v[k];
    l->Set(batch * static_cast<int64_t>(v.size()) + static_cast<int64_t>(k), e);
  }
}

void WriteInt(Literal* l, int64_t at, int64_t v) {
  Element e;
  e.i = v;
  l->Set(at, e);
}

// Eigenvalues and eigenvectors (columns) of a symmetric matrix, ascending: rotations that clear one element each.
std::pair<std::vector<double>, Matrix> Eigen(Matrix a) {
  const int64_t n = a.rows;
  Matrix v = Identity(n);
  for (int sweep = 0; sweep < 60; ++sweep)
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        if (std::fabs(a.at(p, q)) <= 1e-300) continue;
        const double angle = 0.5 * std::atan2(2 * a.at(p, q), a.at(q, q) - a.at(p, p)), c = std::cos(angle),
                     s = std::sin(angle);
        for (Matrix* m : {&a, &v})
          for (int64_t k = 0; k < n; ++k) {
            const double x = m->at(k, p), y = m->at(k, q);
            m->at(k, p) = c * x - s * y;
            m->at(k, q) = s * x + c * y;
          }
        for (int64_t k = 0; k < n; ++k) {
          const double x = a.at(p, k), y = a.at(q, k);
          a.at(p, k) = c * x - s * y;
          a.at(q, k) = s * x + c * y;
        }
      }
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) { return a.at(x, x) < a.at(y, y); });
  std::vector<double> values;
  Matrix sorted(n, n);
  for (int64_t k = 0; k < n; ++k) {
    values.push_back(a.at(order[k], order[k]));
    for (int64_t r = 0; r < n; ++r) sorted.at(r, k) = v.at(r, order[k]);
  }
  return {values, sorted};
}

// Columns made orthonormal one by one; a column without length becomes the first unit vector that has some left.
void Orthonormalise(Matrix* m) {
  for (int64_t j = 0; j < m->cols; ++j)
    for (int64_t unit = -1; unit < m->rows; ++unit) {
      if (unit >= 0)
        for (int64_t r = 0; r < m->rows; ++r) m->at(r, j) = r == unit;
      for (int twice = 0; twice < 2; ++twice)
        for (int64_t p = 0; p < j; ++p) {
          double d = 0;
          for (int64_t r = 0; r < m->rows; ++r) d += m->at(r, j) * m->at(r, p);
          for (int64_t r = 0; r < m->rows; ++r) m->at(r, j) -= d * m->at(r, p);
        }
      double n = 0;
      for (int64_t r = 0; r < m->rows; ++r) n += m->at(r, j) * m->at(r, j);
      if (n < 1e-6 && unit + 1 < m->rows) continue;
      for (int64_t r = 0; r < m->rows; ++r) m->at(r, j) /= std::sqrt(n);
      break;
    }
}

// One matrix of a batch: the call, which matrix, the operands and the results.
struct Factorisation {
  const LapackCall& call;
  int64_t batch;
  const std::vector<const Literal*>& operands;
  std::vector<Literal>* results;

  int64_t rows() const { return call.rows; }
  int64_t cols() const { return call.cols; }
  Literal* result(size_t k) const { return &(*results)[k]; }
};

// LU with partial pivoting: the factors, the pivots from 1, and the first column without one.
void Getrf(const Factorisation& f, Matrix a) {
  const int64_t m = f.rows(), n = f.cols(), k = std::min(m, n);
  int64_t info = 0;
  for (int64_t j = 0; j < k; ++j) {
    int64_t p = j;
    for (int64_t r = j; r < m; ++r)
      if (std::fabs(a.at(r, j)) > std::fabs(a.at(p, j))) p = r;
    WriteInt(f.result(1), f.batch * k + j, p + 1);
    for (int64_t c = 0; c < n; ++c) std::swap(a.at(p, c), a.at(j, c));
    if (a.at(j, j) == 0) {
      if (!info) info = j + 1;
      continue;
    }
    for (int64_t r = j + 1; r < m; ++r) {
      a.at(r, j) /= a.at(j, j);
      for (int64_t c = j + 1; c < n; ++c) a.at(r, c) -= a.at(r, j) * a.at(j, c);
    }
  }
  Write(f.result(0), f.batch, a.v);
  WriteInt(f.result(2), f.batch, info);
}

// QR by reflections: R with the vectors below it, and their scales.
void Geqrf(const Factorisation& f, Matrix a) {
  const int64_t m = f.rows(), n = f.cols(), k = std::min(m, n);
  std::vector<double> tau(k);
  for (int64_t j = 0; j < k; ++j) {
    double s = 0;
    for (int64_t r = j + 1; r < m; ++r) s += a.at(r, j) * a.at(r, j);
    if (s == 0) continue;
    const double alpha = a.at(j, j), beta = -std::copysign(std::sqrt(alpha * alpha + s), alpha);
    tau[j] = (beta - alpha) / beta;
    for (int64_t r = j + 1; r < m; ++r) a.at(r, j) /= alpha - beta;
    a.at(j, j) = beta;
    for (int64_t c = j + 1; c < n; ++c) {
      double d = a.at(j, c);
      for (int64_t r = j + 1; r < m; ++r) d += a.at(r, j) * a.at(r, c);
      a.at(j, c) -= tau[j] * d;
      for (int64_t r = j + 1; r < m; ++r) a.at(r, c) -= tau[j] * d * a.at(r, j);
    }
  }
  Write(f.result(0), f.batch, a.v);
  Write(f.result(1), f.batch, tau);
}

// The first columns of Q, from what Geqrf gives.
void Orgqr(const Factorisation& f, Matrix a) {
  const int64_t m = f.rows(), n = f.cols();
  const Literal& scales = *f.operands[1];
  const int64_t count = scales.shape().dims().back();
  Matrix q = Identity(m);
  for (int64_t j = count - 1; j >= 0; --j) {  // q = (I - tau v v^T) q
    const double tau = scales.Get(f.batch * count + j).re;
    std::vector<double> v(m);
    v[j] = 1;
    for (int64_t r = j + 1; r < m; ++r) v[r] = a.at(r, j);
    for (int64_t c = 0; c < m; ++c) {
      double d = 0;
      for (int64_t r = 0; r < m; ++r) d += v[r] * q.at(r, c);
      for (int64_t r = 0; r < m; ++r) q.at(r, c) -= tau * d * v[r];
    }
  }
  Matrix head(m, n);
  for (int64_t r = 0; r < m; ++r)
    for (int64_t c = 0; c < n; ++c) head.at(r, c) = q.at(r, c);
  Write(f.result(0), f.batch, head.v);
}

// Eigenvectors and eigenvalues of a symmetric matrix of which one triangle counts.
void Syevd(const Factorisation& f, Matrix a) {
  for (int64_t r = 0; r < a.cols; ++r)
    for (int64_t c = 0; c < r; ++c) (f.call.lower ? a.at(c, r) : a.at(r, c)) = f.call.lower ? a.at(r, c) : a.at(c, r);
  const auto [values, vectors] = Eigen(a);
  Write(f.result(0), f.batch, vectors.v);
  Write(f.result(1), f.batch, values);
}

// Singular values, descending, and their vectors if the call asks for them.
void Gesdd(const Factorisation& f, Matrix a) {
  const int64_t m = f.rows(), n = f.cols(), k = std::min(m, n);
  Write(f.result(0), f.batch, a.v);
  // Of [0 A; A^T 0] the positive eigenvalues are the singular values, their vectors (u; v) / sqrt 2.
  Matrix both(m + n, m + n);
  for (int64_t r = 0; r < m; ++r)
    for (int64_t c = 0; c < n; ++c) both.at(r, m + c) = both.at(m + c, r) = a.at(r, c);
  const auto [values, vectors] = Eigen(both);
  const Shape &us = f.result(2)->shape(), &vs = f.result(3)->shape();
  Matrix u(m, us.dims().back()), v(n, vs.dim(vs.rank() - 2));
  std::vector<double> sigma(k);
  for (int64_t j = 0; j < k; ++j) {
    const int64_t from = m + n - 1 - j;
    sigma[j] = std::max(values[from], 0.0);
    if (sigma[j] < 1e-12 * sigma[0]) continue;
    for (int64_t r = 0; r < m && j < u.cols; ++r) u.at(r, j) = vectors.at(r, from) * std::sqrt(2.0);
    for (int64_t r = 0; r < n && j < v.cols; ++r) v.at(r, j) = vectors.at(m + r, from) * std::sqrt(2.0);
  }
  Write(f.result(1), f.batch, sigma);
  if (!f.call.vectors) return;
  Orthonormalise(&u);
  Orthonormalise(&v);
  Matrix vt(v.cols, n);
  for (int64_t r = 0; r < v.cols; ++r)
    for (int64_t c = 0; c < n; ++c) vt.at(r, c) = v.at(c, r);
  Write(f.result(2), f.batch, u.v);
  Write(f.result(3), f.batch, vt.v);
}

void Factorise(const Factorisation& f) {
  Matrix a = Read(*f.operands[0], f.batch, f.rows(), f.cols());
  switch (f.call.routine) {
    case LapackRoutine::kGetrf:
      return Getrf(f, std::move(a));
    case LapackRoutine::kGeqrf:
      return Geqrf(f, std::move(a));
    case LapackRoutine::kOrgqr:
      return Orgqr(f, std::move(a));
    case LapackRoutine::kSyevd:
      return Syevd(f, std::move(a));
    case LapackRoutine::kGesdd:
      return Gesdd(f, std::move(a));
  }
}

}  // namespace

absl::StatusOr<Literal> EvalLapack(const Instruction& i, const Shape&, const std::vector<const Literal*>& x) {
  const std::optional<LapackCall> call = LapackOf(&i);
  if (!call) return absl::NotFoundError("");
  std::vector<Literal> out;
  for (const Shape& s : i.shape().IsTuple() ? i.shape().tuple() : std::vector<Shape>{i.shape()}) out.emplace_back(s);
  for (int64_t b = 0; b < call->batch; ++b) Factorise({*call, b, x, &out});
  return i.shape().IsTuple() ? Literal::Tuple(std::move(out)) : std::move(out[0]);
}

}  // namespace kiln
