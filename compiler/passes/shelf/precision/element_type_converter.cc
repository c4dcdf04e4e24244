// Arithmetic in f16 becomes arithmetic in f32 between conversions, reducers included. What only moves bits keeps its
// type, and so does what the user's own functions see.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

using P = PrimitiveType;

bool Computes(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::Convert:
    case Opcode::BitcastConvert:
    case Opcode::Select:
    case Opcode::Copy:
    case Opcode::Compare:
      return false;
    case Opcode::Dot:
    case Opcode::Convolution:
      return true;
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
      return i->shape().IsArray() && (*i->attrs().to_apply)->instruction_count() == 3 &&
             (*i->attrs().to_apply)->root()->IsElementwise();
    default:
      return i->IsElementwise();
  }
}

}  // namespace

absl::StatusOr<bool> ElementTypeConverter(Module& m, PassContext& ctx) {
  std::vector<const Computation*> reducers;
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions())
      if (!i->IsElementwise() && i->attrs().to_apply) reducers.push_back(*i->attrs().to_apply);
  ASSIGN_OR_RETURN(const bool changed,
                   ExpandEach(
                       m, ctx,
                       [&](Instruction* i) {
                         return Computes(i) && i->shape().IsArray() && i->shape().type() == P::F16 &&
                                std::find(reducers.begin(), reducers.end(), i->parent()) == reducers.end();
                       },
                       [&](Instruction* i) -> absl::StatusOr<Instruction*> {
                         std::vector<Instruction*> operands;
                         for (Instruction* o : i->operands())
                           operands.push_back(o->shape().type() == P::F16 ? ConvertTo(P::F32, o).get() : o);
                         Shape wide = i->shape();
                         wide.set_type(P::F32);
                         Instruction* n = i->parent()->AddClone(i, wide, operands);
                         if (i->attrs().to_apply)
                           n->mutable_attrs().to_apply =
                               ScalarFunction(&m, (*i->attrs().to_apply)->root()->opcode(), P::F32);
                         return ConvertTo(P::F16, n).get();
                       }));
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
