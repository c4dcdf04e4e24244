// Evaluator: the LAPACK routines of custom calls, by their definitions, in double.
#include "compiler/hlo/lapack.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/eval/families.h"
#include "compiler/eval/matrix.h"

namespace kiln {
namespace {

Matrix Read(const Literal& l, int64_t batch, int64_t rows, int64_t cols) {
  Matrix m(rows, cols);
  const bool complex = IsComplex(l.shape().type());
  for (int64_t k = 0; k < rows * cols; ++k) {
    const Element e = l.Get(batch * rows * cols + k);
    m.v[k] = Number(e.re, complex ? e.im : 0);
  }
  return m;
}

void Write(Literal* l, int64_t batch, const std::vector<Number>& v) {
  for (size_t k = 0; k < v.size(); ++k) {
    Element e;
    e.re = v[k].real();
    e.im = v[k].imag();
    l->Set(batch * static_cast<int64_t>(v.size()) + static_cast<int64_t>(k), e);
  }
}

void WriteInt(Literal* l, int64_t at, int64_t v) {
  Element e;
  e.i = v;
  l->Set(at, e);
}

// Eigenvalues and eigenvectors (columns) of a Hermitian matrix, ascending: rotations that clear one element each.
std::pair<std::vector<Number>, Matrix> Eigen(Matrix a) {
  const int64_t n = a.rows;
  double most = 0;
  for (const Number& x : a.v) most = std::max(most, std::abs(x));
  Matrix v = Identity(n);
  bool turned = true;
  for (int sweep = 0; sweep < 60 && turned; ++sweep) {
    turned = false;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        const double size = std::abs(a.at(p, q));
        if (!(size > 1e-18 * most)) continue;
        turned = true;
        const Number phase = a.at(p, q) / size;
        const double angle = 0.5 * std::atan2(2 * size, (a.at(q, q) - a.at(p, p)).real()), c = std::cos(angle),
                     s = std::sin(angle);
        for (Matrix* m : {&a, &v})
          for (int64_t k = 0; k < n; ++k) {
            const Number x = m->at(k, p), y = m->at(k, q) * std::conj(phase);
            m->at(k, p) = c * x - s * y;
            m->at(k, q) = s * x + c * y;
          }
        for (int64_t k = 0; k < n; ++k) {
          const Number x = a.at(p, k), y = a.at(q, k) * phase;
          a.at(p, k) = c * x - s * y;
          a.at(q, k) = s * x + c * y;
        }
      }
  }
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t x, int64_t y) { return a.at(x, x).real() < a.at(y, y).real(); });
  std::vector<Number> values;
  Matrix sorted(n, n);
  for (int64_t k = 0; k < n; ++k) {
    values.push_back(a.at(order[k], order[k]).real());
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
          Number d = 0;
          for (int64_t r = 0; r < m->rows; ++r) d += std::conj(m->at(r, p)) * m->at(r, j);
          for (int64_t r = 0; r < m->rows; ++r) m->at(r, j) -= d * m->at(r, p);
        }
      double n = 0;
      for (int64_t r = 0; r < m->rows; ++r) n += std::norm(m->at(r, j));
      if (n < 1e-6 && unit + 1 < m->rows) continue;
      for (int64_t r = 0; r < m->rows; ++r) m->at(r, j) /= std::sqrt(n);
      break;
    }
}

// The product of the first reflectors that a matrix keeps.
Matrix ProductOf(const Matrix& a, const Literal& scales, int64_t batch) {
  const int64_t m = a.rows, count = scales.shape().dims().back();
  const Matrix tau = Read(scales, batch, 1, count);
  Matrix q = Identity(m);
  for (int64_t j = count - 1; j >= 0; --j) {
    Reflector h;
    h.v.resize(m);
    h.v[j] = 1;
    for (int64_t r = j + 1; r < m; ++r) h.v[r] = a.at(r, j);
    ApplyLeft(h, tau.v[j], 0, &q);
  }
  return q;
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
  Matrix Operand(size_t k, int64_t r, int64_t c) const { return Read(*operands[k], batch, r, c); }
  void Give(size_t k, const Matrix& m) const { Write(result(k), batch, m.v); }
  void Give(size_t k, const std::vector<Number>& v) const { Write(result(k), batch, v); }
  void GiveInfo(size_t k, int64_t info) const { WriteInt(result(k), batch, info); }
};

// What pivots are chosen by.
double Size(Number x) { return std::fabs(x.real()) + std::fabs(x.imag()); }

// LU with partial pivoting: the factors, the pivots from 1, and the first column without one.
void Getrf(const Factorisation& f, Matrix a) {
  const int64_t m = f.rows(), n = f.cols(), k = std::min(m, n);
  int64_t info = 0;
  for (int64_t j = 0; j < k; ++j) {
    int64_t p = j;
    for (int64_t r = j; r < m; ++r)
      if (Size(a.at(r, j)) > Size(a.at(p, j))) p = r;
    WriteInt(f.result(1), f.batch * k + j, p + 1);
    for (int64_t c = 0; c < n; ++c) std::swap(a.at(p, c), a.at(j, c));
    if (a.at(j, j) == 0.0) {
      if (!info) info = j + 1;
      continue;
    }
    for (int64_t r = j + 1; r < m; ++r) {
      a.at(r, j) /= a.at(j, j);
      for (int64_t c = j + 1; c < n; ++c) a.at(r, c) -= a.at(r, j) * a.at(j, c);
    }
  }
  f.Give(0, a);
  f.GiveInfo(2, info);
}

// QR by reflections: R with the vectors below it, and their scales.
void Geqrf(const Factorisation& f, Matrix a) {
  const int64_t m = f.rows(), n = f.cols(), k = std::min(m, n);
  std::vector<Number> tau(k);
  for (int64_t j = 0; j < k; ++j) {
    const Reflector h = ReflectorOf(a, j, j, m);
    ApplyLeft(h, std::conj(tau[j] = h.tau), j + 1, &a);
    Keep(h, j, j, m, &a);
  }
  f.Give(0, a);
  f.Give(1, tau);
}

// Likewise of the columns in an order of their own: those that are marked, then always the longest that is left.
void Geqp3(const Factorisation& f, Matrix a) {
  const int64_t m = f.rows(), n = f.cols(), k = std::min(m, n);
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 1);
  const auto swap = [&](int64_t x, int64_t y) {
    for (int64_t r = 0; r < m; ++r) std::swap(a.at(r, x), a.at(r, y));
    std::swap(order[x], order[y]);
  };
  int64_t fixed = 0;
  for (int64_t c = 0; c < n; ++c)
    if (f.operands[1]->Get(f.batch * n + c).i != 0) swap(c, fixed++);
  const auto length = [&](int64_t c, int64_t from) {
    double s = 0;
    for (int64_t r = from; r < m; ++r) s += std::norm(a.at(r, c));
    return s;
  };
  std::vector<Number> tau(k);
  for (int64_t j = 0; j < k; ++j) {
    int64_t best = j;
    for (int64_t c = j + 1; j >= fixed && c < n; ++c)
      if (length(c, j) > length(best, j)) best = c;
    swap(j, best);
    const Reflector h = ReflectorOf(a, j, j, m);
    ApplyLeft(h, std::conj(tau[j] = h.tau), j + 1, &a);
    Keep(h, j, j, m, &a);
  }
  f.Give(0, a);
  for (int64_t c = 0; c < n; ++c) WriteInt(f.result(1), f.batch * n + c, order[c]);
  f.Give(2, tau);
}

// The first columns of Q, from what Geqrf gives.
void Orgqr(const Factorisation& f, const Matrix& a) {
  const Matrix q = ProductOf(a, *f.operands[1], f.batch);
  Matrix head(f.rows(), f.cols());
  for (int64_t r = 0; r < f.rows(); ++r)
    for (int64_t c = 0; c < f.cols(); ++c) head.at(r, c) = q.at(r, c);
  f.Give(0, head);
}

void Ormqr(const Factorisation& f, const Matrix& a) {
  Matrix q = ProductOf(a, *f.operands[1], f.batch);
  if (f.call.adjoint) q = Adjoint(q);
  const Shape& s = f.result(0)->shape();
  const Matrix c = f.Operand(2, s.dim(s.rank() - 2), s.dims().back());
  f.Give(0, f.call.left ? Times(q, c) : Times(c, q));
}

// The Hermitian matrix of which one triangle counts.
Matrix FromTriangle(const Matrix& a, bool lower) {
  Matrix out = a;
  for (int64_t r = 0; r < a.cols; ++r) {
    out.at(r, r) = a.at(r, r).real();
    for (int64_t c = 0; c < r; ++c)
      if (lower)
        out.at(c, r) = std::conj(a.at(r, c));
      else
        out.at(r, c) = std::conj(a.at(c, r));
  }
  return out;
}

// Its eigenvectors and eigenvalues.
void Syevd(const Factorisation& f, const Matrix& a) {
  const Matrix whole = FromTriangle(a, f.call.lower);
  const auto [values, vectors] = Eigen(whole);
  f.Give(0, vectors);
  f.Give(1, values);
  if (f.results->size() > 2) f.GiveInfo(2, !IsFinite(whole));
}

// Singular values, descending, and their vectors if the call asks for them.
void Gesdd(const Factorisation& f, const Matrix& a) {
  const int64_t m = f.rows(), n = f.cols(), k = std::min(m, n);
  f.Give(0, a);
  f.GiveInfo(4, !IsFinite(a));
  // Of [0 A; A^H 0] the positive eigenvalues are the singular values, their vectors (u; v) / sqrt 2.
  Matrix both(m + n, m + n);
  for (int64_t r = 0; r < m; ++r)
    for (int64_t c = 0; c < n; ++c) both.at(m + c, r) = std::conj(both.at(r, m + c) = a.at(r, c));
  const auto [values, vectors] = Eigen(both);
  const Shape &us = f.result(2)->shape(), &vs = f.result(3)->shape();
  Matrix u(m, us.dims().back()), v(n, vs.dim(vs.rank() - 2));
  std::vector<Number> sigma(k);
  for (int64_t j = 0; j < k; ++j) {
    const int64_t from = m + n - 1 - j;
    sigma[j] = std::max(values[from].real(), 0.0);
    if (sigma[j].real() < 1e-12 * sigma[0].real()) continue;
    for (int64_t r = 0; r < m && j < u.cols; ++r) u.at(r, j) = vectors.at(r, from) * std::sqrt(2.0);
    for (int64_t r = 0; r < n && j < v.cols; ++r) v.at(r, j) = vectors.at(m + r, from) * std::sqrt(2.0);
  }
  f.Give(1, sigma);
  if (!f.call.vectors) return;
  Orthonormalise(&u);
  Orthonormalise(&v);
  f.Give(2, u);
  f.Give(3, Adjoint(v));
}

// H with Q^H A Q = H, by a reflector for each column; the vectors stand in place of the zeros.
void Gehrd(const Factorisation& f, Matrix a) {
  const int64_t n = f.rows();
  std::vector<Number> tau(n - 1);
  std::vector<Reflector> all;
  for (int64_t k = f.call.low - 1; k + 1 < f.call.high; ++k) {
    all.push_back(ReflectorOf(a, k, k + 1, f.call.high));
    tau[k] = all.back().tau;
    ApplyRight(all.back(), &a);
    ApplyLeft(all.back(), std::conj(tau[k]), 0, &a);
  }
  for (size_t k = 0; k < all.size(); ++k) {
    const int64_t column = f.call.low - 1 + static_cast<int64_t>(k);
    Keep(all[k], column, column + 1, f.call.high, &a);
  }
  f.Give(0, a);
  f.Give(1, tau);
  f.GiveInfo(2, 0);
}

// The same of a Hermitian matrix. The upper triangle is the lower one of the turned matrix.
void Sytrd(const Factorisation& f, const Matrix& a) {
  const int64_t n = f.rows();
  const bool lower = f.call.lower;
  Matrix whole = FromTriangle(a, lower), kept = lower ? a : Turned(a);
  if (!lower) whole = Turned(whole);
  std::vector<Number> diagonal(n), beside(n - 1), tau(n - 1);
  for (int64_t k = 0; k < n; ++k) {
    kept.at(k, k) = diagonal[k] = whole.at(k, k).real();
    if (k + 1 == n) break;
    const Reflector h = ReflectorOf(whole, k, k + 1, n);
    tau[k] = h.tau;
    beside[k] = h.left;
    ApplyRight(h, &whole);
    ApplyLeft(h, std::conj(h.tau), 0, &whole);
    Keep(h, k, k + 1, n, &kept);
  }
  if (!lower)
    for (std::vector<Number>* v : {&diagonal, &beside, &tau}) std::reverse(v->begin(), v->end());
  f.Give(0, lower ? kept : Turned(kept));
  f.Give(1, diagonal);
  f.Give(2, beside);
  f.Give(3, tau);
  f.GiveInfo(4, 0);
}

// Of real matrices the eigenvalues' parts are two results.
size_t GiveEigenvalues(const Factorisation& f, size_t at, const std::vector<Number>& values) {
  f.Give(at, values);
  if (IsComplex(f.operands[0]->shape().type())) return at + 1;
  std::vector<Number> imaginary;
  for (const Number& v : values) imaginary.push_back(v.imag());
  f.Give(at + 1, imaginary);
  return at + 2;
}

// The left eigenvectors are the adjoint's, of conjugate eigenvalues.
void Geev(const Factorisation& f, const Matrix& a) {
  const SchurForm form = SchurOf(a, !IsComplex(f.operands[0]->shape().type()));
  const size_t at = GiveEigenvalues(f, 0, form.values);
  f.GiveInfo(at + 2, !form.converged);
  if (f.call.vectors) f.Give(at + 1, EigenvectorsOf(form));
  if (!f.call.left_vectors) return;
  // T^H, turned, is triangular like T; the first column is then the last.
  const auto reversed = [](const Matrix& m) {
    Matrix out(m.rows, m.cols);
    for (int64_t r = 0; r < m.rows; ++r)
      for (int64_t c = 0; c < m.cols; ++c) out.at(r, c) = m.at(r, m.cols - 1 - c);
    return out;
  };
  f.Give(at, reversed(EigenvectorsOf({Turned(Adjoint(form.t)), reversed(form.z), {}})));
}

void Gees(const Factorisation& f, const Matrix& a) {
  const SchurForm form = SchurOf(a, !IsComplex(f.operands[0]->shape().type()));
  f.Give(0, form.t);
  if (f.call.vectors) f.Give(1, form.z);
  const size_t at = GiveEigenvalues(f, 2, form.values);
  f.GiveInfo(at, 0);
  f.GiveInfo(at + 1, !form.converged);
}

// Elimination of one diagonal; rows that are swapped reach a second place beyond theirs.
void Gtsv(const Factorisation& f) {
  const int64_t n = f.rows(), right = f.cols();
  std::vector<Number> l = f.Operand(0, 1, n).v, d = f.Operand(1, 1, n).v, u = f.Operand(2, 1, n).v;
  Matrix x = f.Operand(3, n, right);
  int64_t info = 0;
  for (int64_t i = 0; i + 1 < n && !info; ++i) {
    const Number below = l[i + 1];
    if (i + 2 < n) l[i + 1] = 0;
    const bool swapped = !(Size(d[i]) >= Size(below));
    if (!swapped && d[i] == 0.0) {
      info = i + 1;
      break;
    }
    Number rows[2][3] = {{d[i], u[i], 0}, {below, d[i + 1], i + 2 < n ? u[i + 1] : 0}};
    if (swapped) {
      std::swap(rows[0], rows[1]);
      for (int64_t c = 0; c < right; ++c) std::swap(x.at(i, c), x.at(i + 1, c));
    }
    const Number factor = rows[1][0] / rows[0][0];
    d[i] = rows[0][0];
    u[i] = rows[0][1];
    d[i + 1] = rows[1][1] - factor * rows[0][1];
    if (i + 2 < n) {
      l[i + 1] = rows[0][2];
      u[i + 1] = rows[1][2] - factor * rows[0][2];
    }
    for (int64_t c = 0; c < right; ++c) x.at(i + 1, c) -= factor * x.at(i, c);
  }
  if (!info && n > 0 && d[n - 1] == 0.0) info = n;
  for (int64_t i = n - 1; i >= 0 && !info; --i)
    for (int64_t c = 0; c < right; ++c) {
      if (i + 1 < n) x.at(i, c) -= u[i] * x.at(i + 1, c);
      if (i + 2 < n) x.at(i, c) -= l[i + 1] * x.at(i + 2, c);
      x.at(i, c) /= d[i];
    }
  f.Give(0, l);
  f.Give(1, d);
  f.Give(2, u);
  f.Give(3, x);
  f.GiveInfo(4, info);
}

void Factorise(const Factorisation& f) {
  if (f.call.routine == LapackRoutine::kGtsv) return Gtsv(f);
  Matrix a = f.Operand(0, f.rows(), f.cols());
  switch (f.call.routine) {
    case LapackRoutine::kGetrf:
      return Getrf(f, std::move(a));
    case LapackRoutine::kGeqrf:
      return Geqrf(f, std::move(a));
    case LapackRoutine::kOrgqr:
      return Orgqr(f, a);
    case LapackRoutine::kOrmqr:
      return Ormqr(f, a);
    case LapackRoutine::kGeqp3:
      return Geqp3(f, std::move(a));
    case LapackRoutine::kSyevd:
      return Syevd(f, a);
    case LapackRoutine::kGesdd:
      return Gesdd(f, a);
    case LapackRoutine::kGehrd:
      return Gehrd(f, std::move(a));
    case LapackRoutine::kSytrd:
      return Sytrd(f, a);
    case LapackRoutine::kGeev:
      return Geev(f, a);
    case LapackRoutine::kGees:
      return Gees(f, a);
    case LapackRoutine::kGtsv:
      return;
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
