// The rest of LAPACK's routines that JAX calls: products with Householder reflectors, QR with pivoted columns, the
// reductions to Hessenberg and tridiagonal matrices, tridiagonal systems, and eigenvalues of matrices that need not be
// symmetric. What they give must satisfy its equation, compiled and evaluated.
#include <algorithm>

#include "compiler/hlo/lapack.h"
#include "tests/op_matrix/lapack_fixture.h"

namespace kiln {
namespace {

using Reductions = LapackTest;

// Q = H_0 H_1 ... of the reflectors below the diagonal that lies `below` under the main one.
Mat QOf(const Mat& a, const Literal& tau, int64_t batch, size_t below) {
  const size_t n = a.size();
  const int64_t count = tau.shape().dims().back();
  Mat q = One(n);
  for (int64_t j = 0; j < count; ++j) {
    Mat v = Zeros(n, 1);
    for (size_t r = j + below; r < n; ++r) v[r][0] = r == j + below ? 1 : a[r][j];
    const Mat step = Times(v, Adjoint(v)), turned = Times(q, step);
    for (size_t r = 0; r < n; ++r)
      for (size_t c = 0; c < n; ++c) q[r][c] -= At(tau, batch * count + j) * turned[r][c];
  }
  return q;
}

TEST_P(Reductions, ProductsWithReflectors) {
  const Case& c = GetParam();
  const Literal a = Input(c.m, c.n, false), rows = Input(c.m, 3, false), columns = Input(3, c.m, false);
  for (const bool adjoint : {false, true}) {
    const auto r = Run(absl::StrCat("HloModule m\nENTRY e { a = $T[$B,$M,$N] parameter(0)\n x = $T[$B,$M,3] "
                                    "parameter(1)\n y = $T[$B,3,$M] parameter(2)\n f = ($T[$B,$M,$N], $T[$B,$K]) "
                                    "custom-call(a), custom_call_target=\"lapack_$Pgeqrf_ffi\"\n h = $T[$B,$M,$N] "
                                    "get-tuple-element(f), index=0\n t = $T[$B,$K] get-tuple-element(f), index=1\n "
                                    "l = $T[$B,$M,3] custom-call(h, t, x), custom_call_target=\"lapack_$P$Qmqr_ffi\", "
                                    "backend_config={left = true, transpose = ",
                                    adjoint ? "true" : "false", "}\n r = $T[$B,3,$M] custom-call(h, t, y), ",
                                    "custom_call_target=\"lapack_$P$Qmqr_ffi\", backend_config={left = false, "
                                    "transpose = ",
                                    adjoint ? "true" : "false", "}\n ROOT o = tuple(h, t, l, r) }"),
                       {a, rows, columns});
    ASSERT_EQ(r.size(), 4u);
    for (int b = 0; b < c.batch; ++b) {
      Mat q = QOf(Part(r[0], b), r[1], b, 0);
      if (adjoint) q = Adjoint(q);
      Near(Part(r[2], b), Times(q, Part(rows, b)), Tolerance(), "Q C");
      Near(Part(r[3], b), Times(Part(columns, b), q), Tolerance(), "C Q");
    }
  }
}

TEST_P(Reductions, PivotedQr) {
  const Case& c = GetParam();
  const Literal a = Input(c.m, c.n, false);
  for (const int marked : {0, 1}) {
    const auto r = Run(absl::StrCat("HloModule m\nENTRY e { a = $T[$B,$M,$N] parameter(0)\n i = s32[$B,$N] iota(), "
                                    "iota_dimension=1\n k = s32[] constant($L)\n l = s32[$B,$N] broadcast(k), "
                                    "dimensions={}\n s = pred[$B,$N] compare(i, l), direction=EQ\n o = s32[$B,$N] "
                                    "convert(s)\n m = s32[] constant(",
                                    marked, ")\n n = s32[$B,$N] broadcast(m), dimensions={}\n p = s32[$B,$N] multiply(",
                                    "o, n)\n ROOT q = ($T[$B,$M,$N], s32[$B,$N], $T[$B,$K]) custom-call(a, p), "
                                    "custom_call_target=\"lapack_$Pgeqp3_ffi\" }"),
                       {a});
    ASSERT_EQ(r.size(), 3u);
    const int k = std::min(c.m, c.n);
    for (int b = 0; b < c.batch; ++b) {
      const Mat h = Part(r[0], b), from = Part(a, b);
      Mat up = Zeros(c.m, c.n), want = Zeros(c.m, c.n);
      std::vector<bool> seen(c.n);
      for (int j = 0; j < c.n; ++j) {
        const int64_t column = r[1].Get(b * c.n + j).i - 1;
        ASSERT_TRUE(column >= 0 && column < c.n && !seen[column]);
        seen[column] = true;
        for (int x = 0; x < c.m; ++x) want[x][j] = from[x][column];
        for (int x = 0; x <= std::min(j, c.m - 1); ++x) up[x][j] = h[x][j];
      }
      if (marked) {
        EXPECT_EQ(r[1].Get(b * c.n).i, c.n);
      }
      for (int j = marked + 1; j < k; ++j)
        EXPECT_LE(std::abs(h[j][j]), std::abs(h[j - 1][j - 1]) * (1 + Tolerance()) + Tolerance());
      const Mat q = QOf(h, r[2], b, 0);
      Unitary(q, Tolerance(), "Q");
      Near(Times(q, up), want, Tolerance(), "Q R");
    }
  }
}

TEST_P(Reductions, Hessenberg) {
  const Case& c = GetParam();
  if (c.m != c.n) GTEST_SKIP() << "square matrices only";
  const Literal a = Input(c.n, c.n, false);
  const auto r =
      Run("HloModule m\nENTRY e { a = $T[$B,$N,$N] parameter(0)\n ROOT r = ($T[$B,$N,$N], $T[$B,$L], "
          "s32[$B]) custom-call(a), custom_call_target=\"lapack_$Pgehrd_ffi\", backend_config={high = $N : "
          "i32, low = 1 : i32} }",
          {a});
  ASSERT_EQ(r.size(), 3u);
  for (int b = 0; b < c.batch; ++b) {
    Mat h = Part(r[0], b);
    const Mat q = QOf(h, r[1], b, 1);
    for (int x = 0; x < c.n; ++x)
      for (int y = 0; y + 1 < x; ++y) h[x][y] = 0;
    Unitary(q, Tolerance(), "Q");
    Near(Times(Times(q, h), Adjoint(q)), Part(a, b), Tolerance() * c.n, "Q H Q^H");
    EXPECT_EQ(r[2].Get(b).i, 0);
  }
}

TEST_P(Reductions, Tridiagonal) {
  const Case& c = GetParam();
  if (c.m != c.n) GTEST_SKIP() << "square matrices only";
  const Literal a = Input(c.n, c.n, true);
  for (const bool lower : {true, false}) {
    const auto r = Run(absl::StrCat("HloModule m\nENTRY e { a = $T[$B,$N,$N] parameter(0)\n ROOT r = ($T[$B,$N,$N], "
                                    "$R[$B,$N], $R[$B,$L], $T[$B,$L], s32[$B]) custom-call(a), "
                                    "custom_call_target=\"lapack_$P$Strd_ffi\", backend_config={uplo = ",
                                    lower ? 76 : 85, " : ui8} }"),
                       {a});
    ASSERT_EQ(r.size(), 5u);
    const int n = c.n;
    for (int b = 0; b < c.batch; ++b) {
      const Mat h = Part(r[0], b), from = Part(a, b);
      // The upper triangle is the lower one of the matrix with rows and columns counted from the last.
      Mat kept = Zeros(n, n), t = Zeros(n, n);
      Literal tau = r[3];
      double most = 1;
      for (int x = 0; x < n; ++x)
        for (int y = 0; y < n; ++y) {
          kept[x][y] = lower ? h[x][y] : h[n - 1 - x][n - 1 - y];
          most = std::max(most, std::abs(from[x][y]));
          if (lower ? y > x : y < x) {
            EXPECT_EQ(h[x][y], from[x][y]) << "the other triangle";
          }
        }
      for (int k = 0; k < n; ++k) {
        t[k][k] = At(r[1], b * n + k);
        if (k + 1 == n) break;
        t[k][k + 1] = t[k + 1][k] = At(r[2], b * (n - 1) + k);
        tau.Set(b * (n - 1) + k, r[3].Get(b * (n - 1) + (lower ? k : n - 2 - k)));
      }
      Mat q = QOf(kept, tau, b, 1);
      if (!lower) {
        std::reverse(q.begin(), q.end());
        for (auto& row : q) std::reverse(row.begin(), row.end());
      }
      Unitary(q, Tolerance(), "Q");
      Near(Times(Times(q, t), Adjoint(q)), from, Tolerance() * n * most, "Q T Q^H");
      EXPECT_EQ(r[4].Get(b).i, 0);
    }
  }
}

TEST_P(Reductions, TridiagonalSystem) {
  const Case& c = GetParam();
  const Literal diagonals = Input(3, c.n, false), right = Input(c.n, 3, false);
  const auto r =
      Run("HloModule m\nENTRY e { d = $T[$B,3,$N] parameter(0)\n b = $T[$B,$N,3] parameter(1)\n x = "
          "$T[$B,1,$N] slice(d), slice={[0:$B],[0:1],[0:$N]}\n y = $T[$B,1,$N] slice(d), "
          "slice={[0:$B],[1:2],[0:$N]}\n z = $T[$B,1,$N] slice(d), slice={[0:$B],[2:3],[0:$N]}\n l = "
          "$T[$B,$N] reshape(x)\n m = $T[$B,$N] reshape(y)\n u = $T[$B,$N] reshape(z)\n ROOT r = "
          "($T[$B,$N], $T[$B,$N], $T[$B,$N], $T[$B,$N,3], s32[$B]) custom-call(l, m, u, b), "
          "custom_call_target=\"lapack_$Pgtsv_ffi\" }",
          {diagonals, right});
  ASSERT_EQ(r.size(), 5u);
  for (int b = 0; b < c.batch; ++b) {
    const Mat d = Part(diagonals, b), x = Part(r[3], b);
    Mat a = Zeros(c.n, c.n);
    double most = 1;
    for (int k = 0; k < c.n; ++k) {
      a[k][k] = d[1][k];
      if (k > 0) a[k][k - 1] = d[0][k];
      if (k + 1 < c.n) a[k][k + 1] = d[2][k];
      for (const Num& v : x[k]) most = std::max(most, std::abs(v));
    }
    EXPECT_EQ(r[4].Get(b).i, 0);
    Near(Times(a, x), Part(right, b), Tolerance() * most, "A X");
  }
}

TEST_P(Reductions, Eigenvectors) {
  const Case& c = GetParam();
  if (c.m != c.n) GTEST_SKIP() << "square matrices only";
  const Literal a = Input(c.n, c.n, false);
  const auto r = Run(absl::StrCat("HloModule m\nENTRY e { a = $T[$B,$N,$N] parameter(0)\n ROOT r = (",
                                  c.complex() ? "$T[$B,$N]" : "$T[$B,$N], $T[$B,$N]",
                                  ", $C[$B,$N,$N], $C[$B,$N,$N], s32[$B]) custom-call(a), "
                                  "custom_call_target=\"lapack_$Pgeev_ffi\", backend_config={compute_left = 86 : ui8, "
                                  "compute_right = 86 : ui8} }"),
                     {a});
  const size_t at = c.complex() ? 1 : 2;
  ASSERT_EQ(r.size(), at + 3);
  for (int b = 0; b < c.batch; ++b) {
    const Mat from = Part(a, b), left = Part(r[at], b), right = Part(r[at + 1], b);
    Mat w = Zeros(c.n, c.n);
    for (int k = 0; k < c.n; ++k) {
      w[k][k] = At(r[0], b * c.n + k);
      if (!c.complex()) w[k][k].imag(At(r[1], b * c.n + k).real());
      double lengths[2] = {0, 0};
      for (int x = 0; x < c.n; ++x) {
        lengths[0] += std::norm(left[x][k]);
        lengths[1] += std::norm(right[x][k]);
      }
      EXPECT_NEAR(lengths[0], 1, Tolerance());
      EXPECT_NEAR(lengths[1], 1, Tolerance());
    }
    for (int k = 0; !c.complex() && k < c.n; ++k)  // pairs, the one above the axis first
      if (w[k][k].imag() != 0) {
        ASSERT_LT(k + 1, c.n);
        EXPECT_GT(w[k][k].imag(), 0);
        EXPECT_EQ(w[k + 1][k + 1], std::conj(w[k][k]));
        ++k;
      }
    EXPECT_EQ(r[at + 2].Get(b).i, 0);
    Near(Times(from, right), Times(right, w), Tolerance() * c.n, "A V");
    Near(Times(Adjoint(left), from), Times(w, Adjoint(left)), Tolerance() * c.n, "U^H A");
  }
}

TEST_P(Reductions, SchurForm) {
  const Case& c = GetParam();
  if (c.m != c.n) GTEST_SKIP() << "square matrices only";
  const Literal a = Input(c.n, c.n, false);
  const auto r = Run(absl::StrCat("HloModule m\nENTRY e { a = $T[$B,$N,$N] parameter(0)\n ROOT r = ($T[$B,$N,$N], "
                                  "$T[$B,$N,$N], ",
                                  c.complex() ? "$T[$B,$N]" : "$T[$B,$N], $T[$B,$N]",
                                  ", s32[$B], s32[$B]) custom-call(a), custom_call_target=\"lapack_$Pgees_ffi\", "
                                  "backend_config={mode = 86 : ui8, sort = 78 : ui8} }"),
                     {a});
  ASSERT_EQ(r.size(), c.complex() ? 5u : 6u);
  for (int b = 0; b < c.batch; ++b) {
    const Mat t = Part(r[0], b), z = Part(r[1], b);
    for (int x = 0; x < c.n; ++x)
      for (int y = 0; y < x; ++y) {
        if (c.complex() || y + 1 < x) {
          EXPECT_EQ(t[x][y], 0.0);
        }
        if (c.complex() || y + 1 < x || t[x][y] == 0.0) continue;
        EXPECT_EQ(t[x][x], t[y][y]) << "a block in standard form";
        EXPECT_LT(t[x][y].real() * t[y][x].real(), 0);
        EXPECT_TRUE(x + 1 == c.n || t[x + 1][x] == 0.0);
      }
    EXPECT_EQ(r.back().Get(b).i, 0);
    EXPECT_EQ(r[r.size() - 2].Get(b).i, 0);
    Unitary(z, Tolerance(), "Z");
    Near(Times(Times(z, t), Adjoint(z)), Part(a, b), Tolerance() * c.n, "Z T Z^H");
  }
}

std::vector<Case> Cases() {
  std::vector<Case> out = SmallCases();
  for (const char* type : {"s", "d", "c", "z"})
    for (auto [m, n] : {std::pair{64, 64}, {75, 40}, {40, 75}}) out.push_back({"cpu", type, m, n, 2, m == 64});
  return out;
}

INSTANTIATE_TEST_SUITE_P(Shapes, Reductions, testing::ValuesIn(Cases()), LapackCaseName);

// Matrices without a full set of vectors, with equal eigenvalues, none at all, and what has no answer.
using Extremes = LapackTest;

TEST_P(Extremes, OfEigenvalues) {
  const Case& c = GetParam();
  const double nan = std::nan("");
  const std::vector<std::vector<double>> kinds = {{2, 1, 0, 0, 2, 1, 0, 0, 2},  // one vector for all
                                                  {1, 0, 0, 0, 1, 0, 0, 0, 1},  // equal, any vectors
                                                  {0, 0, 0, 0, 0, 0, 0, 0, 0},
                                                  {0, 0, 1, 1, 0, 0, 0, 1, 0},   // a rotation, which needs other shifts
                                                  {0, 1, 0, -1, 0, 0, 0, 0, 5},  // a pair and one
                                                  {1, nan, 0, 0, 1, 0, 0, 0, 1}};
  for (const std::vector<double>& numbers : kinds) {
    Literal a = Array({c.batch, 3, 3});
    for (int64_t k = 0; k < a.size(); ++k) {
      Element e;
      e.re = numbers[k % 9];
      a.Set(k, e);
    }
    const auto r =
        Run(absl::StrCat("HloModule m\nENTRY e { a = $T[$B,3,3] parameter(0)\n g = (",
                         c.complex() ? "$T[$B,3]" : "$T[$B,3], $T[$B,3]",
                         ", $C[$B,3,3], $C[$B,3,3], s32[$B]) custom-call(a), custom_call_target=\"lapack_$Pgeev_ffi\", "
                         "backend_config={compute_left = 78 : ui8, compute_right = 86 : ui8}\n v = $C[$B,3,3] "
                         "get-tuple-element(g), index=",
                         c.complex() ? 2 : 3, "\n i = s32[$B] get-tuple-element(g), index=", c.complex() ? 3 : 4,
                         "\n s = ($T[$B,3,3], $T[$B,3,3], ", c.complex() ? "$T[$B,3]" : "$T[$B,3], $T[$B,3]",
                         ", s32[$B], s32[$B]) custom-call(a), custom_call_target=\"lapack_$Pgees_ffi\", "
                         "backend_config={mode = 86 : ui8, sort = 78 : ui8}\n t = $T[$B,3,3] get-tuple-element(s), "
                         "index=0\n z = $T[$B,3,3] get-tuple-element(s), index=1\n j = s32[$B] get-tuple-element(s), "
                         "index=",
                         c.complex() ? 4 : 5, "\n w = $T[$B,3] get-tuple-element(g), index=0\n ",
                         "ROOT o = tuple(v, i, t, z, j, w) }"),
            {a});
    ASSERT_EQ(r.size(), 6u);
    if (std::isnan(numbers[1])) {
      EXPECT_NE(r[1].Get(0).i, 0);
      EXPECT_NE(r[4].Get(0).i, 0);
      continue;
    }
    EXPECT_EQ(r[1].Get(0).i, 0);
    EXPECT_EQ(r[4].Get(0).i, 0);
    const Mat from = Part(a, 0), v = Part(r[0], 0), z = Part(r[3], 0);
    Near(Times(Times(z, Part(r[2], 0)), Adjoint(z)), from, Tolerance(), "Z T Z^H");
    Unitary(z, Tolerance(), "Z");
    // Each column is turned into a multiple of itself.
    const Mat turned = Times(from, v);
    for (int k = 0; k < 3; ++k) {
      Num value = 0;
      for (int x = 0; x < 3; ++x) value += std::conj(v[x][k]) * turned[x][k];
      for (int x = 0; x < 3; ++x) EXPECT_LE(std::abs(turned[x][k] - value * v[x][k]), Tolerance());
    }
  }
}

// A row without a pivot: its number, and no solution.
TEST_P(Extremes, OfTridiagonalSystems) {
  const Case& c = GetParam();
  Literal zeros = Array({c.batch, 4}), right = Array({c.batch, 4, 1});
  for (int64_t k = 0; k < right.size(); ++k) {
    Element e;
    e.re = 1;
    right.Set(k, e);
    if (k % 4 < 2) zeros.Set(k, e);
  }
  const auto r =
      Run("HloModule m\nENTRY e { d = $T[$B,4] parameter(0)\n b = $T[$B,4,1] parameter(1)\n z = $T[] "
          "constant(0)\n l = $T[$B,4] broadcast(z), dimensions={}\n ROOT r = ($T[$B,4], $T[$B,4], $T[$B,4], "
          "$T[$B,4,1], s32[$B]) custom-call(l, d, l, b), custom_call_target=\"lapack_$Pgtsv_ffi\" }",
          {zeros, right});
  ASSERT_EQ(r.size(), 5u);
  EXPECT_EQ(r[4].Get(0).i, 3);
}

// LU of what has a zero where a pivot should be, and eigenvalues and singular values of what is no number.
TEST_P(Extremes, OfFactorisations) {
  const Case& c = GetParam();
  for (const double number : {0.0, std::nan("")}) {
    Literal a = Array({c.batch, 3, 3});
    for (int64_t k = 0; k < a.size(); ++k) {
      Element e;
      e.re = k % 9 == 0 ? 1 : number;
      a.Set(k, e);
    }
    const auto r =
        Run("HloModule m\nENTRY e { a = $T[$B,3,3] parameter(0)\n f = ($T[$B,3,3], s32[$B,3], s32[$B]) custom-call(a), "
            "custom_call_target=\"lapack_$Pgetrf_ffi\"\n e = ($T[$B,3,3], $R[$B,3], s32[$B]) custom-call(a), "
            "custom_call_target=\"lapack_$P$Sevd_ffi\", backend_config={mode = 86 : ui8, uplo = 85 : ui8}\n s = "
            "($T[$B,3,3], $R[$B,3], $T[$B,3,3], $T[$B,3,3], s32[$B]) custom-call(a), "
            "custom_call_target=\"lapack_$Pgesdd_ffi\", backend_config={mode = 65 : ui8}\n x = s32[$B] "
            "get-tuple-element(f), index=2\n y = s32[$B] get-tuple-element(e), index=2\n z = s32[$B] "
            "get-tuple-element(s), index=4\n v = $R[$B,3] get-tuple-element(s), index=1\n ROOT o = tuple(x, y, z, v) }",
            {a});
    ASSERT_EQ(r.size(), 4u);
    const bool none = std::isnan(number);
    if (!none) {
      EXPECT_EQ(r[0].Get(0).i, 2);
      EXPECT_NEAR(r[3].Get(0).re, 1, Tolerance());
      EXPECT_NEAR(r[3].Get(2).re, 0, Tolerance());
    }
    EXPECT_EQ(r[1].Get(0).i != 0, none);
    EXPECT_EQ(r[2].Get(0).i != 0, none);
  }
}

std::vector<Case> Types() {
  std::vector<Case> out;
  for (const char* backend : {"cpu", "reference"})
    for (const char* type : {"s", "d", "c", "z"}) out.push_back({backend, type, 3, 3, 2, true});
  return out;
}

INSTANTIATE_TEST_SUITE_P(Types, Extremes, testing::ValuesIn(Types()), LapackCaseName);

}  // namespace
}  // namespace kiln
