// Products that no library takes as they are, because an operand is converted or scaled on the way, become one fusion
// that is computed tile by tile: what is computed of the operands comes before the product, what is computed of the
// result after.
//
// Only where an operand is widened from a type that the library lacks beside the other's (8-bit or 4-bit integers into
// floats): the array is read in its narrow form then. Products in the form of dot-decomposer.
#include "compiler/passes/fusion/fuse.h"
#include "compiler/pipeline/registry.h"

namespace kiln {
namespace {

bool Canonical(const Instruction* i) {
  return i->Is(Opcode::Dot) && i->shape().rank() == 3 && i->operand(0)->shape().rank() == 3 &&
         i->operand(1)->shape().rank() == 3 && i->attrs().lhs_contracting_dims &&
         i->attrs().lhs_contracting_dims->size() == 1 && !i->attrs().sparsity && !i->shape().HasDynamic();
}

bool JoinsOperand(const Instruction* o) {
  return (o->IsElementwise() || o->Is(Opcode::Bitcast) ||
          (o->Is(Opcode::Broadcast) && o->operand(0)->shape().rank() == 0)) &&
         o->users().size() == 1 && !o->IsRoot() && o->shape().HasDefaultLayout() && o->control_predecessors().empty() &&
         o->control_successors().empty();
}

void TakeOperand(const Instruction* o, absl::flat_hash_set<const Instruction*>* members, bool* widens) {
  if (!JoinsOperand(o)) return;
  members->insert(o);
  *widens = *widens || (o->Is(Opcode::Convert) && IsFloat(o->shape().type()) &&
                        IsIntegral(o->operand(0)->shape().type()) && InfoOf(o->operand(0)->shape().type()).bits <= 8);
  for (const Instruction* next : o->operands()) TakeOperand(next, members, widens);
}

}  // namespace

absl::StatusOr<bool> TritonGemmRewriter(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m))
    for (Instruction* i : c->PostOrder()) {
      if (!Canonical(i) || i->operand(0) == i->operand(1)) continue;
      absl::flat_hash_set<const Instruction*> members = {i};
      bool widens = false;
      for (const Instruction* o : i->operands()) TakeOperand(o, &members, &widens);
      if (!widens || !ctx.Take()) continue;
      // What follows elementwise and reads nothing else of this fusion.
      Instruction* root = i;
      constexpr int kMostAfter = 8;
      for (int k = 0; k < kMostAfter && root->users().size() == 1 && !root->IsRoot(); ++k) {
        Instruction* user = root->users()[0];
        const bool same =
            user->Is(Opcode::Bitcast) || (user->IsElementwise() && user->shape().dims() == root->shape().dims());
        if (!same || !user->shape().HasDefaultLayout() || !user->control_predecessors().empty() ||
            !user->control_successors().empty())
          break;
        members.insert(user);
        root = user;
      }
      FuseMembers(root, members, "kCustom")->attrs().backend_config =
          "{\"fusion_backend_config\":{\"kind\":\"__triton_gemm\"}}";
      changed = true;
    }
  return changed;
}

}  // namespace kiln
