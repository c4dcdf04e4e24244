// Operations that the target does not have in bf16 or narrower compute in f32, between conversions.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/shelf/precision/float_support.h"

namespace kiln {
namespace {

bool Narrow(PrimitiveType t) { return IsFloat(t) && BitWidth(t) <= 16 && t != PrimitiveType::F16; }

Shape Widened(const Shape& s) {
  if (s.IsTuple()) {
    std::vector<Shape> parts;
    for (const Shape& e : s.tuple()) parts.push_back(Widened(e));
    return Shape::Tuple(parts);
  }
  Shape out = s;
  if (Narrow(s.type())) out.set_type(PrimitiveType::F32);
  return out;
}

}  // namespace

absl::StatusOr<bool> Bf16Normalization(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        if (ComputesNarrow(i)) return false;
        for (const Instruction* o : i->operands())
          if (o->shape().IsArray() && Narrow(o->shape().type())) return true;
        return false;
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        std::vector<Instruction*> operands;
        for (Instruction* o : i->operands())
          operands.push_back(Narrow(o->shape().type()) ? ConvertTo(PrimitiveType::F32, o).get() : o);
        Computation* c = i->parent();
        Instruction* wide = c->AddClone(i, Widened(i->shape()), operands);
        if (!i->shape().IsTuple()) return ConvertTo(i->shape().type(), wide).get();
        std::vector<Expr> parts;
        for (size_t k = 0; k < i->shape().tuple().size(); ++k) {
          Instruction* e = c->Add(Opcode::GetTupleElement, wide->shape().tuple()[k], {wide});
          e->mutable_attrs().tuple_index = static_cast<int64_t>(k);
          parts.push_back(ConvertTo(i->shape().tuple()[k].type(), e));
        }
        return TupleOf(parts);
      });
}

}  // namespace kiln
