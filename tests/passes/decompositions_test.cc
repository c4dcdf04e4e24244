// The factorisations that are loops of ordinary operations give the matrix back: A = QR, A = V diag(w) V'.
#include <cmath>
#include <random>

#include "compiler/eval/evaluator.h"
#include "compiler/hlo/parser.h"
#include "compiler/pipeline/registry.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

using Matrix = std::vector<std::vector<double>>;

// Matrix `b` of a batch.
Matrix MatrixOf(const Literal& l, int64_t b, int64_t rows, int64_t cols) {
  Matrix out(static_cast<size_t>(rows), std::vector<double>(static_cast<size_t>(cols)));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) out[r][c] = l.Get((b * rows + r) * cols + c).re;
  return out;
}

Literal Expanded(const char* pass, const std::string& text, const Literal& argument) {
  auto m = ParseHlo(text, "t.hlo");
  EXPECT_TRUE(m.ok()) << m.status();
  PassContext ctx;
  auto changed = FindPass(pass)->run(**m, ctx);
  EXPECT_TRUE(changed.ok() && *changed);
  auto out = Evaluate(**m, {argument});
  EXPECT_TRUE(out.ok()) << out.status();
  return *out;
}

Literal Random(const Ints& dims, uint32_t seed) {
  std::mt19937 rng(seed);
  Literal l(Shape::Array(PrimitiveType::F64, dims));
  for (int64_t k = 0; k < l.size(); ++k)
    l.Set(k, Literal::Float(PrimitiveType::F64, static_cast<double>(rng() % 2001) / 1000 - 1).Get(0));
  return l;
}

TEST(Qr, ReflectionsTimesTriangleAreTheMatrix) {
  for (auto [rows, cols] : {std::pair<int64_t, int64_t>{5, 3}, {3, 3}, {3, 5}, {1, 1}}) {
    const std::string shape = "f64[2," + std::to_string(rows) + "," + std::to_string(cols) + "]";
    const int64_t k = std::min(rows, cols);
    const std::string taus = "f64[2," + std::to_string(k) + "]";
    const Literal a = Random({2, rows, cols}, 3);
    const Literal out = Expanded("qr-expander",
                                 "HloModule m\nENTRY e { x = " + shape + " parameter(0)\n ROOT c = (" + shape + ", " +
                                     taus + ") custom-call(x), custom_call_target=\"Qr\" }",
                                 a);
    for (int64_t b = 0; b < 2; ++b) {
      const Matrix packed = MatrixOf(out.elements()[0], b, rows, cols);
      Matrix product(rows, std::vector<double>(cols, 0));
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = r; c < cols; ++c) product[r][c] = packed[r][c];
      for (int64_t j = k - 1; j >= 0; --j) {  // (I - tau v v') product
        std::vector<double> v(rows, 0);
        v[j] = 1;
        for (int64_t r = j + 1; r < rows; ++r) v[r] = packed[r][j];
        const double tau = out.elements()[1].Get(b * k + j).re;
        for (int64_t c = 0; c < cols; ++c) {
          double dot = 0;
          for (int64_t r = 0; r < rows; ++r) dot += v[r] * product[r][c];
          for (int64_t r = 0; r < rows; ++r) product[r][c] -= tau * v[r] * dot;
        }
      }
      const Matrix want = MatrixOf(a, b, rows, cols);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; ++c) EXPECT_NEAR(product[r][c], want[r][c], 1e-12);
    }
  }
}

TEST(Eigh, VectorsAndRisingValuesAreTheMatrix) {
  for (int64_t n : {1, 2, 6}) {
    const std::string shape = "f64[2," + std::to_string(n) + "," + std::to_string(n) + "]";
    const Literal a = Random({2, n, n}, 5);
    const Literal out =
        Expanded("eigh-expander",
                 "HloModule m\nENTRY e { x = " + shape + " parameter(0)\n ROOT c = (" + shape + ", f64[2," +
                     std::to_string(n) + "]) custom-call(x), custom_call_target=\"Eigh\" }",
                 a);
    for (int64_t b = 0; b < 2; ++b) {
      const Matrix v = MatrixOf(out.elements()[0], b, n, n), given = MatrixOf(a, b, n, n);
      for (int64_t k = 0; k + 1 < n; ++k)
        EXPECT_LE(out.elements()[1].Get(b * n + k).re, out.elements()[1].Get(b * n + k + 1).re);
      for (int64_t r = 0; r < n; ++r)
        for (int64_t c = 0; c < n; ++c) {
          double sum = 0;
          for (int64_t k = 0; k < n; ++k) sum += v[r][k] * out.elements()[1].Get(b * n + k).re * v[c][k];
          EXPECT_NEAR(sum, given[std::max(r, c)][std::min(r, c)], 1e-11);  // the lower triangle
        }
    }
  }
}

}  // namespace
}  // namespace kiln
