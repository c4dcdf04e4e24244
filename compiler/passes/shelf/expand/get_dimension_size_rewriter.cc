// The size of a dimension: a constant where it is static, the stated size where set-dimension-size made it dynamic.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

// Looks through elementwise operations, which keep the extents of their first operand.
Instruction* StatedSize(Instruction* array, int64_t dim) {
  for (Instruction* i = array;; i = i->operand(0)) {
    if (i->Is(Opcode::SetDimensionSize)) {
      if ((*i->attrs().dimensions)[0] == dim) return i->operand(1);
    } else if (!i->IsElementwise() || i->operand_count() != 1) {
      return nullptr;
    }
  }
}

}  // namespace

absl::StatusOr<bool> GetDimensionSizeRewriter(Module& m, PassContext& ctx) {
  const auto dim = [](const Instruction* i) { return (*i->attrs().dimensions)[0]; };
  return ExpandEach(
      m, ctx,
      [&](Instruction* i) {
        return i->Is(Opcode::GetDimensionSize) &&
               (!i->operand(0)->shape().is_dynamic(dim(i)) || StatedSize(i->operand(0), dim(i)));
      },
      [&](Instruction* i) -> absl::StatusOr<Instruction*> {
        if (i->operand(0)->shape().is_dynamic(dim(i))) return StatedSize(i->operand(0), dim(i));
        return i->parent()->AddConstant(Literal::Int(PrimitiveType::S32, i->operand(0)->shape().dim(dim(i))));
      });
}

}  // namespace kiln
