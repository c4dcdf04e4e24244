// The factorisations behind LAPACK's custom calls: what they give must multiply back to what went in, compiled and
// evaluated, for tall, wide, square, singular and batched matrices of all four types.
#include "compiler/hlo/lapack.h"

#include <cmath>

#include "tests/op_matrix/lapack_fixture.h"

namespace kiln {
namespace {

using Lapack = LapackTest;
class Lu : public LapackTest {};

TEST_P(Lu, IsThePermutedMatrix) {
  const Case& c = GetParam();
  const Literal a = Input(c.m, c.n, false);
  const auto r =
      Run("HloModule m\nENTRY e { a = $T[$B,$M,$N] parameter(0)\n ROOT r = ($T[$B,$M,$N], s32[$B,$K], s32[$B]) "
          "custom-call(a), custom_call_target=\"lapack_$Pgetrf_ffi\" }",
          {a});
  ASSERT_EQ(r.size(), 3u);
  const int k = std::min(c.m, c.n);
  for (int b = 0; b < c.batch; ++b) {
    Mat want = Part(a, b), lu = Part(r[0], b), low = Zeros(c.m, k), up = Zeros(k, c.n);
    for (int j = 0; j < k; ++j) std::swap(want[j], want[r[1].Get(b * k + j).i - 1]);
    for (int x = 0; x < c.m; ++x)
      for (int y = 0; y < c.n; ++y) (x > y ? low[x][y] : up[x][y]) = lu[x][y];
    for (int j = 0; j < k; ++j) low[j][j] = 1;
    Near(Times(low, up), want, Tolerance(), "LU");
    int info = 0;
    for (int j = k; j-- > 0;)
      if (up[j][j] == Num(0)) info = j + 1;
    EXPECT_EQ(r[2].Get(b).i, info);
  }
}

TEST_P(Lapack, QrMultipliesBack) {
  const Case& c = GetParam();
  if (c.m < c.n) GTEST_SKIP() << "orgqr gives no more columns than rows";
  const Literal a = Input(c.m, c.n, false);
  for (const auto& [factor, product] :
       {std::pair{"lapack_$Pgeqrf_ffi", "lapack_$P$Qgqr_ffi"}, {"Qr", "ProductOfElementaryHouseholderReflectors"}}) {
    const auto r =
        Run(absl::StrCat("HloModule m\nENTRY e { a = $T[$B,$M,$N] parameter(0)\n f = ($T[$B,$M,$N], $T[$B,$K]) "
                         "custom-call(a), custom_call_target=\"",
                         factor,
                         "\"\n h = $T[$B,$M,$N] get-tuple-element(f), index=0\n t = $T[$B,$K] get-tuple-element(f), "
                         "index=1\n q = $T[$B,$M,$N] custom-call(h, t), custom_call_target=\"",
                         product, "\"\n ROOT r = ($T[$B,$M,$N], $T[$B,$M,$N]) tuple(h, q) }"),
            {a});
    ASSERT_EQ(r.size(), 2u);
    for (int b = 0; b < c.batch; ++b) {
      Mat h = Part(r[0], b), q = Part(r[1], b), up = Zeros(c.n, c.n);
      for (int x = 0; x < c.n; ++x)
        for (int y = x; y < c.n; ++y) up[x][y] = h[x][y];
      Near(Times(q, up), Part(a, b), Tolerance(), "QR");
      Unitary(q, Tolerance(), "Q");
    }
  }
}

TEST_P(Lapack, EigenvectorsDiagonalise) {
  const Case& c = GetParam();
  if (c.m != c.n) GTEST_SKIP() << "square matrices only";
  const Literal a = Input(c.n, c.n, true);
  for (const char* call :
       {", s32[$B]) custom-call(a), custom_call_target=\"lapack_$P$Sevd_ffi\", backend_config={mode = "
        "86 : ui8, uplo = 76 : ui8} }",
        ") custom-call(a), custom_call_target=\"Eigh\", backend_config=\"1,1,15,0.0001\" }"}) {
    const auto r = Run(absl::StrCat("HloModule m\nENTRY e { a = $T[$B,$N,$N] parameter(0)\n ROOT r = ($T[$B,$N,$N], "
                                    "$R[$B,$N]",
                                    call),
                       {a});
    ASSERT_GE(r.size(), 2u);
    for (int b = 0; b < c.batch; ++b) {
      Mat v = Part(r[0], b), d = Zeros(c.n, c.n);
      double largest = 1;
      for (int j = 0; j < c.n; ++j) {
        d[j][j] = r[1].Get(b * c.n + j).re;
        largest = std::max(largest, std::abs(d[j][j]));
        if (j) {
          EXPECT_LE(d[j - 1][j - 1].real(), d[j][j].real());
        }
      }
      Near(Times(Times(v, d), Adjoint(v)), Part(a, b), Tolerance() * largest, "V D V^H");
      Unitary(v, Tolerance(), "V");
    }
  }
}

// The triangle that is read: the other one is not symmetric to it.
TEST(LapackOf, EighReadsTheTriangleThatItSays) {
  for (const bool lower : {true, false}) {
    auto m = ParseHlo(absl::StrCat("HloModule m\nENTRY e { a = f64[2,2] constant({{2,5},{0,3}})\n ROOT r = (f64[2,2], "
                                   "f64[2]) custom-call(a), custom_call_target=\"Eigh\", backend_config=\"",
                                   lower ? 1 : 0, ",1,15,0.0001\" }"),
                      "t.hlo");
    ASSERT_TRUE(m.ok()) << m.status();
    for (const char* backend : {"cpu", "reference"}) {
      CompileOptions o;
      o.cpu.levels = {"native"};
      RunOptions run;
      run.backend = backend;
      auto r = RunModule((*m)->Clone(), {}, o, run);
      ASSERT_TRUE(r.ok()) << r.status();
      EXPECT_NEAR(r->results[1].Get(0).re, lower ? 2 : 2.5 - std::sqrt(25.25), 1e-12);
    }
  }
}

// What does not fit is the user's own function: the kernel would write elsewhere.
TEST(LapackOf, WantsTheShapesOfTheRoutine) {
  const auto is = [](absl::string_view call) {
    auto m = ParseHlo(absl::StrCat("HloModule m\nENTRY e { a = f32[2,5,4] parameter(0)\n t = f32[2,4] parameter(1)\n "
                                   "s = f32[2,4,4] parameter(2)\n ROOT r = ",
                                   call, " }"),
                      "t.hlo");
    EXPECT_TRUE(m.ok()) << m.status();
    return LapackOf((*m)->entry()->root()).has_value();
  };
  EXPECT_TRUE(is("(f32[2,5,4], f32[2,4]) custom-call(a), custom_call_target=\"lapack_sgeqrf_ffi\""));
  EXPECT_FALSE(is("(f32[2,5,4], f32[2,3]) custom-call(a), custom_call_target=\"lapack_sgeqrf_ffi\""));
  EXPECT_FALSE(is("(f32[2,5,4], f32[2,4]) custom-call(a), custom_call_target=\"lapack_dgeqrf_ffi\""));
  EXPECT_FALSE(is("(f32[2,5,4], f32[4]) custom-call(a), custom_call_target=\"Qr\""));
  EXPECT_TRUE(is("(f32[2,5,4], s32[2,4], s32[2]) custom-call(a), custom_call_target=\"lapack_sgetrf_ffi\""));
  EXPECT_FALSE(is("(f32[2,5,4], s32[2,4], s32[]) custom-call(a), custom_call_target=\"lapack_sgetrf_ffi\""));
  EXPECT_TRUE(is("f32[2,5,4] custom-call(a, t), custom_call_target=\"lapack_sorgqr_ffi\""));
  EXPECT_FALSE(is("f32[2,5,5] custom-call(a, t), custom_call_target=\"lapack_sorgqr_ffi\""));
  EXPECT_FALSE(is("f32[2,5,4] custom-call(a, a), custom_call_target=\"lapack_sorgqr_ffi\""));
  EXPECT_FALSE(is("f32[2,5,4] custom-call(a), custom_call_target=\"lapack_sorgqr_ffi\""));
  EXPECT_TRUE(is("(f32[2,4,4], f32[2,4]) custom-call(s), custom_call_target=\"Eigh\""));
  EXPECT_FALSE(is("(f32[2,5,4], f32[2,4]) custom-call(a), custom_call_target=\"Eigh\""));
}

TEST_P(Lapack, SingularVectorsMultiplyBack) {
  const Case& c = GetParam();
  const Literal a = Input(c.m, c.n, false);
  for (const char* routine : {"gesdd", "gesvd"}) {
    const auto r = Run(absl::StrCat("HloModule m\nENTRY e { a = $T[$B,$M,$N] parameter(0)\n ROOT r = ($T[$B,$M,$N], "
                                    "$R[$B,$K], $T[$B,$M,$M], $T[$B,$N,$N], s32[$B]) custom-call(a), "
                                    "custom_call_target=\"lapack_$P",
                                    routine, "_ffi\", backend_config={mode = 65 : ui8} }"),
                       {a});
    ASSERT_EQ(r.size(), 5u);
    const int k = std::min(c.m, c.n);
    for (int b = 0; b < c.batch; ++b) {
      Mat u = Part(r[2], b), vh = Part(r[3], b), s = Zeros(c.m, c.n);
      for (int j = 0; j < k; ++j) {
        s[j][j] = r[1].Get(b * k + j).re;
        EXPECT_GE(s[j][j].real(), 0);
        if (j) {
          EXPECT_GE(s[j - 1][j - 1].real(), s[j][j].real());
        }
      }
      EXPECT_EQ(r[4].Get(b).i, 0);
      Near(Times(Times(u, s), vh), Part(a, b), Tolerance(), "U S V^H");
      Unitary(u, Tolerance(), "U");
      Unitary(Adjoint(vh), Tolerance(), "V");
    }
  }
}

// Calls that differ in their attributes alone are two kernels: the one gives no vectors, the other does.
TEST_P(Lapack, ModesDiffer) {
  const Case& c = GetParam();
  const Literal a = Input(c.m, c.n, false);
  const std::string call =
      " = ($T[$B,$M,$N], $R[$B,$K], $T[$B,$M,$M], $T[$B,$N,$N], s32[$B]) custom-call(a), "
      "custom_call_target=\"lapack_$Pgesdd_ffi\", backend_config={mode = ";
  const auto r = Run(absl::StrCat("HloModule m\nENTRY e { a = $T[$B,$M,$N] parameter(0)\n n", call, "78 : ui8}\n v",
                                  call, "65 : ui8}\n s = $R[$B,$K] get-tuple-element(n), index=1\n ",
                                  "u = $T[$B,$M,$M] get-tuple-element(v), index=2\n ROOT r = tuple(s, u) }"),
                     {a});
  ASSERT_EQ(r.size(), 2u);
  for (int b = 0; b < c.batch; ++b) {
    Unitary(Part(r[1], b), Tolerance(), "U");
  }
}

// Numbers whose squares are beyond the type, none at all, and what has no factors.
TEST(Extremes, KeepTheirValues) {
  const char* kText =
      "HloModule m\nENTRY e { a = f64[4,4] parameter(0)\n e = (f64[4,4], f64[4], s32[]) custom-call(a), "
      "custom_call_target=\"lapack_dsyevd_ffi\", backend_config={mode = 86 : ui8, uplo = 76 : ui8}\n s = (f64[4,4], "
      "f64[4], f64[4,4], f64[4,4], s32[]) custom-call(a), custom_call_target=\"lapack_dgesdd_ffi\", "
      "backend_config={mode = 65 : ui8}\n q = (f64[4,4], f64[4]) custom-call(a), "
      "custom_call_target=\"lapack_dgeqrf_ffi\"\n v = f64[4] get-tuple-element(e), index=1\n i = s32[] "
      "get-tuple-element(e), index=2\n w = f64[4] get-tuple-element(s), index=1\n j = s32[] get-tuple-element(s), "
      "index=4\n r = f64[4,4] get-tuple-element(q), index=0\n ROOT t = tuple(v, i, w, j, r) }";
  for (const double scale : {1e-200, 1e200, 0.0, std::nan("")}) {
    auto m = ParseHlo(kText, "t.hlo");
    ASSERT_TRUE(m.ok()) << m.status();
    Literal a(Shape::Array(PrimitiveType::F64, {4, 4}));  // of ones: eigenvalues 4, 0, 0, 0
    for (int64_t k = 0; k < a.size(); ++k) {
      Element e;
      e.re = scale;
      a.Set(k, e);
    }
    CompileOptions o;
    o.cpu.levels = {"native"};
    auto r = RunModule(std::move(*m), {a}, o, RunOptions());
    ASSERT_TRUE(r.ok()) << r.status();
    if (std::isnan(scale)) {
      EXPECT_NE(r->results[1].Get(0).i, 0);
      EXPECT_NE(r->results[3].Get(0).i, 0);
      continue;
    }
    EXPECT_NEAR(r->results[0].Get(3).re, 4 * scale, 1e-14 * scale);
    EXPECT_NEAR(r->results[0].Get(0).re, 0, 1e-14 * scale);
    EXPECT_NEAR(r->results[2].Get(0).re, 4 * scale, 1e-14 * scale);
    EXPECT_NEAR(std::fabs(r->results[4].Get(0).re), 2 * scale, 1e-14 * scale);
  }
}

// What rounding leaves of ones gets smaller from column to column, to numbers of few digits; of a permutation some
// columns are left as they are.
TEST(Extremes, HaveOrthonormalVectors) {
  const char* kText =
      "HloModule m\nENTRY e { a = f64[90,90] parameter(0)\n e = (f64[90,90], f64[90], s32[]) custom-call(a), "
      "custom_call_target=\"lapack_dsyevd_ffi\", backend_config={mode = 86 : ui8, uplo = 76 : ui8}\n s = (f64[90,90], "
      "f64[90], f64[90,90], f64[90,90], s32[]) custom-call(a), custom_call_target=\"lapack_dgesdd_ffi\", "
      "backend_config={mode = 65 : ui8}\n v = f64[90,90] get-tuple-element(e), index=0\n u = f64[90,90] "
      "get-tuple-element(s), index=2\n w = f64[90,90] get-tuple-element(s), index=3\n ROOT t = tuple(v, u, w) }";
  for (const bool ones : {true, false}) {
    auto m = ParseHlo(kText, "t.hlo");
    ASSERT_TRUE(m.ok()) << m.status();
    Literal a(Shape::Array(PrimitiveType::F64, {90, 90}));
    for (int64_t k = 0; k < a.size(); ++k) {
      Element e;
      e.re = ones || k / 90 + k % 90 == 89;
      a.Set(k, e);
    }
    CompileOptions o;
    o.cpu.levels = {"native"};
    auto r = RunModule(std::move(*m), {a}, o, {});
    ASSERT_TRUE(r.ok()) << r.status();
    for (const Literal& vectors : r->results) Unitary(Part(vectors, 0), 1e-12, ones ? "ones" : "permutation");
  }
}

std::vector<Case> Cases() {
  std::vector<Case> out = SmallCases();
  // Across blocks, with whole vectors and without.
  for (const char* type : {"s", "d"})
    for (auto [m, n] : {std::pair{64, 64}, {101, 40}, {40, 101}, {75, 75}})
      for (bool singular : {false, true}) out.push_back({"cpu", type, m, n, 2, singular});
  for (auto [m, n] : {std::pair{64, 64}, {101, 40}, {40, 101}, {29, 29}}) {
    out.push_back({"cpu", "c", m, n, 2, false});
    out.push_back({"cpu", "z", m, n, 2, true});
  }
  // Rows so long that sweeps of rotations are kept.
  out.push_back({"cpu", "d", 150, 150, 1, false});
  out.push_back({"cpu", "s", 150, 143, 1, true});
  out.push_back({"cpu", "z", 80, 80, 1, false});
  return out;
}

// So many that they are factored side by side, and lanes stay empty.
std::vector<Case> LuCases() {
  std::vector<Case> out = Cases();
  for (const char* type : {"s", "d"})
    for (const int n : {1, 2, 3, 4, 6, 17, 40})
      for (const bool singular : {false, true}) out.push_back({"cpu", type, n, n, 21, singular});
  return out;
}

INSTANTIATE_TEST_SUITE_P(Shapes, Lapack, testing::ValuesIn(Cases()), LapackCaseName);
INSTANTIATE_TEST_SUITE_P(Shapes, Lu, testing::ValuesIn(LuCases()), LapackCaseName);

}  // namespace
}  // namespace kiln
