// gpu-row-fusion within the limits of Triton's tiles: a row is the last dimension all the way to its reduction,
// elements are real, and no member computes with scalars that a simplifier should have folded.
#include <algorithm>

#include "compiler/passes/gpu/row_fusion.h"

namespace kiln {
namespace {

bool IsSplat(const Instruction* i) {
  return i->Is(Opcode::Broadcast) && i->operand(0)->shape().ElementCount() == 1 && i->shape().ElementCount() != 1;
}

bool TileTakes(const Instruction* i, const RowForm& form) {
  const Shape& s = i->shape();
  if (IsComplex(s.type())) return false;
  if (i->Is(Opcode::Bitcast) && form.Whole(s)) {
    const Shape& from = i->operand(0)->shape();
    return s.rank() > 0 && from.rank() > 0 && s.dim(s.rank() - 1) == from.dim(from.rank() - 1);
  }
  return !i->IsElementwise() || i->operand_count() < 2 ||
         !std::all_of(i->operands().begin(), i->operands().end(), IsSplat);
}

}  // namespace

absl::StatusOr<bool> TritonSoftmaxRewriter(Module& m, PassContext& ctx) {
  return FuseRows(m, kShortestGpuRow, TileTakes, ctx);
}

}  // namespace kiln
