// Transforms of every kind over lines of many lengths and numbers: whole blocks of lines and what is left of one, lines
// side by side and apart, lengths with every radix and with none (convolutions). Against the evaluator, which sums by
// definition.
#include <cmath>
#include <complex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "aot/tools/runner.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/verify.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

struct Transform {
  const char* kind;
  bool from_real, to_real;
};

// One operation of a program: lines of `extents`, transformed over the last `axes` dimensions.
void Append(const Transform& t, const std::string& real, const std::string& complex, Ints extents, size_t axes,
            std::string* parameters, std::string* results, int* count) {
  Ints half = extents;
  half.back() = half.back() / 2 + 1;
  const auto shape = [](const std::string& type, const Ints& dims) {
    return absl::StrCat(type, "[", absl::StrJoin(dims, ","), "]");
  };
  const Ints length(extents.end() - static_cast<ptrdiff_t>(axes), extents.end());
  const std::string in = t.from_real ? shape(real, extents) : shape(complex, t.to_real ? half : extents);
  const std::string out = t.to_real ? shape(real, extents) : shape(complex, t.from_real ? half : extents);
  absl::StrAppend(parameters, " x", *count, " = ", in, " parameter(", *count, ")\n r", *count, " = ", out, " fft(x",
                  *count, "), fft_type=", t.kind, ", fft_length={", absl::StrJoin(length, ","), "}\n");
  absl::StrAppend(results, results->empty() ? "" : ", ", "r", *count);
  ++*count;
}

void ExpectClose(const Literal& got, const Literal& want, double epsilon, const std::string& what) {
  ASSERT_TRUE(got.shape().Compatible(want.shape())) << what;
  double largest = 0, error = 0;
  for (int64_t k = 0; k < want.shape().ElementCount(); ++k) {
    const Element a = got.Get(k), b = want.Get(k);
    largest = std::max(largest, std::hypot(b.re, b.im));
    error = std::max(error, std::hypot(a.re - b.re, a.im - b.im));
  }
  EXPECT_LE(error, epsilon * largest) << what;
}

class Fft : public testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(Fft, IsTheSumThatDefinesIt) {
  const auto [real, lines] = GetParam();
  const bool is_double = std::string(real) == "f64";
  const std::string complex = is_double ? "c128" : "c64";
  for (const Transform& t : {Transform{"FFT", false, false}, Transform{"IFFT", false, false},
                             Transform{"RFFT", true, false}, Transform{"IRFFT", false, true}}) {
    std::string parameters, results;
    int count = 0;
    for (const int64_t n : {1, 2, 3, 5, 7, 8, 11, 12, 17, 30, 49, 64, 90, 131})
      Append(t, real, complex, {lines, n}, 1, &parameters, &results, &count);
    Append(t, real, complex, {2, 12, lines}, 2, &parameters, &results, &count);
    Append(t, real, complex, {1, 131, lines}, 2, &parameters, &results, &count);
    Append(t, real, complex, {2, 5, 6, 33}, 3, &parameters, &results, &count);
    auto m =
        ParseHlo(absl::StrCat("HloModule m\nENTRY e {\n", parameters, " ROOT r = tuple(", results, ")\n}"), "t.hlo");
    ASSERT_TRUE(m.ok()) << m.status();
    ASSERT_TRUE(VerifyModule(**m).ok()) << VerifyModule(**m);
    const std::vector<Literal> arguments = SeededArguments(**m, 5);
    CompileOptions options;
    options.cpu.levels = {"native"};
    RunOptions reference, cpu;
    reference.backend = "reference";
    cpu.check_accesses = true;
    const auto want = RunModule((*m)->Clone(), arguments, options, reference);
    const auto got = RunModule((*m)->Clone(), arguments, options, cpu);
    ASSERT_TRUE(want.ok()) << want.status();
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->results.size(), want->results.size());
    for (size_t k = 0; k < want->results.size(); ++k)
      ExpectClose(got->results[k], want->results[k], is_double ? 1e-13 : 2e-6,
                  absl::StrCat(t.kind, " of ", lines, " lines, operation ", k));
  }
}

// Long lines as matrices, and lengths with large prime factors as convolutions, by their sums at some of the elements.
TEST(LongFft, IsTheSumThatDefinesIt) {
  using Complex = std::complex<long double>;  // the sums shall err less than the transforms
  for (const char* real : {"f32", "f64"})
    for (const int64_t n : {1009, 1563, 2018, 4096, 10007, 98304, 100003}) {
      const std::string shape = absl::StrCat(std::string(real) == "f64" ? "c128[2," : "c64[2,", n, "]");
      auto m = ParseHlo(absl::StrCat("HloModule m\nENTRY e {\n x = ", shape, " parameter(0)\n r = ", shape,
                                     " fft(x), fft_type=FFT, fft_length={", n, "}\n i = ", shape,
                                     " fft(x), fft_type=IFFT, fft_length={", n, "}\n ROOT t = tuple(r, i)\n}"),
                        "t.hlo");
      ASSERT_TRUE(m.ok()) << m.status();
      const std::vector<Literal> arguments = SeededArguments(**m, 5);
      CompileOptions options;
      options.cpu.levels = {"native"};
      const auto got = RunModule((*m)->Clone(), arguments, options, {});
      ASSERT_TRUE(got.ok()) << got.status();
      std::vector<Complex> roots;
      for (int64_t k = 0; k < n; ++k)
        roots.push_back(
            std::polar(1.0L, -2 * std::acos(-1.0L) * static_cast<long double>(k) / static_cast<long double>(n)));
      const double bound = (std::string(real) == "f64" ? 2e-15 : 1e-6) * std::sqrt(static_cast<double>(n));
      for (int64_t k = n; k < 2 * n; k += n / 20) {
        Complex forward, inverse;
        for (int64_t j = 0; j < n; ++j) {
          const Element x = arguments[0].Get(n + j);
          const Complex root = roots[static_cast<size_t>(k % n * j % n)];
          forward += Complex(x.re, x.im) * root;
          inverse += Complex(x.re, x.im) * std::conj(root);
        }
        inverse /= static_cast<long double>(n);
        const Element f = got->results[0].Get(k), i = got->results[1].Get(k);
        EXPECT_LE(std::abs(forward - Complex(f.re, f.im)), bound) << shape << " at " << k - n;
        EXPECT_LE(std::abs(inverse - Complex(i.re, i.im)), bound / static_cast<double>(n)) << shape;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(All, Fft, testing::Combine(testing::Values("f32", "f64"), testing::Values(1, 3, 16, 21, 40)));

}  // namespace
}  // namespace kiln
