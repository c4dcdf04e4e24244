// Arguments that a set of weights gives: which they are, and what the runtime must know of them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "aot/compile.h"

namespace kiln {

// Marks the arguments that match the options' expressions, and those that were constants. Fails for one that cannot be
// a weight: donated ones, parts of partitioned arrays, types that safetensors lacks.
absl::Status MarkWeights(const CompileOptions& options, const std::vector<WeightConstant>& constants,
                         std::vector<Port>* arguments);

// Lists what sets of weights give to the library. Arguments of several entries that have one path are one array. Fails
// for an expression without a match, and for an array that is to have two shapes.
absl::Status JoinWeights(const CompileOptions& options, CompiledModel* library);

// Whether a program, or any entry of a library, takes weights.
bool HasWeights(const CompiledModel& model);

// What safetensors calls the type; empty if it has none.
std::string SafetensorsType(PrimitiveType type);

// The object that defines <library>_weights_table (runtime_min/weights/table.h).
std::string WeightsTableObject(const CompiledModel& library);
// The object that defines <program>_weight_arguments, for what a library has.
std::string WeightArgumentsObject(const CompiledModel& program, const std::vector<Port>& weights);

// The types and C functions of a library, and the runs of a program; the same as a C++ class and its runs.
std::string WeightsDeclarations(const CompiledModel& library);
std::string WeightsRunDeclarations(const CompiledModel& program);
std::string WeightsClass(const CompiledModel& library);
std::string WeightsRuns(const CompiledModel& program);

}  // namespace kiln
