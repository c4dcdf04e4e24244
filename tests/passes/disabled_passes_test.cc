// Leaving any one pass out of a pipeline costs speed or the program, never the results: each golden program that a pass
// rewrites runs without that pass, and gives what the evaluator gives or is refused.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "aot/compile.h"
#include "compiler/hlo/parser.h"
#include "compiler/pipeline/registry.h"
#include "gtest/gtest.h"
#include "tests/random/arguments.h"

namespace kiln {
namespace {

std::vector<std::string> FiringPrograms(const std::string& pass) {
  std::vector<std::string> out;
  std::ifstream in("tests/passes/golden/" + pass + ".hlo");
  bool fires = false;
  for (std::string line; std::getline(in, line);) {
    if (absl::StartsWith(line, "// CASE")) {
      fires = line == "// CASE fires";
      if (fires) out.emplace_back();
    } else if (fires && !absl::StartsWith(line, "// ")) {
      out.back() += line + "\n";
    }
  }
  return out;
}

// Empty if the results agree but for roundings and the order of sums.
std::string Difference(const std::vector<Literal>& got, const std::vector<Literal>& want) {
  if (got.size() != want.size()) return absl::StrCat(got.size(), " results instead of ", want.size());
  for (size_t r = 0; r < want.size(); ++r) {
    if (got[r].type() != want[r].type() || got[r].size() != want[r].size())
      return absl::StrCat("result ", r, " is another array");
    const bool exact = !IsFloat(want[r].type()) && !IsComplex(want[r].type());
    const double relative =
        exact ? 0 : std::max(1e-4, 16 * std::ldexp(1.0, -InfoOf(ComponentType(want[r].type())).mantissa_bits));
    for (int64_t k = 0; k < want[r].size(); ++k) {
      const Element g = got[r].Get(k), w = want[r].Get(k);
      const auto same = [&](double x, double y) {
        return x == y || (std::isnan(x) && std::isnan(y)) || std::fabs(x - y) <= relative * (1 + std::fabs(y));
      };
      if (g.i != w.i || !same(g.re, w.re) || !same(g.im, w.im))
        return absl::StrCat("result ", r, " element ", k, ": ", g.re, " (", g.i, "), expected ", w.re, " (", w.i, ")");
    }
  }
  return "";
}

void Try(const std::string& pass, const std::string& text, const RunOptions& compiled) {
  SCOPED_TRACE(pass + "\n" + text);
  auto m = ParseHlo(text, pass + ".hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  if ((*m)->replica_count * (*m)->partition_count > 1) return;
  const std::vector<Literal> arguments = SmallValues(**m, 1);
  CompileOptions options;
  options.cpu.levels = {"native"};
  options.cpu.flush_subnormals = false;
  RunOptions reference;
  reference.backend = "reference";
  auto want = RunModule((*m)->Clone(), arguments, options, reference);
  if (!want.ok()) return;  // asks for what only a host program or other devices give
  options.pipeline.disabled = {pass};
  auto got = RunModule((*m)->Clone(), arguments, options, compiled);
  if (got.ok()) {
    EXPECT_EQ(Difference(got->results, want->results), "");
    return;
  }
  // What the pass would have made of a call is then a function of the host program.
  if (const auto model = Compile(std::move(*m), options); model.ok() && !model->custom_calls.empty()) return;
  const std::string message(got.status().message());
  EXPECT_TRUE(got.status().code() == absl::StatusCode::kUnimplemented ||
              got.status().code() == absl::StatusCode::kInvalidArgument)
      << got.status();
  EXPECT_FALSE(absl::StrContains(message, "the compiled model")) << message;
}

void TryAll(const Pipeline& pipeline, const std::string& backend) {
  RunOptions compiled;
  compiled.backend = backend;
  size_t tried = 0;
  for (const std::string& pass : pipeline.Passes())
    for (const std::string& text : FiringPrograms(pass)) {
      Try(pass, text, compiled);
      ++tried;
    }
  EXPECT_GE(tried, pipeline.Passes().size());
}

TEST(DisabledPasses, OfTheCpuPipelineChangeNoResult) { TryAll(CpuPipeline(), "cpu"); }
TEST(DisabledPasses, OfTheGpuPipelineChangeNoResult) { TryAll(GpuPipeline(), "gpu-emulated"); }

}  // namespace
}  // namespace kiln
