// Reductions between devices of 16-bit types add in 32 bits: n roundings become one.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

using P = PrimitiveType;

P Promoted(P t) {
  if (IsFloat(t) && BitWidth(t) == 16) return P::F32;
  if (t == P::S16) return P::S32;
  if (t == P::U16) return P::U32;
  return t;
}

bool ScalarReducer(const Computation* f) {
  return f->instruction_count() == 3 && f->parameters().size() == 2 && f->root()->IsElementwise();
}

}  // namespace

absl::StatusOr<bool> AllReducePromotion(Module& m, PassContext& ctx) {
  ASSIGN_OR_RETURN(const bool changed,
                   ExpandEach(
                       m, ctx,
                       [](Instruction* i) {
                         return (i->Is(Opcode::AllReduce) || i->Is(Opcode::ReduceScatter)) && i->shape().IsArray() &&
                                Promoted(i->shape().type()) != i->shape().type() && ScalarReducer(*i->attrs().to_apply);
                       },
                       [&](Instruction* i) -> absl::StatusOr<Instruction*> {
                         const P wide = Promoted(i->shape().type());
                         Shape shape = i->shape();
                         shape.set_type(wide);
                         Instruction* n = i->parent()->AddClone(i, shape, {ConvertTo(wide, i->operand(0)).get()});
                         n->mutable_attrs().to_apply =
                             ScalarFunction(&m, (*i->attrs().to_apply)->root()->opcode(), wide);
                         return ConvertTo(i->shape().type(), n).get();
                       }));
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
