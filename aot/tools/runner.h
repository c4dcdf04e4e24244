// Runs a module on values: through the compiled library in a process of its own, or through the evaluator.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "aot/compile.h"
#include "compiler/hlo/literal.h"

namespace kiln {

struct RunOptions {
  std::string backend = "cpu";  // or "reference"
  int threads = 1;
  int repeat = 1;
};

struct RunResult {
  CompiledModel model;           // empty for the reference backend
  std::vector<Literal> results;  // leaves, in order
  double first_us = 0, min_us = 0, median_us = 0;
};

// Random or patterned arguments, the same for the same seed on every machine.
std::vector<Literal> SeededArguments(const Module& module, uint64_t seed);

// `arguments`: one literal for each flattened argument.
absl::StatusOr<RunResult> RunModule(std::unique_ptr<Module> module, const std::vector<Literal>& arguments,
                                    const CompileOptions& compile, const RunOptions& options);

}  // namespace kiln
