// Independent loops over the same elements that read an array in common become one loop with several results: the array
// is read once. The pair that saves most bytes goes first.
#include <algorithm>

#include "compiler/hlo/reachability.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

bool Loop(const Instruction* i) {
  if (!i->shape().IsArray() || i->shape().rank() == 0 || !i->control_predecessors().empty() ||
      !i->control_successors().empty())
    return false;
  if (i->Is(Opcode::Fusion))
    return i->attrs().fusion_kind == FusionKind::kLoop && (*i->attrs().calls)->root()->IsElementwise();
  return i->IsElementwise() && !i->operands().empty() && !i->HasSideEffect();
}

int64_t SharedBytes(const Instruction* a, const Instruction* b) {
  int64_t n = 0;
  for (const Instruction* o : a->operands())
    if (o->shape().IsArray() && o->shape().rank() > 0 && b->OperandIndex(o) >= 0) n += o->shape().ByteSize();
  return n;
}

}  // namespace

absl::StatusOr<bool> MultiOutputFusion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m)) {
    while (Reachability::Affordable(c)) {
      const Reachability reach(c);
      std::vector<Instruction*> loops;
      for (Instruction* i : c->PostOrder())
        if (Loop(i)) loops.push_back(i);
      Instruction *first = nullptr, *second = nullptr;
      int64_t most = 0;
      for (size_t x = 0; x < loops.size(); ++x)
        for (size_t y = x + 1; y < loops.size(); ++y) {
          if (loops[x]->shape().dims() != loops[y]->shape().dims()) continue;
          const int64_t saved = SharedBytes(loops[x], loops[y]);
          if (saved <= most || reach.Reaches(loops[x], loops[y])) continue;
          most = saved;
          first = loops[x];
          second = loops[y];
        }
      if (!first || !ctx.Take()) break;
      FuseSiblings(first, second);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
