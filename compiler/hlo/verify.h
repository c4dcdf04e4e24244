// The HLO verifier: the nine groups of checks that make a module safe to compile.
//
// Guarantees: OK means every later stage may rely on structure, shapes, called computations, collectives and aliasing
//   tables; otherwise one InvalidArgument with file, line, column, op and reason.
// Cost: linear in the module.
#pragma once

#include "absl/status/status.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

struct VerifyOptions {
  // Layouts are meaningful: operands and results of ops that cannot change layout must agree.
  bool layout_sensitive = false;
};

absl::Status VerifyModule(const Module& module, const VerifyOptions& options = {});
// And the rules that hold for a module as its front end wrote it, but not behind passes, which reshape what shardings
// stand on and settle how many devices there are.
absl::Status VerifyAsWritten(const Module& module);

}  // namespace kiln
