// Evaluator: FFT, Cholesky, triangular solve, random bits.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>

#include "compiler/eval/families.h"

namespace kiln {
namespace {

using C = std::complex<double>;

C At(const Literal& l, int64_t n) {
  const Element e = l.Get(n);
  return {e.re, e.im};
}
void Put(Literal* l, int64_t n, C v) {
  Element e;
  e.re = v.real();
  e.im = v.imag();
  l->Set(n, e);
}

// One transform of a line, by the definition.
std::vector<C> Transform(const std::vector<C>& in, bool inverse) {
  const int64_t n = static_cast<int64_t>(in.size());
  std::vector<C> out(n);
  const double sign = inverse ? 2 * M_PI : -2 * M_PI;
  for (int64_t k = 0; k < n; ++k) {
    C s = 0;
    for (int64_t j = 0; j < n; ++j)
      s += in[j] * std::polar(1.0, sign * static_cast<double>(j * k % n) / static_cast<double>(n));
    out[k] = inverse ? s / static_cast<double>(n) : s;
  }
  return out;
}

absl::StatusOr<Literal> Fft(const Instruction& i, const Shape& shape, const Literal& x) {
  const FftType type = *i.attrs().fft_type;
  const Ints& len = *i.attrs().fft_length;
  const int64_t rank = shape.rank(), axes = static_cast<int64_t>(len.size());
  const bool inverse = type == FftType::IFFT || type == FftType::IRFFT;
  // Work array in the full complex shape.
  Ints dims = shape.dims();
  for (int64_t k = 0; k < axes; ++k) dims[rank - axes + k] = len[k];
  const IndexSpace ws(dims), is(x.shape().dims()), os(shape.dims());
  std::vector<C> v(Product(dims));
  const int64_t last = rank - 1;
  for (int64_t n = 0; n < static_cast<int64_t>(v.size()); ++n) {
    Ints p = ws.At(n);
    bool mirrored = false;
    if (type == FftType::IRFFT && p[last] > len[axes - 1] / 2) {  // the other half is the conjugate
      mirrored = true;
      for (int64_t k = 0; k < axes; ++k) {
        int64_t& q = p[rank - axes + k];
        q = (len[k] - q) % len[k];
      }
    }
    v[n] = At(x, is.Linear(p));
    if (mirrored) v[n] = std::conj(v[n]);
    if (type == FftType::IRFFT && axes == 1 && (p[last] == 0 || 2 * p[last] == len[0])) v[n] = v[n].real();
  }
  for (int64_t k = 0; k < axes; ++k) {
    const int64_t d = rank - axes + k;
    for (int64_t n = 0; n < static_cast<int64_t>(v.size()); ++n) {
      Ints p = ws.At(n);
      if (p[d] != 0) continue;
      std::vector<C> line(dims[d]);
      for (int64_t q = 0; q < dims[d]; ++q) {
        p[d] = q;
        line[q] = v[ws.Linear(p)];
      }
      line = Transform(line, inverse);
      for (int64_t q = 0; q < dims[d]; ++q) {
        p[d] = q;
        v[ws.Linear(p)] = line[q];
      }
    }
  }
  Literal out(shape);
  for (int64_t n = 0; n < out.size(); ++n) Put(&out, n, v[ws.Linear(os.At(n))]);
  return out;
}

Literal Cholesky(const Instruction& i, const Shape& shape, const Literal& x) {
  const int64_t n = shape.dims().back();
  const bool lower = i.attrs().lower.value_or(false);
  Literal out(shape);
  for (int64_t b = 0; b < (n ? x.size() / (n * n) : 0); ++b) {
    auto a = [&](int64_t r, int64_t c) { return b * n * n + (lower ? r * n + c : c * n + r); };
    bool bad = false;
    for (int64_t c = 0; c < n; ++c) {
      for (int64_t r = c; r < n; ++r) {
        C s = lower ? At(x, a(r, c)) : std::conj(At(x, a(r, c)));
        for (int64_t k = 0; k < c; ++k) {
          const C u = lower ? At(out, a(r, k)) : std::conj(At(out, a(r, k)));
          const C v = lower ? At(out, a(c, k)) : std::conj(At(out, a(c, k)));
          s -= u * std::conj(v);
        }
        if (r == c) {
          bad = bad || !(s.real() > 0);
          s = bad ? C(NAN) : C(std::sqrt(s.real()));
        } else {
          const C d = lower ? At(out, a(c, c)) : std::conj(At(out, a(c, c)));
          s /= d;
        }
        Put(&out, a(r, c), lower ? s : std::conj(s));
      }
    }
  }
  return out;
}

Literal TriangularSolve(const Instruction& i, const Shape& shape, const Literal& a, const Literal& b) {
  const Attributes& t = i.attrs();
  const int64_t n = a.shape().dims().back();
  const bool left = t.left_side.value_or(false), lower = t.lower.value_or(false),
             unit = t.unit_diagonal.value_or(false);
  const bool trans = t.transpose_a.value_or(TransposeA::NO_TRANSPOSE) != TransposeA::NO_TRANSPOSE,
             conj = t.transpose_a == TransposeA::ADJOINT;
  const int64_t rows = b.shape().dim(b.shape().rank() - 2), cols = b.shape().dims().back();
  Literal out(shape);
  const int64_t batches = n ? a.size() / (n * n) : 0;
  for (int64_t q = 0; q < batches; ++q) {
    auto coef = [&](int64_t r, int64_t c) {
      C v = At(a, q * n * n + (trans ? c * n + r : r * n + c));
      return conj ? std::conj(v) : v;
    };
    // op(A) x = b has a lower triangle if `lower` differs from `trans`; x A = b is A^T x^T = b^T.
    const bool low = (lower != trans) == left;
    const int64_t m = left ? cols : rows;
    for (int64_t j = 0; j < m; ++j) {
      auto at = [&](int64_t k) { return q * rows * cols + (left ? k * cols + j : j * cols + k); };
      for (int64_t s = 0; s < n; ++s) {
        const int64_t r = low ? s : n - 1 - s;
        C v = At(b, at(r));
        for (int64_t p = 0; p < s; ++p) {
          const int64_t k = low ? p : n - 1 - p;
          v -= (left ? coef(r, k) : coef(k, r)) * At(out, at(k));
        }
        if (!unit) v /= coef(r, r);
        Put(&out, at(r), v);
      }
    }
  }
  return out;
}

void ThreeFry(uint32_t k0, uint32_t k1, uint32_t c0, uint32_t c1, uint32_t out[2]) {
  static const int kRot[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  const uint32_t ks[3] = {k0, k1, 0x1BD11BDA ^ k0 ^ k1};
  uint32_t x = c0 + ks[0], y = c1 + ks[1];
  for (int r = 0; r < 20; ++r) {
    x += y;
    y = (y << kRot[r % 8]) | (y >> (32 - kRot[r % 8]));
    y ^= x;
    if (r % 4 == 3) {
      const int s = r / 4 + 1;
      x += ks[s % 3];
      y += ks[(s + 1) % 3] + s;
    }
  }
  out[0] = x;
  out[1] = y;
}

void Philox(const uint32_t key[2], const uint32_t ctr[4], uint32_t out[4]) {
  uint32_t k0 = key[0], k1 = key[1], c[4] = {ctr[0], ctr[1], ctr[2], ctr[3]};
  for (int r = 0; r < 10; ++r) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
    const uint32_t n[4] = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
                           static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    std::memcpy(c, n, sizeof c);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  std::memcpy(out, c, sizeof c);
}

absl::StatusOr<Literal> RngBits(const Instruction& i, const Literal& state) {
  const std::string alg = i.attrs().algorithm ? i.attrs().algorithm->text : "rng_default";
  const Shape& s = i.shape().tuple()[1];
  Literal bits(s), next = state;
  const int64_t n = bits.size();
  const int width = InfoOf(s.type()).bits;
  auto put = [&](int64_t k, uint64_t v) {
    if (IsFloat(s.type())) {
      std::memcpy(bits.mutable_data() + k * ByteWidth(s.type()), &v, ByteWidth(s.type()));
      return;
    }
    Element e;
    e.i = static_cast<int64_t>(v);
    bits.Set(k, e);
  };
  std::vector<uint64_t> st;
  if (state.type() == PrimitiveType::U32) {
    for (int64_t k = 0; k + 1 < state.size(); k += 2)
      st.push_back(static_cast<uint64_t>(state.Get(k).i) | static_cast<uint64_t>(state.Get(k + 1).i) << 32);
  } else {
    for (int64_t k = 0; k < state.size(); ++k) st.push_back(static_cast<uint64_t>(state.Get(k).i));
  }
  auto set = [&](size_t k, uint64_t v) {
    Element e;
    if (state.type() == PrimitiveType::U32) {
      e.i = static_cast<int64_t>(v & 0xffffffff);
      next.Set(2 * k, e);
      e.i = static_cast<int64_t>(v >> 32);
      next.Set(2 * k + 1, e);
    } else {
      e.i = static_cast<int64_t>(v);
      next.Set(k, e);
    }
  };
  if (alg == "rng_three_fry") {
    if (st.size() < 2) return ErrorAt(&i, "threefry needs a state of at least 128 bits");
    const uint64_t key = st[0], ctr = st[1];
    auto block = [&](uint64_t k, uint32_t w[2]) {
      const uint64_t c = ctr + k;
      ThreeFry(static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(c),
               static_cast<uint32_t>(c >> 32), w);
    };
    uint64_t blocks = 0;
    uint32_t w[2];
    if (width == 64) {
      for (int64_t k = 0; k < n; ++k) {
        block(k, w);
        put(k, w[0] | static_cast<uint64_t>(w[1]) << 32);
      }
      blocks = n;
    } else {
      // The array is split in halves over the first even dimension, else the largest, rounded up; the two words of a
      // block go to neighbouring positions of that dimension.
      Ints dims = s.dims();
      if (dims.empty()) dims = {1};
      int64_t d = -1;
      for (size_t k = 0; k < dims.size() && d < 0; ++k)
        if (dims[k] % 2 == 0) d = static_cast<int64_t>(k);
      if (d < 0) d = std::max_element(dims.begin(), dims.end()) - dims.begin();
      Ints half = dims;
      half[d] = (dims[d] + 1) / 2;
      const IndexSpace hs(half), full(dims);
      blocks = Product(half);
      for (uint64_t k = 0; k < blocks; ++k) {
        block(k, w);
        Ints p = hs.At(static_cast<int64_t>(k));
        const int64_t h = p[d];
        for (int q = 0; q < 2; ++q) {
          p[d] = 2 * h + q;
          if (p[d] < dims[d]) put(full.Linear(p), w[q]);
        }
      }
    }
    set(1, ctr + blocks);
  } else {
    if (st.size() < 2) return ErrorAt(&i, "philox needs a state of 128 or 192 bits");
    const uint32_t key[2] = {static_cast<uint32_t>(st[0]), static_cast<uint32_t>(st[0] >> 32)};
    const uint64_t lo = st[1], hi = st.size() > 2 ? st[2] : st[0];
    const int64_t per = width == 64 ? 2 : 4;
    const uint64_t blocks = (n + per - 1) / per;
    for (uint64_t k = 0; k < blocks; ++k) {
      const uint64_t l = lo + k, h = hi + (l < lo);
      const uint32_t ctr[4] = {static_cast<uint32_t>(l), static_cast<uint32_t>(l >> 32), static_cast<uint32_t>(h),
                               static_cast<uint32_t>(h >> 32)};
      uint32_t w[4];
      Philox(key, ctr, w);
      for (int64_t q = 0; q < per; ++q) {
        const int64_t at = static_cast<int64_t>(k) * per + q;
        if (at < n) put(at, width == 64 ? w[2 * q] | static_cast<uint64_t>(w[2 * q + 1]) << 32 : w[q]);
      }
    }
    set(1, lo + blocks);
    if (st.size() > 2) set(2, hi + (lo + blocks < lo));
  }
  return Literal::Tuple({next, bits});
}

}  // namespace

absl::StatusOr<Literal> EvalLinalg(const Instruction& i, const Shape& shape, const std::vector<const Literal*>& x) {
  switch (i.opcode()) {
    case Opcode::Fft:
      return Fft(i, shape, *x[0]);
    case Opcode::Cholesky:
      return Cholesky(i, shape, *x[0]);
    case Opcode::TriangularSolve:
      return TriangularSolve(i, shape, *x[0], *x[1]);
    case Opcode::RngBitGenerator:
      return RngBits(i, *x[0]);
    default:
      return absl::NotFoundError("");
  }
}

}  // namespace kiln
