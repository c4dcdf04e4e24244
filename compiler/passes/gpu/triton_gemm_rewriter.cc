// Products of kiln's own kernels take along what surrounds them: one fusion, computed tile by tile, in which what is
// computed of the operands comes before the product and what is computed of the result after.
//
// Dots only where no library takes them as they are, because an operand is widened from a type that it lacks beside the
// other's (8-bit or 4-bit integers into floats): the array is read in its narrow form then. In the form of
// dot-decomposer. Convolutions that are computed as products, if something follows them: bias, activation, residual.
#include "compiler/hlo/tuning.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/pipeline/registry.h"

namespace kiln {
namespace {

bool Canonical(const Instruction* i) {
  return i->Is(Opcode::Dot) && i->shape().rank() == 3 && i->operand(0)->shape().rank() == 3 &&
         i->operand(1)->shape().rank() == 3 && i->attrs().lhs_contracting_dims &&
         i->attrs().lhs_contracting_dims->size() == 1 && !i->attrs().sparsity && !i->shape().HasDynamic();
}

bool JoinsUser(const Instruction* o) {
  return o->users().size() == 1 && !o->IsRoot() && o->shape().HasDefaultLayout() && o->control_predecessors().empty() &&
         o->control_successors().empty();
}

bool JoinsOperand(const Instruction* o) {
  return (o->IsElementwise() || o->Is(Opcode::Bitcast) ||
          (o->Is(Opcode::Broadcast) && o->operand(0)->shape().rank() == 0)) &&
         JoinsUser(o);
}

bool ConvolutionAsProduct(const Instruction* i) {
  return i->Is(Opcode::Convolution) && IsTunableProduct(i) && i->shape().HasDefaultLayout() &&
         i->operand(0)->shape().HasDefaultLayout() && i->operand(1)->shape().HasDefaultLayout() &&
         !i->shape().HasDynamic();
}

void TakeOperand(const Instruction* o, absl::flat_hash_set<const Instruction*>* members, bool* widens) {
  if (!JoinsOperand(o)) return;
  members->insert(o);
  *widens = *widens || (o->Is(Opcode::Convert) && IsFloat(o->shape().type()) &&
                        IsIntegral(o->operand(0)->shape().type()) && InfoOf(o->operand(0)->shape().type()).bits <= 8);
  for (const Instruction* next : o->operands()) TakeOperand(next, members, widens);
}

// What follows `hero` element by element joins, with the broadcasts that it reads; returns the last that does.
Instruction* TakeUsers(Instruction* hero, absl::flat_hash_set<const Instruction*>* members) {
  constexpr int kMostAfter = 12;
  Instruction* root = hero;
  for (int k = 0; k < kMostAfter && root->users().size() == 1 && !root->IsRoot(); ++k) {
    Instruction* user = root->users()[0];
    const bool same =
        user->Is(Opcode::Bitcast) || (user->IsElementwise() && user->shape().dims() == root->shape().dims());
    if (!same || !user->shape().HasDefaultLayout() || !user->control_predecessors().empty() ||
        !user->control_successors().empty())
      break;
    for (const Instruction* o : user->operands())
      if (o->Is(Opcode::Broadcast) && JoinsUser(o)) members->insert(o);
    members->insert(user);
    root = user;
  }
  return root;
}

}  // namespace

absl::StatusOr<bool> TritonGemmRewriter(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m)) {
    // Nothing but these stays while others are fused.
    std::vector<Instruction*> products;
    for (Instruction* i : c->PostOrder())
      if ((ConvolutionAsProduct(i) || Canonical(i)) && i->operand(0) != i->operand(1)) products.push_back(i);
    for (Instruction* i : products) {
      const bool convolution = i->Is(Opcode::Convolution);
      absl::flat_hash_set<const Instruction*> members = {i};
      bool widens = false;
      if (!convolution)
        for (const Instruction* o : i->operands()) TakeOperand(o, &members, &widens);
      Instruction* root = TakeUsers(i, &members);
      if ((convolution ? root == i : !widens) || !ctx.Take()) continue;
      FuseMembers(root, members, "kCustom")->attrs().backend_config =
          "{\"fusion_backend_config\":{\"kind\":\"__triton_gemm\"}}";
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
