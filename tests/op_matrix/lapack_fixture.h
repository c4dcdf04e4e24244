// What the tests of LAPACK's routines share: matrices, and a run of a module for one case.
#pragma once

#include <cmath>
#include <complex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "aot/tools/runner.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/verify.h"
#include "gtest/gtest.h"

namespace kiln {

struct Case {
  const char* backend;
  const char* type;
  int m, n, batch;
  bool singular;

  bool complex() const { return type[0] == 'c' || type[0] == 'z'; }
  bool wide() const { return type[0] == 'd' || type[0] == 'z'; }
};

using Num = std::complex<double>;
using Mat = std::vector<std::vector<Num>>;

inline Mat Zeros(size_t rows, size_t cols) { return Mat(rows, std::vector<Num>(cols)); }

inline Mat One(size_t n) {
  Mat out = Zeros(n, n);
  for (size_t k = 0; k < n; ++k) out[k][k] = 1;
  return out;
}

// Number `at` of an array.
inline Num At(const Literal& l, int64_t at) {
  const Element e = l.Get(at);
  return IsComplex(l.shape().type()) ? Num(e.re, e.im) : Num(e.re);
}

// Matrix `b` of a batch.
inline Mat Part(const Literal& l, int64_t b) {
  const int64_t r = l.shape().dim(l.shape().rank() - 2), c = l.shape().dims().back();
  Mat out = Zeros(r, c);
  for (int64_t k = 0; k < r * c; ++k) out[k / c][k % c] = At(l, b * r * c + k);
  return out;
}

inline Mat Times(const Mat& a, const Mat& b) {
  Mat out = Zeros(a.size(), b[0].size());
  for (size_t r = 0; r < a.size(); ++r)
    for (size_t c = 0; c < b[0].size(); ++c)
      for (size_t k = 0; k < b.size(); ++k) out[r][c] += a[r][k] * b[k][c];
  return out;
}

inline Mat Adjoint(const Mat& a) {
  Mat out = Zeros(a[0].size(), a.size());
  for (size_t r = 0; r < a.size(); ++r)
    for (size_t c = 0; c < a[0].size(); ++c) out[c][r] = std::conj(a[r][c]);
  return out;
}

inline void Near(const Mat& a, const Mat& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t r = 0; r < a.size(); ++r)
    for (size_t c = 0; c < a[0].size(); ++c)
      EXPECT_LE(std::abs(a[r][c] - b[r][c]), tolerance)
          << what << " " << r << "," << c << ": " << a[r][c] << " and " << b[r][c];
}

// That the columns are orthonormal.
inline void Unitary(const Mat& q, double tolerance, const std::string& what) {
  Near(Times(Adjoint(q), q), One(q[0].size()), tolerance, what);
}

class LapackTest : public testing::TestWithParam<Case> {
 protected:
  // In the text stand for the case: $T its type and $R that of its parts, $C that of complex numbers of its width, $P
  // the routines' letter, $Q and $S how those of Householder products and of symmetric matrices begin, $B the batch, $M
  // and $N the extents, $K the smaller one, $L one less than $N.
  std::string Filled(const std::string& text) const {
    const Case& c = GetParam();
    return absl::StrReplaceAll(text, {{"$T", c.complex() ? (c.wide() ? "c128" : "c64")
                                             : c.wide()  ? "f64"
                                                         : "f32"},
                                      {"$R", c.wide() ? "f64" : "f32"},
                                      {"$C", c.wide() ? "c128" : "c64"},
                                      {"$P", c.type},
                                      {"$Q", c.complex() ? "un" : "or"},
                                      {"$S", c.complex() ? "he" : "sy"},
                                      {"$B", absl::StrCat(c.batch)},
                                      {"$M", absl::StrCat(c.m)},
                                      {"$N", absl::StrCat(c.n)},
                                      {"$L", absl::StrCat(c.n - 1)},
                                      {"$K", absl::StrCat(std::min(c.m, c.n))}});
  }
  std::vector<Literal> Run(const std::string& text, const std::vector<Literal>& args) {
    auto m = ParseHlo(Filled(text), "t.hlo");
    EXPECT_TRUE(m.ok()) << m.status();
    EXPECT_TRUE(VerifyModule(**m).ok()) << VerifyModule(**m);
    CompileOptions o;
    o.cpu.levels = {"native"};
    RunOptions run;
    run.backend = GetParam().backend;
    auto r = RunModule(std::move(*m), args, o, run);
    EXPECT_TRUE(r.ok()) << r.status();
    return r.ok() ? r->results : std::vector<Literal>();
  }
  Literal Array(const std::vector<int64_t>& dims) const {
    const Case& c = GetParam();
    const PrimitiveType real = c.wide() ? PrimitiveType::F64 : PrimitiveType::F32;
    const PrimitiveType complex = c.wide() ? PrimitiveType::C128 : PrimitiveType::C64;
    return Literal(Shape::Array(c.complex() ? complex : real, Ints(dims.begin(), dims.end())));
  }
  // A batch of matrices; Hermitian ones if asked for. Singular ones have two equal columns, or rank one.
  Literal Input(int64_t rows, int64_t cols, bool symmetric) const {
    const Case& c = GetParam();
    Literal l = Array({c.batch, rows, cols});
    for (int64_t k = 0; k < l.size(); ++k) {
      const int64_t b = k / (rows * cols), r = k / cols % rows, q = k % cols;
      Element e;
      e.re = std::sin(static_cast<double>((symmetric ? (r + 1) * (q + 1) : r * 7 + q * q * 3) + b * 11));
      e.im =
          symmetric ? std::sin(static_cast<double>(r * r - q * q)) : std::cos(static_cast<double>(r * 5 + q * q + b));
      if (c.singular && !symmetric && q == cols - 1) {
        e.re = std::sin(static_cast<double>(r * 7 + b * 11));
        e.im = std::cos(static_cast<double>(r * 5 + b));
      }
      if (c.singular && symmetric) {
        const Num x = std::polar(static_cast<double>((r + 1) * (q + 1)), static_cast<double>(r - q));
        e.re = c.complex() ? x.real() : static_cast<double>((r + 1) * (q + 1));
        e.im = x.imag();
      }
      l.Set(k, e);
    }
    return l;
  }
  double Tolerance() const { return GetParam().wide() ? 1e-11 : 2e-4; }
};

// Small matrices of all types, compiled and evaluated.
inline std::vector<Case> SmallCases() {
  std::vector<Case> out;
  for (const char* type : {"s", "d", "c", "z"})
    for (const char* backend : {"cpu", "reference"})
      for (auto [m, n] : {std::pair{5, 5}, {9, 4}, {4, 9}, {1, 1}})
        for (bool singular : {false, true}) out.push_back({backend, type, m, n, 2, singular});
  return out;
}

inline std::string LapackCaseName(const testing::TestParamInfo<Case>& i) {
  const Case& c = i.param;
  return absl::StrCat(c.backend, "_", c.type, "_", c.m, "x", c.n, "_", c.batch, c.singular ? "_singular" : "");
}

}  // namespace kiln
