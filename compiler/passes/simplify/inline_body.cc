#include "compiler/passes/simplify/inline_body.h"

namespace kiln {

Instruction* InlineBody(Computation* into, const Computation* callee, const std::vector<Instruction*>& arguments,
                        const Instruction* site) {
  absl::flat_hash_map<const Instruction*, Instruction*> map;
  for (Instruction* i : callee->PostOrder()) {
    if (i->Is(Opcode::Parameter)) {
      map[i] = arguments[*i->attrs().parameter_number];
      continue;
    }
    std::vector<Instruction*> ops;
    for (Instruction* o : i->operands()) ops.push_back(map.at(o));
    Instruction* n = into->AddClone(i, i->shape(), ops);
    if (n->loc().line == 0) n->set_loc(site->loc());
    for (Instruction* p : i->control_predecessors())
      if (!p->Is(Opcode::Parameter)) map.at(p)->AddControlDependencyTo(n);
    // Order asked of the call holds for what may be seen to run.
    const bool ordered = !site->control_predecessors().empty() || !site->control_successors().empty();
    if (ordered && site->parent() == into && n->HasSideEffect()) {
      for (Instruction* p : std::vector<Instruction*>(site->control_predecessors())) p->AddControlDependencyTo(n);
      for (Instruction* s : std::vector<Instruction*>(site->control_successors())) n->AddControlDependencyTo(s);
    }
    map[i] = n;
  }
  return map.at(callee->root());
}

}  // namespace kiln
