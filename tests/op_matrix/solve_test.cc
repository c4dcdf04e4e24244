// Triangular solves and Cholesky factors of every form and of extents below, at and across a block, at two CPU levels.
// A solution times its matrix is the right-hand side, a factor times its transpose the matrix; both by products here.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "aot/tools/runner.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/verify.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

// Rows of numbers below one, with a diagonal that lets sums of `n` products stay small.
Literal Matrices(PrimitiveType type, int64_t batch, int64_t rows, int64_t cols, double diagonal, bool symmetric) {
  Literal l(Shape::Array(type, {batch, rows, cols}));
  for (int64_t k = 0; k < l.size(); ++k) {
    const int64_t b = k / (rows * cols), r = k / cols % rows, c = k % cols;
    Element e;
    e.re = std::sin(static_cast<double>(symmetric ? (r + 1) * (c + 1) + (r + c) % 5 : r * 7 + c * c * 3 + 1) +
                    static_cast<double>(b) * 11.0);
    if (r == c) e.re += diagonal;
    l.Set(k, e);
  }
  return l;
}

std::vector<Literal> Compiled(const std::string& text, const std::vector<Literal>& arguments, const char* level) {
  auto m = ParseHlo(text, "t.hlo");
  EXPECT_TRUE(m.ok()) << m.status();
  if (!m.ok()) return {};
  EXPECT_TRUE(VerifyModule(**m).ok()) << VerifyModule(**m);
  CompileOptions options;
  options.cpu.levels = {level};
  auto r = RunModule(std::move(*m), arguments, options, RunOptions());
  EXPECT_TRUE(r.ok()) << r.status();
  return r.ok() ? r->results : std::vector<Literal>();
}

double At(const Literal& l, int64_t b, int64_t r, int64_t c) {
  return l.Get((b * l.shape().dim(1) + r) * l.shape().dim(2) + c).re;
}

struct Form {
  bool left, lower, unit, transposed;
};

// Element (r, c) of op(A), of which one triangle counts.
double OfTriangle(const Literal& a, const Form& f, int64_t b, int64_t r, int64_t c) {
  if (f.transposed) std::swap(r, c);
  if (f.lower ? r < c : r > c) return 0;
  return r == c && f.unit ? 1 : At(a, b, r, c);
}

// The largest difference of op(A) X, or X op(A), and B.
double Error(const Form& f, const Literal& a, const Literal& x, const Literal& b) {
  const int64_t batch = b.shape().dim(0), rows = b.shape().dim(1), cols = b.shape().dim(2), n = a.shape().dim(1);
  double error = 0;
  for (int64_t q = 0; q < batch; ++q)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c) {
        double sum = -At(b, q, r, c);
        for (int64_t k = 0; k < n; ++k)
          sum += f.left ? OfTriangle(a, f, q, r, k) * At(x, q, k, c) : At(x, q, r, k) * OfTriangle(a, f, q, k, c);
        error = std::max(error, std::isnan(sum) ? 1 : std::fabs(sum));
      }
  return error;
}

// One matrix, or so many that they are taken side by side, and lanes stay empty.
class Solve : public testing::TestWithParam<std::tuple<const char*, const char*, int64_t>> {
 protected:
  std::string type() const { return std::get<0>(GetParam()); }
  PrimitiveType element() const { return type() == "f64" ? PrimitiveType::F64 : PrimitiveType::F32; }
  int64_t batch() const { return std::get<2>(GetParam()); }
  double tolerance() const { return type() == "f64" ? 1e-12 : 1e-4; }
};

// All forms for matrices of n x n and `other` right-hand sides, in one program.
TEST_P(Solve, GivesBackTheRightHandSide) {
  const bool many = batch() > 1;
  for (const int64_t n : many ? Ints{1, 5, 33} : Ints{1, 5, 32, 33, 70})
    for (const int64_t other : many ? Ints{1, 6} : Ints{1, 3, 16, 37}) {
      const Literal a = Matrices(element(), batch(), n, n, static_cast<double>(n), false);
      Literal small = a;  // a unit diagonal does not outweigh its row
      for (int64_t k = 0; k < a.size(); ++k) {
        Element e = a.Get(k);
        e.re /= static_cast<double>(2 * n);
        small.Set(k, e);
      }
      const std::vector<Literal> arguments = {a, small, Matrices(element(), batch(), n, other, 0, false),
                                              Matrices(element(), batch(), other, n, 0, false)};
      std::string text = "HloModule m\nENTRY e {\n", results;
      for (size_t k = 0; k < arguments.size(); ++k)
        absl::StrAppend(&text, " p", k, " = ", arguments[k].shape().ToString(false), " parameter(", k, ")\n");
      std::vector<Form> forms;
      for (int bits = 0; bits < 16; ++bits) {
        const Form f{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
        const auto flag = [](bool v) { return v ? "true" : "false"; };
        absl::StrAppend(&text, " x", bits, " = ", arguments[f.left ? 2 : 3].shape().ToString(false),
                        " triangular-solve(p", f.unit ? 1 : 0, ", p", f.left ? 2 : 3, "), left_side=", flag(f.left),
                        ", lower=", flag(f.lower), ", unit_diagonal=", flag(f.unit),
                        ", transpose_a=", f.transposed ? "TRANSPOSE" : "NO_TRANSPOSE", "\n");
        absl::StrAppend(&results, bits ? ", x" : "x", bits);
        forms.push_back(f);
      }
      const auto x =
          Compiled(absl::StrCat(text, " ROOT r = tuple(", results, ")\n}"), arguments, std::get<1>(GetParam()));
      ASSERT_EQ(x.size(), forms.size());
      for (size_t k = 0; k < forms.size(); ++k) {
        const Form& f = forms[k];
        EXPECT_LE(Error(f, arguments[f.unit ? 1 : 0], x[k], arguments[f.left ? 2 : 3]), tolerance())
            << "n " << n << ", " << other << " right-hand sides, form " << k;
      }
    }
}

TEST_P(Solve, CholeskyMultipliesBackAndSaysWhatIsNotPositive) {
  for (const int64_t n : batch() > 1 ? Ints{1, 5, 33} : Ints{1, 5, 32, 33, 70, 130})
    for (const bool lower : {false, true})
      for (const bool positive : {false, true}) {
        Literal a = Matrices(element(), batch(), n, n, static_cast<double>(2 * n), true);
        Element bad;
        bad.re = -1;
        if (!positive) a.Set(a.size() - 1, bad);
        const std::string matrix = absl::StrCat(type(), "[", batch(), ",", n, ",", n, "]");
        const auto l = Compiled(absl::StrCat("HloModule m\nENTRY e { a = ", matrix, " parameter(0)\n ROOT l = ", matrix,
                                             " cholesky(a), lower=", lower ? "true" : "false", " }"),
                                {a}, std::get<1>(GetParam()));
        ASSERT_EQ(l.size(), 1u);
        EXPECT_EQ(std::isnan(At(l[0], batch() - 1, n - 1, n - 1)), !positive);
        for (int64_t b = 0; b < batch() - !positive; ++b)
          for (int64_t r = 0; r < n; ++r)
            for (int64_t c = 0; c < n; ++c) {
              double sum = 0;
              for (int64_t k = 0; k < n; ++k)
                sum += lower ? At(l[0], b, r, k) * At(l[0], b, c, k) : At(l[0], b, k, r) * At(l[0], b, k, c);
              EXPECT_NEAR(sum, At(a, b, r, c), tolerance() * static_cast<double>(n)) << n << " at " << r << "," << c;
              if (lower ? r < c : r > c) {
                EXPECT_EQ(At(l[0], b, r, c), 0);
              }
            }
      }
}

INSTANTIATE_TEST_SUITE_P(Types, Solve,
                         testing::Combine(testing::Values("f32", "f64"), testing::Values("native", "v3"),
                                          testing::Values(1, 21)));

}  // namespace
}  // namespace kiln
