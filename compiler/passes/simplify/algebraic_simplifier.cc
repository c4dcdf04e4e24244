// Local algebra: the rules of passes/simplify/rules on every instruction.
//
// Keeps: shapes, types and layouts, and every result as far as each rule's numerics class says. Once every
//   array has a layout, rules that change extents are left out.
#include "compiler/pass/rewriter.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

// Whether layouts have been assigned: every array has one, scalars included.
bool IsLaidOut(const Module& m) {
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions())
      if (i->shape().IsArray() && !i->shape().layout()) return false;
  return true;
}

}  // namespace

absl::StatusOr<bool> AlgebraicSimplifier(Module& m, PassContext& ctx) {
  Rewriter rewriter(ctx);
  const bool laid_out = IsLaidOut(m);
  for (const auto& c : m.computations())
    for (Instruction* i : c->PostOrder()) {
      if ((i->users().empty() && !i->IsRoot()) || i->shape().HasDynamic()) continue;
      if (!i->control_predecessors().empty() || !i->control_successors().empty()) continue;
      for (const Rule* rule : RulesFor(i->opcode())) {
        if (!(rule->types & TypeSetOf(i->shape())) || (laid_out && rule->before_layouts)) continue;
        ASSIGN_OR_RETURN(const bool replaced, rewriter.Replace(i, rule->rewrite));
        if (replaced) break;
      }
    }
  return rewriter.changed();
}

}  // namespace kiln
