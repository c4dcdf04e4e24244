// What every MLIR program obeys, whatever its operations mean.
//
// What: a value is defined once and before it is used; operands have the types that the text states, and are as many;
//   regions end in their only return; functions return, and calls take, what the functions' types say; loops carry the
//   types they begin with; symbols that operations name exist.
// Why: the converter takes shapes from values, so a text that contradicts itself would become some program.
// Guarantees: linear in the program. The first mistake is reported, with its operation, line and column.
// Source: MLIR's parser and the verifiers of its func dialect; the constraints of StableHLO's control flow.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "compiler/import/mlir.h"

namespace kiln::mlir {

absl::Status CheckProgram(const Program& program, const std::string& file);

}  // namespace kiln::mlir
