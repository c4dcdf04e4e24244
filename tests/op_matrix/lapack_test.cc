// The factorisations behind LAPACK's custom calls: what they give must multiply back to what went in, compiled and
// evaluated, for tall, wide, square, singular and batched matrices of both types.
#include "compiler/hlo/lapack.h"

#include <cmath>

#include "absl/strings/str_replace.h"
#include "aot/tools/runner.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/verify.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

struct Case {
  const char* backend;
  const char* type;
  int m, n, batch;
  bool singular;
};

using Mat = std::vector<std::vector<double>>;

Mat Part(const Literal& l, int64_t b) {
  const int64_t r = l.shape().dim(l.shape().rank() - 2), c = l.shape().dims().back();
  Mat out(r, std::vector<double>(c));
  for (int64_t k = 0; k < r * c; ++k) out[k / c][k % c] = l.Get(b * r * c + k).re;
  return out;
}

Mat Times(const Mat& a, const Mat& b) {
  Mat out(a.size(), std::vector<double>(b[0].size()));
  for (size_t r = 0; r < a.size(); ++r)
    for (size_t c = 0; c < b[0].size(); ++c)
      for (size_t k = 0; k < b.size(); ++k) out[r][c] += a[r][k] * b[k][c];
  return out;
}

Mat Turned(const Mat& a) {
  Mat out(a[0].size(), std::vector<double>(a.size()));
  for (size_t r = 0; r < a.size(); ++r)
    for (size_t c = 0; c < a[0].size(); ++c) out[c][r] = a[r][c];
  return out;
}

void Near(const Mat& a, const Mat& b, double tolerance, const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t r = 0; r < a.size(); ++r)
    for (size_t c = 0; c < a[0].size(); ++c) EXPECT_NEAR(a[r][c], b[r][c], tolerance) << what << " " << r << "," << c;
}

Mat One(size_t n) {
  Mat out(n, std::vector<double>(n));
  for (size_t k = 0; k < n; ++k) out[k][k] = 1;
  return out;
}

class Lapack : public testing::TestWithParam<Case> {
 protected:
  std::vector<Literal> Run(std::string text, const std::vector<Literal>& args) {
    const Case& c = GetParam();
    const int k = std::min(c.m, c.n);
    text = absl::StrReplaceAll(text, {{"$T", c.type[0] == 's' ? "f32" : "f64"},
                                      {"$P", c.type},
                                      {"$B", absl::StrCat(c.batch)},
                                      {"$M", absl::StrCat(c.m)},
                                      {"$N", absl::StrCat(c.n)},
                                      {"$K", absl::StrCat(k)}});
    auto m = ParseHlo(text, "t.hlo");
    EXPECT_TRUE(m.ok()) << m.status();
    EXPECT_TRUE(VerifyModule(**m).ok()) << VerifyModule(**m);
    CompileOptions o;
    o.cpu.levels = {"native"};
    RunOptions run;
    run.backend = c.backend;
    auto r = RunModule(std::move(*m), args, o, run);
    EXPECT_TRUE(r.ok()) << r.status();
    return r.ok() ? r->results : std::vector<Literal>();
  }
  Literal Input(int64_t rows, int64_t cols, bool symmetric) {
    const Case& c = GetParam();
    Literal l(Shape::Array(c.type[0] == 's' ? PrimitiveType::F32 : PrimitiveType::F64, {c.batch, rows, cols}));
    for (int64_t k = 0; k < l.size(); ++k) {
      const int64_t b = k / (rows * cols), r = k / cols % rows, q = k % cols;
      Element e;
      e.re = std::sin(static_cast<double>((symmetric ? (r + 1) * (q + 1) : r * 7 + q * q * 3) + b * 11));
      if (c.singular && q == cols - 1) e.re = std::sin(static_cast<double>((symmetric ? 0 : r * 7) + b * 11));
      if (c.singular && symmetric) e.re = static_cast<double>((r + 1) * (q + 1));
      l.Set(k, e);
    }
    return l;
  }
  double Tolerance() const { return GetParam().type[0] == 's' ? 2e-4 : 1e-11; }
};

TEST_P(Lapack, LuIsThePermutedMatrix) {
  const Case& c = GetParam();
  const Literal a = Input(c.m, c.n, false);
  const auto r =
      Run("HloModule m\nENTRY e { a = $T[$B,$M,$N] parameter(0)\n ROOT r = ($T[$B,$M,$N], s32[$B,$K], s32[$B]) "
          "custom-call(a), custom_call_target=\"lapack_$Pgetrf_ffi\" }",
          {a});
  ASSERT_EQ(r.size(), 3u);
  const int k = std::min(c.m, c.n);
  for (int b = 0; b < c.batch; ++b) {
    Mat want = Part(a, b), lu = Part(r[0], b), low(c.m, std::vector<double>(k)), up(k, std::vector<double>(c.n));
    for (int j = 0; j < k; ++j) std::swap(want[j], want[r[1].Get(b * k + j).i - 1]);
    for (int x = 0; x < c.m; ++x)
      for (int y = 0; y < c.n; ++y) (x > y ? low[x][y] : up[x][y]) = lu[x][y];
    for (int j = 0; j < k; ++j) low[j][j] = 1;
    Near(Times(low, up), want, Tolerance(), "LU");
  }
}

TEST_P(Lapack, QrMultipliesBack) {
  const Case& c = GetParam();
  if (c.m < c.n) GTEST_SKIP() << "orgqr gives no more columns than rows";
  const Literal a = Input(c.m, c.n, false);
  for (const auto& [factor, product] :
       {std::pair{"lapack_$Pgeqrf_ffi", "lapack_$Porgqr_ffi"}, {"Qr", "ProductOfElementaryHouseholderReflectors"}}) {
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
      Mat h = Part(r[0], b), q = Part(r[1], b), up(c.n, std::vector<double>(c.n));
      for (int x = 0; x < c.n; ++x)
        for (int y = x; y < c.n; ++y) up[x][y] = h[x][y];
      Near(Times(q, up), Part(a, b), Tolerance(), "QR");
      Near(Times(Turned(q), q), One(c.n), Tolerance(), "Q^T Q");
    }
  }
}

TEST_P(Lapack, EigenvectorsDiagonalise) {
  const Case& c = GetParam();
  if (c.m != c.n) GTEST_SKIP() << "square matrices only";
  const Literal a = Input(c.n, c.n, true);
  for (const char* call :
       {", s32[$B]) custom-call(a), custom_call_target=\"lapack_$Psyevd_ffi\", backend_config={mode = "
        "86 : ui8, uplo = 76 : ui8} }",
        ") custom-call(a), custom_call_target=\"Eigh\", backend_config=\"1,1,15,0.0001\" }"}) {
    const auto r = Run(absl::StrCat("HloModule m\nENTRY e { a = $T[$B,$N,$N] parameter(0)\n ROOT r = ($T[$B,$N,$N], "
                                    "$T[$B,$N]",
                                    call),
                       {a});
    ASSERT_GE(r.size(), 2u);
    for (int b = 0; b < c.batch; ++b) {
      Mat v = Part(r[0], b), d(c.n, std::vector<double>(c.n));
      double largest = 1;
      for (int j = 0; j < c.n; ++j) {
        d[j][j] = r[1].Get(b * c.n + j).re;
        largest = std::max(largest, std::fabs(d[j][j]));
        if (j) {
          EXPECT_LE(d[j - 1][j - 1], d[j][j]);
        }
      }
      Near(Times(Times(v, d), Turned(v)), Part(a, b), Tolerance() * largest, "V D V^T");
      Near(Times(Turned(v), v), One(c.n), Tolerance(), "V^T V");
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
  const auto r =
      Run("HloModule m\nENTRY e { a = $T[$B,$M,$N] parameter(0)\n ROOT r = ($T[$B,$M,$N], $T[$B,$K], "
          "$T[$B,$M,$M], $T[$B,$N,$N], s32[$B]) custom-call(a), custom_call_target=\"lapack_$Pgesdd_ffi\", "
          "backend_config={mode = 65 : ui8} }",
          {a});
  ASSERT_EQ(r.size(), 5u);
  const int k = std::min(c.m, c.n);
  for (int b = 0; b < c.batch; ++b) {
    Mat u = Part(r[2], b), vt = Part(r[3], b), s(c.m, std::vector<double>(c.n));
    for (int j = 0; j < k; ++j) {
      s[j][j] = r[1].Get(b * k + j).re;
      EXPECT_GE(s[j][j], 0);
      if (j) {
        EXPECT_GE(s[j - 1][j - 1], s[j][j]);
      }
    }
    Near(Times(Times(u, s), vt), Part(a, b), Tolerance(), "U S V^T");
    Near(Times(Turned(u), u), One(c.m), Tolerance(), "U^T U");
    Near(Times(vt, Turned(vt)), One(c.n), Tolerance(), "V^T V");
  }
}

// Calls that differ in their attributes alone are two kernels: the one gives no vectors, the other does.
TEST_P(Lapack, ModesDiffer) {
  const Case& c = GetParam();
  const Literal a = Input(c.m, c.n, false);
  const std::string call =
      " = ($T[$B,$M,$N], $T[$B,$K], $T[$B,$M,$M], $T[$B,$N,$N], s32[$B]) custom-call(a), "
      "custom_call_target=\"lapack_$Pgesdd_ffi\", backend_config={mode = ";
  const auto r = Run(absl::StrCat("HloModule m\nENTRY e { a = $T[$B,$M,$N] parameter(0)\n n", call, "78 : ui8}\n v",
                                  call, "65 : ui8}\n s = $T[$B,$K] get-tuple-element(n), index=1\n ",
                                  "u = $T[$B,$M,$M] get-tuple-element(v), index=2\n ROOT r = tuple(s, u) }"),
                     {a});
  ASSERT_EQ(r.size(), 2u);
  for (int b = 0; b < c.batch; ++b) {
    const Mat u = Part(r[1], b);
    Near(Times(Turned(u), u), One(c.m), Tolerance(), "U^T U");
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

std::vector<Case> Cases() {
  std::vector<Case> out;
  for (const char* backend : {"cpu", "reference"})
    for (const char* type : {"s", "d"})
      for (auto [m, n] : {std::pair{5, 5}, {9, 4}, {4, 9}, {1, 1}})
        for (bool singular : {false, true}) out.push_back({backend, type, m, n, 2, singular});
  // Across blocks, with whole vectors and without.
  for (const char* type : {"s", "d"})
    for (auto [m, n] : {std::pair{64, 64}, {101, 40}, {40, 101}, {75, 75}})
      for (bool singular : {false, true}) out.push_back({"cpu", type, m, n, 2, singular});
  return out;
}

INSTANTIATE_TEST_SUITE_P(Shapes, Lapack, testing::ValuesIn(Cases()), [](const auto& i) {
  const Case& c = i.param;
  return absl::StrCat(c.backend, "_", c.type, "_", c.m, "x", c.n, c.singular ? "_singular" : "");
});

}  // namespace
}  // namespace kiln
