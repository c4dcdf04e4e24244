// Operations on operands of bf16 and f32 together compute in f32.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

using P = PrimitiveType;

bool OneTypeNeeded(const Instruction* i) {
  return i->IsElementwise() || i->Is(Opcode::Dot) || i->Is(Opcode::Convolution) || i->Is(Opcode::Concatenate) ||
         i->Is(Opcode::Pad) || i->Is(Opcode::DynamicUpdateSlice);
}

bool Mixed(const Instruction* i) {
  if (!OneTypeNeeded(i) || i->Is(Opcode::Convert) || !i->shape().IsArray()) return false;
  bool narrow = i->shape().type() == P::BF16, wide = i->shape().type() == P::F32;
  if (!narrow && !wide && !i->Is(Opcode::Compare)) return false;
  for (const Instruction* o : i->operands()) {
    narrow = narrow || o->shape().type() == P::BF16;
    wide = wide || o->shape().type() == P::F32;
  }
  return narrow && wide;
}

}  // namespace

absl::StatusOr<bool> Bf16MixedPrecisionRemoval(Module& m, PassContext& ctx) {
  return ExpandEach(m, ctx, Mixed, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    std::vector<Instruction*> operands;
    for (Instruction* o : i->operands())
      operands.push_back(o->shape().type() == P::BF16 ? ConvertTo(P::F32, o).get() : o);
    Shape shape = i->shape();
    if (shape.type() == P::BF16) shape.set_type(P::F32);
    Instruction* wide = i->parent()->AddClone(i, shape, operands);
    return shape.type() == i->shape().type() ? wide : ConvertTo(i->shape().type(), wide).get();
  });
}

}  // namespace kiln
