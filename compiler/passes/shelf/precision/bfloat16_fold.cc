// Dots read bf16 operands as they are instead of a copy in f32: their kernels widen each element as they load it, so
// that the values are the same and half the bytes move.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

bool Widening(const Instruction* i) {
  return i->Is(Opcode::Convert) && i->shape().type() == PrimitiveType::F32 &&
         i->operand(0)->shape().type() == PrimitiveType::BF16;
}

}  // namespace

absl::StatusOr<bool> Bfloat16Fold(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        return i->Is(Opcode::Dot) && i->shape().type() == PrimitiveType::F32 && Widening(i->operand(0)) &&
               Widening(i->operand(1));
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        return i->parent()->AddClone(i, i->shape(), {i->operand(0)->operand(0), i->operand(1)->operand(0)});
      });
}

}  // namespace kiln
