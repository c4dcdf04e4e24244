// Local algebra: the rules of passes/simplify/rules on every instruction.
//
// Keeps: shapes, types and layouts, and every result as far as each rule's numerics class says; only rules of classes
//   that the config's choice of algebra admits are applied. Each rewrite is counted under its rule's name. Once every
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

bool MayBeRewritten(const Instruction& i) {
  return (!i.users().empty() || i.IsRoot()) && i.control_predecessors().empty() && i.control_successors().empty();
}

// Bodies of fusions and of asynchronous operations are what somebody decided to run as one.
absl::flat_hash_set<const Computation*> Decided(const Module& m) {
  absl::flat_hash_set<const Computation*> out;
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions())
      if (i->Is(Opcode::Fusion) || i->Is(Opcode::AsyncStart))
        for (const Computation* called : i->called()) out.insert(called);
  return out;
}

absl::Status Simplify(Instruction* i, bool laid_out, Rewriter* rewriter, PassContext* ctx) {
  for (const Rule* rule : RulesFor(i->opcode())) {
    if (laid_out && rule->before_layouts) continue;
    if (!(rule->types & TypeSetOf(i->shape())) || !Admits(ctx->algebra, rule->numerics)) continue;
    ASSIGN_OR_RETURN(const bool replaced, rewriter->Replace(i, rule->rewrite));
    if (!replaced) continue;
    ++ctx->rewrites[rule->name];
    break;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> AlgebraicSimplifier(Module& m, PassContext& ctx) {
  Rewriter rewriter(ctx);
  const bool laid_out = IsLaidOut(m);
  const auto decided = Decided(m);
  std::vector<Computation*> all;  // rules add functions of reductions
  for (const auto& c : m.computations()) all.push_back(c.get());
  for (Computation* c : all) {
    if (decided.contains(c)) continue;
    for (Instruction* i : c->PostOrder())
      if (MayBeRewritten(*i) && !i->shape().HasDynamic()) RETURN_IF_ERROR(Simplify(i, laid_out, &rewriter, &ctx));
  }
  return rewriter.changed();
}

}  // namespace kiln
