// Which function of a program refers to which, and which one a compile begins with.
//
// What: the callee of a call, the functions that an operation names in any attribute, the entry, and an order in which
//   each function comes behind those that it refers to.
// Guarantees: linear; no recursion, so that chains of calls may be long. A cycle is reported where it closes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/import/mlir.h"

namespace kiln::mlir {

// The names of @a, @"b c" in a text.
std::vector<std::string> SymbolsIn(absl::string_view text);
// The functions that an operation names: as a callee, a decomposition, a program to run.
std::vector<std::string> SymbolsOf(const Op& op);
// The function that a call or composite calls; empty for other operations.
std::string CalleeOf(const Op& op);

// `wanted` by name; else @main, or the only function that stands alone. Fails, with the names, where several public
// functions could be meant: those that no other function refers to.
absl::StatusOr<const Function*> EntryOf(const Program& program, const std::string& file, const std::string& wanted);

// The functions that `entry` reaches, callees first, `entry` last.
absl::StatusOr<std::vector<const Function*>> CalleesFirst(const Program& program, const std::string& file,
                                                          const Function* entry);

}  // namespace kiln::mlir
