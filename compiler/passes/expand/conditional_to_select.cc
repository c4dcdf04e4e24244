// Inside computations that run once per element (of map, reduce, sort, ...) both branches of a conditional are computed
// and one result is selected: there is no control flow in a vector. Branches with side effects stay.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/simplify/branches.h"

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

bool IsFlat(const Shape& s) {
  return s.IsArray() || (s.IsTuple() && std::all_of(s.tuple().begin(), s.tuple().end(),
                                                    [](const Shape& part) { return part.IsArray(); }));
}

// Which of the branches runs: for a predicate the first if it is true; for an index out of range the last.
Expr Chosen(Expr which, const std::vector<Expr>& values) {
  const Ints& dims = values[0].shape().dims();
  if (which.type() == PrimitiveType::Pred) return SelectExpr(BroadcastTo(which, dims), values[0], values[1]);
  Expr out = values.back();
  for (size_t k = values.size() - 1; k-- > 0;)
    out = SelectExpr(BroadcastTo(which == static_cast<double>(k), dims), values[k], out);
  return out;
}

Instruction* AsSelects(Instruction* i) {
  std::vector<Expr> results;
  int64_t operand = 1;
  for (Computation* branch : BranchesOf(i)) {
    Instruction* call = i->parent()->Add(Opcode::Call, i->shape(), {i->operand(operand++)});
    call->mutable_attrs().to_apply = branch;
    results.push_back(call);
  }
  if (i->shape().IsArray()) return Chosen(i->operand(0), results).get();
  std::vector<Instruction*> parts;
  for (size_t k = 0; k < i->shape().tuple().size(); ++k) {
    std::vector<Expr> values;
    for (const Expr& r : results) values.push_back(PartOf(r, static_cast<int64_t>(k)));
    parts.push_back(Chosen(i->operand(0), values).get());
  }
  return i->parent()->Add(Opcode::Tuple, i->shape(), parts);
}

}  // namespace

absl::StatusOr<bool> ConditionalToSelect(Module& m, PassContext& ctx) {
  const absl::flat_hash_set<const Computation*> embedded = Embedded(m);
  const auto wanted = [&](Instruction* i) {
    if (!i->Is(Opcode::Conditional) || !embedded.contains(i->parent()) || !IsFlat(i->shape())) return false;
    const std::vector<Computation*> branches = BranchesOf(i);
    return std::all_of(branches.begin(), branches.end(), Pure);
  };
  return ExpandEach(m, ctx, wanted, AsSelects);
}

}  // namespace kiln
