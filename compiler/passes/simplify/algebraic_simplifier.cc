// Local algebra: the rules of passes/simplify/rules on every instruction.
//
// Keeps: shapes, types and layouts, and every result as far as each rule's numerics class says.
#include "compiler/pass/rewriter.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {

absl::StatusOr<bool> AlgebraicSimplifier(Module& m, PassContext& ctx) {
  Rewriter rewriter(ctx);
  for (const auto& c : m.computations())
    for (Instruction* i : c->PostOrder()) {
      if ((i->users().empty() && !i->IsRoot()) || i->shape().HasDynamic()) continue;
      if (!i->control_predecessors().empty() || !i->control_successors().empty()) continue;
      for (const Rule* rule : RulesFor(i->opcode())) {
        if (!(rule->types & TypeSetOf(i->shape()))) continue;
        ASSIGN_OR_RETURN(const bool replaced, rewriter.Replace(i, rule->rewrite));
        if (replaced) break;
      }
    }
  return rewriter.changed();
}

}  // namespace kiln
