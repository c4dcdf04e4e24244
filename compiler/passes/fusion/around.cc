#include "compiler/passes/fusion/around.h"

#include "compiler/passes/fusion/fuse.h"

namespace kiln {

bool IsElementalLoop(const Instruction* i) {
  if (!i->Is(Opcode::Fusion) || i->attrs().fusion_kind != FusionKind::kLoop || !i->shape().IsArray() ||
      !i->shape().HasDefaultLayout() || !i->control_predecessors().empty() || !i->control_successors().empty())
    return false;
  for (const auto& x : (*i->attrs().calls)->instructions())
    if (!x->Is(Opcode::Parameter) && !x->Is(Opcode::Constant) && !x->Is(Opcode::Bitcast) &&
        InfoOf(x->opcode()).lowering != Lowering::Elemental)
      return false;
  return true;
}

bool IsLoopBehind(const Instruction* i, const Instruction* center) {
  const auto same = [&](const Instruction* x) {
    return (x->IsElementwise() || x->Is(Opcode::Bitcast)) && x->shape().IsArray() && x->shape().HasDefaultLayout() &&
           x->shape().ElementCount() == center->shape().ElementCount();
  };
  return IsElementalLoop(i) && (*i->attrs().calls)->root()->IsElementwise() &&
         i->shape().ElementCount() == center->shape().ElementCount() && EveryUseIs(i, center, same);
}

}  // namespace kiln
