// Arguments that a set of weights gives: which they are, and what the runtime must know of them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "aot/compile.h"

namespace kiln {

// Marks the arguments that match the options' expressions, and those that were constants. Fails for one that cannot be
// a weight: donated ones, parts of partitioned arrays, types that safetensors lacks; and for an expression without a
// match.
absl::Status MarkWeights(const CompileOptions& options, const std::vector<WeightConstant>& constants,
                         std::vector<Port>* arguments);

bool HasWeights(const CompiledModel& model);

// What safetensors calls the type; empty if it has none.
std::string SafetensorsType(PrimitiveType type);

// The object that defines <library>_weights_table (runtime_min/weights/table.h).
std::string WeightsTableObject(const CompiledModel& model);

// The C functions, and the C++ class with its run.
std::string WeightsDeclarations(const CompiledModel& model);
std::string WeightsClass(const CompiledModel& model);

}  // namespace kiln
