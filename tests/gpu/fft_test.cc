// Transforms of lines in shared memory, every access of the kernels watched, against the reference evaluator.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/gpu/both_backends.h"

namespace kiln {
namespace {

using P = PrimitiveType;

Literal Waves(const Shape& shape) {
  Literal x(shape);
  for (int64_t k = 0; k < x.size(); ++k) {
    Element e;
    e.re = std::sin(0.7 * static_cast<double>(k)) + 0.25;
    if (IsComplex(shape.type())) e.im = std::cos(1.3 * static_cast<double>(k));
    x.Set(k, e);
  }
  return x;
}

// `kind` over the last axes of `extents`, whose results are real numbers for IRFFT and the operands for RFFT.
void Compare(P real, const std::string& kind, Ints extents, int64_t axes) {
  const P complex = real == P::F32 ? P::C64 : P::C128;
  const Ints length(extents.end() - axes, extents.end());
  Ints half = extents;
  half.back() = half.back() / 2 + 1;
  const Shape in = Shape::Array(kind == "RFFT" ? real : complex, kind == "IRFFT" ? half : extents);
  const Shape out = Shape::Array(kind == "IRFFT" ? real : complex, kind == "RFFT" ? half : extents);
  const std::string program = absl::StrCat(
      "HloModule m\nENTRY e {\n  x = ", in.ToString(false), " parameter(0)\n  ROOT r = ", out.ToString(false),
      " fft(x), fft_type=", kind, ", fft_length={", absl::StrJoin(length, ","), "}\n}\n");
  const auto results = RunOnBoth(program, Waves(in));
  ASSERT_EQ(results[1].size(), 1U) << program;
  const Literal &want = results[0][0], &got = results[1][0];
  double largest = 1, worst = 0;
  for (int64_t k = 0; k < want.size(); ++k) {
    const Element a = want.Get(k), b = got.Get(k);
    largest = std::max({largest, std::abs(a.re), std::abs(a.im)});
    worst = std::max({worst, std::abs(a.re - b.re), std::abs(a.im - b.im)});
  }
  EXPECT_LT(worst / largest, real == P::F32 ? 1e-6 : 1e-14) << program;
}

TEST(Fft, LinesOfEveryRadix) {
  for (const std::string kind : {"FFT", "IFFT", "RFFT", "IRFFT"})
    for (const int64_t n : {1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 30, 64, 100, 143, 256, 1000})
      for (const P real : {P::F32, P::F64}) Compare(real, kind, {3, n}, 1);
}

TEST(Fft, LongestLinesOfABlockAndBeyond) {
  for (const std::string kind : {"FFT", "RFFT", "IRFFT"}) {
    Compare(P::F32, kind, {2, 3072}, 1);
    Compare(P::F32, kind, {2, 3073}, 1);
    Compare(P::F64, kind, {2, 1536}, 1);
    Compare(P::F64, kind, {2, 2048}, 1);
    Compare(P::F32, kind, {5, 17}, 1);  // a factor that has no butterfly
  }
}

TEST(Fft, AxesThatAreNotTheLast) {
  for (const std::string kind : {"FFT", "IFFT", "RFFT", "IRFFT"}) {
    Compare(P::F32, kind, {2, 8, 6}, 2);
    Compare(P::F64, kind, {5, 17, 4}, 2);
    Compare(P::F32, kind, {3, 6, 5, 4}, 3);
    Compare(P::F32, kind, {64, 32}, 2);
  }
}

// Loops before and behind join the kernels, of one axis and of two, and the spectrum between axes has memory of its own
// where the result has another type.
TEST(Fft, LoopsAroundIt) {
  for (const char* length : {"6", "8,6"})
    for (const char* rest : {"ROOT r = f32[3,8,6] real(f)", "ROOT r = c64[3,8,6] multiply(f, f)"}) {
      const std::string program = absl::StrCat(
          "HloModule m\nENTRY e {\n  x = f32[3,8,6] parameter(0)\n  n = f32[3,8,6] negate(x)\n  c = c64[3,8,6] "
          "convert(n)\n"
          "  f = c64[3,8,6] fft(c), fft_type=FFT, fft_length={",
          length, "}\n  ", rest, "\n}\n");
      const Literal x = Waves(Shape::Array(P::F32, {3, 8, 6}));
      const auto results = RunOnBoth(program, x);
      ASSERT_EQ(results[1].size(), 1U) << program;
      for (int64_t k = 0; k < results[0][0].size(); ++k) {
        EXPECT_NEAR(results[0][0].Get(k).re, results[1][0].Get(k).re, 2e-4) << program;
        EXPECT_NEAR(results[0][0].Get(k).im, results[1][0].Get(k).im, 2e-4) << program;
      }
    }
}

TEST(Fft, LoopsBehindRealResults) {
  for (const char* length : {"6", "8,6"})
    for (const char* rest : {"ROOT r = f32[3,8,6] negate(f)", "ROOT r = f64[3,8,6] convert(f)"}) {
      const std::string program = absl::StrCat(
          "HloModule m\nENTRY e {\n  x = c64[3,8,4] parameter(0)\n  f = f32[3,8,6] fft(x), fft_type=IRFFT,"
          " fft_length={",
          length, "}\n  ", rest, "\n}\n");
      const auto results = RunOnBoth(program, Waves(Shape::Array(P::C64, {3, 8, 4})));
      ASSERT_EQ(results[1].size(), 1U) << program;
      for (int64_t k = 0; k < results[0][0].size(); ++k)
        EXPECT_NEAR(results[0][0].Get(k).re, results[1][0].Get(k).re, 1e-5) << program;
    }
}

TEST(Fft, ManyLines) {
  Compare(P::F32, "FFT", {37, 16}, 1);
  Compare(P::F32, "RFFT", {37, 16}, 1);
  Compare(P::F32, "IRFFT", {37, 16}, 1);
}

}  // namespace
}  // namespace kiln
