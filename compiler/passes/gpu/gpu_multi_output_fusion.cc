// Kernels that visit the same elements become one with several results: loops over one shape that share an operand or
// feed each other, and reductions of equal form over arrays that they both read.
#include "compiler/hlo/reachability.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/other_passes.h"

namespace kiln {
namespace {

constexpr int64_t kMostOperands = 96;

const Instruction* ReduceRoot(const Instruction* i) {
  if (!i->Is(Opcode::Fusion) || IsCustomFusion(i) || !i->shape().IsArray()) return nullptr;
  const Instruction* root = (*i->attrs().calls)->root();
  return root->Is(Opcode::Reduce) ? root : nullptr;
}

bool Alike(const Instruction* a, const Instruction* b) {
  const Instruction *x = ReduceRoot(a), *y = ReduceRoot(b);
  return x && y && x->operand(0)->shape().dims() == y->operand(0)->shape().dims() &&
         *x->attrs().dimensions == *y->attrs().dimensions && a->operand_count() + b->operand_count() <= kMostOperands;
}

bool ShareAnOperand(const Instruction* a, const Instruction* b) {
  for (const Instruction* o : a->operands())
    if (o->shape().ElementCount() > 1 && b->OperandIndex(o) >= 0) return true;
  return false;
}

bool PairReductions(Computation* c, PassContext& ctx) {
  std::vector<Instruction*> reductions;
  for (Instruction* i : c->PostOrder())
    if (ReduceRoot(i) && i->control_predecessors().empty() && i->control_successors().empty()) reductions.push_back(i);
  if (reductions.size() < 2 || !Reachability::Affordable(c)) return false;
  const Reachability reach(c);
  for (size_t x = 0; x < reductions.size(); ++x)
    for (size_t y = x + 1; y < reductions.size(); ++y) {
      Instruction *a = reductions[x], *b = reductions[y];
      if (!Alike(a, b) || !ShareAnOperand(a, b) || reach.Reaches(a, b) || !ctx.Take()) continue;
      FuseSiblings(a, b)->mutable_attrs().fusion_kind = "kInput";
      return true;
    }
  return false;
}

}  // namespace

absl::StatusOr<bool> GpuMultiOutputFusion(Module& m, PassContext& ctx) {
  ASSIGN_OR_RETURN(bool changed, CpuMultiOutputFusion(m, ctx));
  for (Computation* c : ControlComputations(m))
    while (PairReductions(c, ctx)) changed = true;
  return changed;
}

}  // namespace kiln
