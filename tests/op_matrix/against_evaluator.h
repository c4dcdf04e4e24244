// A program's CPU code against the reference evaluator.
#pragma once

#include <string>
#include <vector>

#include "aot/emulator/x86/emulator.h"
#include "aot/tools/program.h"
#include "gtest/gtest.h"

namespace kiln {

// Fails the test unless the code for `level`, on `threads`, gives what the evaluator gives. What the machine lacks of
// the level is emulated. `what`: said of a failure.
// `algebra`: chains of operations on bf16 and f16 equal the evaluator's bit for bit with kExact alone. `disabled`:
// passes that would leave nothing for the kernel that is meant.
inline void ExpectAsEvaluator(const Module& module, const std::vector<Values>& arguments, const std::string& level,
                              int threads, const Tolerance& tolerance, const std::string& what,
                              Algebra algebra = Algebra::kXla, const std::vector<std::string>& disabled = {}) {
  CompileOptions compile;
  compile.pipeline.disabled = disabled;
  compile.cpu.levels = {level};
  compile.pipeline.algebra = algebra;
  RunOptions run;
  run.backend = x86::MachineRuns(level) ? "cpu" : "cpu-emulated";
  run.threads = threads;
  const auto got = RunProgram(module, arguments, compile, run);
  run.backend = "reference";
  const auto want = RunProgram(module, arguments, compile, run);
  ASSERT_TRUE(got.ok() && want.ok()) << what << got.status() << want.status();
  const absl::Status same = SameValues((*got)[0], (*want)[0], tolerance);
  EXPECT_TRUE(same.ok()) << what << level << ": " << same;
}

}  // namespace kiln
