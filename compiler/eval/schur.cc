// Schur forms by QR with shifts, each step written out: the shifted matrix is factored, and its reflectors are applied
// to both sides.
#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/eval/matrix.h"

namespace kiln {
namespace {

constexpr double kEpsilon = 2.2e-16;

double Most(const Matrix& a) {
  double most = 0;
  for (const Number& x : a.v) most = std::max(most, std::abs(x));
  return most;
}

class Schur {
 public:
  Schur(Matrix a, bool real) : n_(a.rows), real_(real), most_(Most(a)), t_(std::move(a)), z_(Identity(n_)) {}

  SchurForm Run() {
    Straighten(0, n_);
    bool converged = true;
    for (int64_t end = n_, tries = 0; end > 0 && converged;) {
      const int64_t first = FirstJoined(end);
      if (first > 0) t_.at(first, first - 1) = 0;
      const int64_t size = end - first;
      if (size == 1 || (size == 2 && real_)) {
        if (size == 2) FinishBlock(first);
        end = first;
        tries = 0;
      } else {
        Step(first, end, ++tries % 10 == 0);
        Straighten(first, end);
        converged = tries < 300;
      }
    }
    SchurForm out = {t_, z_, {}, converged};
    for (int64_t k = 0; k < n_; ++k) {
      const bool joined = real_ && k + 1 < n_ && t_.at(k + 1, k) != 0.0;
      const Number imaginary = joined ? std::sqrt(t_.at(k, k + 1) * t_.at(k + 1, k)) : 0;
      out.values.push_back(t_.at(k, k) + imaginary);
      if (joined) out.values.push_back(t_.at(k, k) - imaginary), ++k;
    }
    return out;
  }

 private:
  // H^H T H for a reflector of rows from `first` on.
  void Apply(const Reflector& h, int64_t first) {
    Reflector whole = h;
    whole.v.assign(n_, 0);
    std::copy(h.v.begin(), h.v.end(), whole.v.begin() + first);
    ApplyRight(whole, &t_);
    ApplyLeft(whole, std::conj(whole.tau), 0, &t_);
    ApplyRight(whole, &z_);
  }

  // Zeros but for one diagonal below the main one.
  void Straighten(int64_t first, int64_t end) {
    for (int64_t k = first; k + 2 < end; ++k) {
      Apply(ReflectorOf(t_, k, k + 1, end), 0);
      for (int64_t r = k + 2; r < end; ++r) t_.at(r, k) = 0;
    }
  }

  int64_t FirstJoined(int64_t end) const {
    int64_t k = end - 1;
    for (; k > 0; --k) {
      const double near = std::abs(t_.at(k, k)) + std::abs(t_.at(k - 1, k - 1));
      if (std::abs(t_.at(k, k - 1)) <= kEpsilon * (near > 0 ? near : most_)) break;
    }
    return k;
  }

  // Eigenvalues of the last two rows as shifts: both of a real matrix, the one near the last number of another.
  void Step(int64_t first, int64_t end, bool unusual) {
    const int64_t size = end - first;
    Matrix s(size, size);
    for (int64_t r = 0; r < size; ++r)
      for (int64_t c = 0; c < size; ++c) s.at(r, c) = t_.at(first + r, first + c);
    const Number a = t_.at(end - 2, end - 2), b = t_.at(end - 2, end - 1), c = t_.at(end - 1, end - 2),
                 d = t_.at(end - 1, end - 1);
    const double off = std::abs(c) + std::abs(t_.at(first + 1, first));
    Matrix shifted = s;
    if (real_) {
      const Number sum = unusual ? 1.5 * off : a + d, product = unusual ? off * off : a * d - b * c;
      shifted = Times(s, s);
      for (int64_t k = 0; k < size * size; ++k) shifted.v[k] -= sum * s.v[k];
      for (int64_t k = 0; k < size; ++k) shifted.at(k, k) += product;
    } else {
      const Number half = (a - d) / 2.0, root = std::sqrt(half * half + b * c);
      const Number away = std::abs(half + root) > std::abs(half - root) ? half + root : half - root;
      const Number shift = unusual ? d + off : away == 0.0 ? d : d - b * c / away;
      for (int64_t k = 0; k < size; ++k) shifted.at(k, k) -= shift;
    }
    for (int64_t k = 0; k + 1 < size; ++k) {
      const Reflector h = ReflectorOf(shifted, k, k, size);
      ApplyLeft(h, std::conj(h.tau), 0, &shifted);
      Apply(h, first);
    }
  }

  // The rotation that gives a block of a real matrix a zero below its diagonal, or if it has no real eigenvalues, equal
  // numbers on it.
  void FinishBlock(int64_t k) {
    const double a = t_.at(k, k).real(), b = t_.at(k, k + 1).real(), c = t_.at(k + 1, k).real(),
                 d = t_.at(k + 1, k + 1).real(), half = (a - d) / 2, square = half * half + b * c;
    double angle = 0.5 * std::atan2(d - a, b + c);
    if (square >= 0) {
      // The vector of the eigenvalue further from d.
      const double value = half + std::copysign(std::sqrt(square), half);
      angle = c == 0 ? 0 : std::atan2(c, value);
    }
    const double x = std::cos(angle), y = std::sin(angle);
    for (Matrix* m : {&t_, &z_})
      for (int64_t r = 0; r < n_; ++r) {
        const Number p = m->at(r, k), q = m->at(r, k + 1);
        m->at(r, k) = x * p + y * q;
        m->at(r, k + 1) = x * q - y * p;
      }
    for (int64_t j = 0; j < n_; ++j) {
      const Number p = t_.at(k, j), q = t_.at(k + 1, j);
      t_.at(k, j) = x * p + y * q;
      t_.at(k + 1, j) = x * q - y * p;
    }
    if (square >= 0)
      t_.at(k + 1, k) = 0;
    else
      t_.at(k, k) = t_.at(k + 1, k + 1) = (t_.at(k, k) + t_.at(k + 1, k + 1)) / 2.0;
  }

  int64_t n_;
  bool real_;
  double most_;
  Matrix t_, z_;
};

// Blocks of a real form become triangular too.
void MakeTriangular(SchurForm* f) {
  const int64_t n = f->t.rows;
  for (int64_t k = 0; k + 1 < n; ++k) {
    if (f->t.at(k + 1, k) == 0.0) continue;
    const Number b = f->t.at(k, k + 1), root = std::sqrt(b * f->t.at(k + 1, k));
    const double length = std::sqrt(std::norm(b) + std::norm(root));
    const Number x = b / length, y = root / length;  // an eigenvector; (-conj(y), conj(x)) is orthogonal to it
    for (Matrix* m : {&f->t, &f->z})
      for (int64_t r = 0; r < n; ++r) {
        const Number p = m->at(r, k), q = m->at(r, k + 1);
        m->at(r, k) = x * p + y * q;
        m->at(r, k + 1) = std::conj(x) * q - std::conj(y) * p;
      }
    for (int64_t c = 0; c < n; ++c) {
      const Number p = f->t.at(k, c), q = f->t.at(k + 1, c);
      f->t.at(k, c) = std::conj(x) * p + std::conj(y) * q;
      f->t.at(k + 1, c) = x * q - y * p;
    }
    f->t.at(k + 1, k) = 0;
  }
}

// A column of length 1 whose largest number is real.
void Normalise(Matrix* v, int64_t column) {
  Number most = 0;
  double length = 0;
  for (int64_t r = 0; r < v->rows; ++r) {
    const Number x = v->at(r, column);
    length += std::norm(x);
    if (std::abs(x) > std::abs(most)) most = x;
  }
  if (!(length > 0)) return;
  for (int64_t r = 0; r < v->rows; ++r) v->at(r, column) *= std::conj(most) / std::abs(most) / std::sqrt(length);
}

}  // namespace

SchurForm SchurOf(const Matrix& a, bool real) {
  if (IsFinite(a)) return Schur(a, real).Run();
  const Number none(std::nan(""), std::nan(""));
  SchurForm out = {a, a, std::vector<Number>(a.rows, none), false};
  std::fill(out.t.v.begin(), out.t.v.end(), none);
  std::fill(out.z.v.begin(), out.z.v.end(), none);
  return out;
}

Matrix EigenvectorsOf(SchurForm f) {
  const int64_t n = f.t.rows;
  MakeTriangular(&f);
  const double tiny = std::max(kEpsilon * Most(f.t), 1e-290);
  Matrix x(n, n);
  for (int64_t j = 0; j < n; ++j) {
    x.at(j, j) = 1;
    for (int64_t r = j - 1; r >= 0; --r) {
      Number sum = 0, apart = f.t.at(r, r) - f.t.at(j, j);
      for (int64_t c = r + 1; c <= j; ++c) sum -= f.t.at(r, c) * x.at(c, j);
      x.at(r, j) = sum / (std::abs(apart) < tiny ? tiny : apart);
      const double size = std::abs(x.at(r, j));
      for (int64_t c = r; c <= j && size > 1e100; ++c) x.at(c, j) /= size;
    }
    Normalise(&x, j);
  }
  Matrix v = Times(f.z, x);
  for (int64_t j = 0; j < n; ++j) Normalise(&v, j);
  return v;
}

}  // namespace kiln
