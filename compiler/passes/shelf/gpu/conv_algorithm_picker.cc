// Convolutions of cuDNN get the algorithm that was fastest when they were measured (kiln tune), and with it the
// workspace that it needs, which the call's result says. Without a result the library's choice stays.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/gpu/pick_algorithm.h"

namespace kiln {

absl::StatusOr<bool> ConvAlgorithmPicker(Module& m, PassContext& ctx) {
  bool changed = false;
  if (!ctx.tuning) return changed;
  for (Instruction* i : Tunables(m)) {
    Computation* c = i->parent();
    if (!IsTunableConvolution(i)) continue;
    const PickedAlgorithm picked = PickAlgorithm(i, *ctx.tuning);
    if (picked.choice.empty() || picked.choice == AlgorithmOf(i) || !ctx.Take()) continue;
    SetAlgorithm(i, picked.choice);
    const Shape workspace = Shape::Array(PrimitiveType::U8, {picked.scratch_bytes});
    changed = true;
    if (i->shape().tuple()[1].dims() == workspace.dims()) continue;
    Instruction* call = c->AddClone(i, Shape::Tuple({i->shape().tuple()[0], workspace}), i->operands());
    Instruction* same = TupleOf({PartOf(call, 0), c->AddConstant(Literal(Shape::Array(PrimitiveType::U8, {0})))});
    for (Instruction* u : std::vector<Instruction*>(i->users()))
      if (u->Is(Opcode::GetTupleElement)) {
        u->ReplaceAllUsesWith(same->operand(*u->attrs().tuple_index));
        c->Remove(u);
      }
    i->ReplaceAllUsesWith(same);
    if (same->users().empty() && !same->IsRoot()) c->Remove(same);
    c->Remove(i);
  }
  return changed;
}

}  // namespace kiln
