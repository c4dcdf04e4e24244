// One program on the reference evaluator and on kernels whose accesses are watched, emulated ones where not said.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "aot/tools/runner.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"

namespace kiln {

// The results of `program` on `arguments`: the evaluator's, then the kernels'. Empty, with a failure of the test, if
// one fails.
inline std::array<std::vector<Literal>, 2> RunOnBoth(const std::string& program, const std::vector<Literal>& arguments,
                                                     const char* backend = "gpu-emulated", int threads = 1) {
  std::array<std::vector<Literal>, 2> results;
  for (size_t b = 0; b < 2; ++b) {
    auto m = ParseHlo(program, "m.hlo");
    EXPECT_TRUE(m.ok()) << m.status();
    if (!m.ok()) return {};
    RunOptions run;
    run.backend = b ? backend : "reference";
    run.check_accesses = true;
    run.threads = threads;
    auto r = RunModule(std::move(*m), arguments, {}, run);
    EXPECT_TRUE(r.ok()) << r.status() << "\n" << program;
    if (!r.ok()) return {};
    results[b] = std::move(r->results);
  }
  return results;
}

inline std::array<std::vector<Literal>, 2> RunOnBoth(const std::string& program, const Literal& x,
                                                     const char* backend = "gpu-emulated") {
  return RunOnBoth(program, std::vector<Literal>{x}, backend);
}

// What a run of `program` puts on a GPU's stream; -1, with a failure of the test, if it does not compile.
inline int64_t GpuSteps(const std::string& program) {
  auto m = ParseHlo(program, "m.hlo");
  EXPECT_TRUE(m.ok()) << m.status();
  if (!m.ok()) return -1;
  CompileOptions compile;
  compile.cpu.levels.clear();
  compile.gpu.targets = {"sm_80"};
  const auto model = Compile(std::move(*m), compile);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? model->report.gpu_steps : -1;
}

}  // namespace kiln
