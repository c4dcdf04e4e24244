// Small reductions of equal form that feed one instruction run as one kernel, whatever they read.
#include <algorithm>

#include "compiler/hlo/reachability.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

constexpr int64_t kMostElements = 1 << 16, kMostOperands = 64;

const Instruction* SmallReduce(const Instruction* i) {
  if (!i->Is(Opcode::Fusion) || IsCustomFusion(i) || !i->shape().IsArray() || i->users().size() != 1) return nullptr;
  if (!i->control_predecessors().empty() || !i->control_successors().empty()) return nullptr;
  const Instruction* root = (*i->attrs().calls)->root();
  return root->Is(Opcode::Reduce) && root->operand(0)->shape().ElementCount() <= kMostElements ? root : nullptr;
}

bool FuseOne(Computation* c, PassContext& ctx) {
  if (!Reachability::Affordable(c)) return false;
  const Reachability reach(c);
  for (Instruction* user : c->PostOrder()) {
    std::vector<Instruction*> small;
    for (Instruction* o : user->operands())
      if (SmallReduce(o) && std::find(small.begin(), small.end(), o) == small.end()) small.push_back(o);
    for (size_t x = 0; x < small.size(); ++x)
      for (size_t y = x + 1; y < small.size(); ++y) {
        const Instruction *a = SmallReduce(small[x]), *b = SmallReduce(small[y]);
        if (a->operand(0)->shape().dims() != b->operand(0)->shape().dims() ||
            *a->attrs().dimensions != *b->attrs().dimensions ||
            small[x]->operand_count() + small[y]->operand_count() > kMostOperands ||
            reach.Reaches(small[x], small[y]) || reach.Reaches(small[y], small[x]) || !ctx.Take())
          continue;
        FuseSiblings(small[x], small[y])->mutable_attrs().fusion_kind = FusionKind::kInput;
        return true;
      }
  }
  return false;
}

}  // namespace

absl::StatusOr<bool> GpuHorizontalInputFusion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m))
    while (FuseOne(c, ctx)) changed = true;
  return changed;
}

}  // namespace kiln
