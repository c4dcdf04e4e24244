// An elementwise fusion that alone reads a reduction joins it: the thread that has an element of the sum goes on with
// it.
//
// Reductions in narrow types stay apart, since they are summed in wider ones and rounded when they are stored. Behind
// all other fusions, which take a fusion for what its root is.
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

constexpr int64_t kMostOperands = 96;
constexpr int kNarrowestBits = 32;

bool IsFree(const Instruction* i) {
  return i->Is(Opcode::Fusion) && !IsCustomFusion(i) && i->shape().IsArray() && i->shape().HasDefaultLayout() &&
         i->control_predecessors().empty() && i->control_successors().empty();
}

bool IsReduction(const Instruction* i) {
  return IsFree(i) && (*i->attrs().calls)->root()->Is(Opcode::Reduce) &&
         InfoOf(i->shape().type()).bits >= kNarrowestBits;
}

// Whether each element of `c` is made of the same element of its operand `r`, and of nothing that another kind of
// kernel computes.
bool GoesOnWith(const Instruction* c, const Instruction* r) {
  if (!IsFree(c) || c->shape().ElementCount() != r->shape().ElementCount()) return false;
  const Computation* f = *c->attrs().calls;
  const auto same = [&](const Instruction* i) {
    return (i->IsElementwise() || i->Is(Opcode::Bitcast)) && i->shape().IsArray() && i->shape().HasDefaultLayout() &&
           i->shape().ElementCount() == r->shape().ElementCount();
  };
  if (!f->root()->IsElementwise()) return false;
  for (const auto& i : f->instructions())
    if (!i->Is(Opcode::Parameter) && !i->Is(Opcode::Constant) && !i->Is(Opcode::Bitcast) &&
        InfoOf(i->opcode()).lowering != Lowering::Elemental)
      return false;
  return EveryUseIs(c, r, same);
}

}  // namespace

absl::StatusOr<bool> GpuReduceEpilogueFusion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m))
    for (Instruction* r : c->PostOrder()) {
      if (!IsReduction(r) || r->IsRoot() || r->users().size() != 1) continue;
      Instruction* user = r->users()[0];
      if (!GoesOnWith(user, r) || user->operand_count() + r->operand_count() > kMostOperands || !ctx.Take()) continue;
      FuseInto(r, user)->mutable_attrs().fusion_kind = FusionKind::kInput;
      c->Remove(r);
      changed = true;
    }
  return changed;
}

}  // namespace kiln
