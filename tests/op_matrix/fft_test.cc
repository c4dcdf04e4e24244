// Transforms of every kind over lines of many lengths and numbers: whole blocks of lines and what is left of one, lines
// side by side and apart, lengths with every radix and with none. Against the evaluator, which sums by definition.
#include <cmath>

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
    for (const int64_t n : {1, 2, 3, 5, 7, 8, 12, 17, 30, 49, 64, 90})
      Append(t, real, complex, {lines, n}, 1, &parameters, &results, &count);
    Append(t, real, complex, {2, 12, lines}, 2, &parameters, &results, &count);
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

INSTANTIATE_TEST_SUITE_P(All, Fft, testing::Combine(testing::Values("f32", "f64"), testing::Values(1, 3, 16, 21, 40)));

}  // namespace
}  // namespace kiln
