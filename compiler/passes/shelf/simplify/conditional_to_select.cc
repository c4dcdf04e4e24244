// Inside computations that run once per element (of map, reduce, sort, ...) both branches of a conditional are computed
// and one result is selected: there is no control flow in a vector. Branches with side effects stay.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/shelf/simplify/branches.h"

namespace kiln {
namespace {

bool Pure(const Computation* c) {
  return std::none_of(c->instructions().begin(), c->instructions().end(),
                      [](const auto& i) { return i->HasSideEffect(); });
}

// Computations that only instructions of the embedded kind call.
absl::flat_hash_set<const Computation*> Embedded(const Module& m) {
  absl::flat_hash_set<const Computation*> out, sequential = {m.entry()};
  std::vector<Computation*> order = m.PostOrder();
  for (auto it = order.rbegin(); it != order.rend(); ++it)
    for (const auto& i : (*it)->instructions())
      for (const Computation* f : i->called()) {
        const bool flow = i->Is(Opcode::Call) || i->Is(Opcode::While) || i->Is(Opcode::Conditional);
        if (flow && sequential.contains(*it)) sequential.insert(f);
        if (!flow || out.contains(*it)) out.insert(f);
      }
  for (const Computation* c : sequential) out.erase(c);
  return out;
}

}  // namespace

absl::StatusOr<bool> ConditionalToSelect(Module& m, PassContext& ctx) {
  const absl::flat_hash_set<const Computation*> embedded = Embedded(m);
  ASSIGN_OR_RETURN(const bool changed,
                   ExpandEach(
                       m, ctx,
                       [&](Instruction* i) {
                         if (!i->Is(Opcode::Conditional) || !embedded.contains(i->parent()) || !i->shape().IsArray() ||
                             i->operand(0)->shape().type() != PrimitiveType::Pred)
                           return false;
                         const std::vector<Computation*> branches = BranchesOf(i);
                         return branches.size() == 2 && Pure(branches[0]) && Pure(branches[1]);
                       },
                       [](Instruction* i) -> absl::StatusOr<Instruction*> {
                         const std::vector<Computation*> branches = BranchesOf(i);
                         std::vector<Instruction*> values;
                         for (int64_t k = 0; k < 2; ++k) {
                           values.push_back(i->parent()->Add(Opcode::Call, i->shape(), {i->operand(k + 1)}));
                           values.back()->mutable_attrs().to_apply = branches[static_cast<size_t>(k)];
                         }
                         Expr pred = BroadcastTo(i->operand(0), i->shape().dims());
                         return SelectExpr(pred, values[0], values[1]).get();
                       }));
  return changed;
}

}  // namespace kiln
