// Translation validation of a plan: that its steps, run one after another over its places, compute what the HLO says.
//
// What: runs the thunk sequence over a memory that remembers, byte by byte, which HLO value lies there. Each step must
//   find its operands' values where it reads; what it writes becomes its result's value. Loops are run once, from a
//   state in which every iteration may begin; branches are run apart, and what differs between them is unknown after.
// Guarantees: OK means that no step reads a value that was overwritten, moved or not yet computed; that nothing which
// is
//   not donated, and no constant, is written; that a step which writes over its own operand reads it only where it
//   writes; that steps keep the order of data and control; and that the results lie where the caller looks for them.
//   What happens inside a kernel is not looked at.
// Independent of compiler/plan: what may share storage is derived here from the HLO alone.
// Cost: linear in steps times the depth of loops, logarithmic in values.
// Source: translation validation (Pnueli et al.); LLVM's alive2, for plans.
#pragma once

#include "absl/status/status.h"
#include "compiler/hlo/instruction.h"
#include "compiler/plan/buffer_assignment.h"
#include "compiler/thunk/thunk.h"

namespace kiln {

// An Internal error names the step, the place and what lies there instead.
absl::Status CheckPlan(const Module& module, const BufferAssignment& buffers, const ThunkSequence& thunks);

}  // namespace kiln
