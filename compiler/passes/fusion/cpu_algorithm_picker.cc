// Dots and convolutions get the choice that was fastest when they were measured on a CPU (kiln tune --target cpu), as a
// number of codegen/cpu/choices.def. Without a result their plans decide. Before fusion, which takes them in as they
// are. Keeps: every result, but for the rounding of sums.
#include "compiler/pass/pass.h"
#include "compiler/passes/gpu/pick_algorithm.h"

namespace kiln {

absl::StatusOr<bool> CpuAlgorithmPicker(Module& m, PassContext& ctx) {
  return PickAlgorithms(m, ctx, [](const Instruction* i) { return i->Is(Opcode::Dot) || i->Is(Opcode::Convolution); });
}

}  // namespace kiln
