#include "compiler/passes/simplify/conditional_tuples.h"

#include <algorithm>
#include <map>

#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/simplify/branches.h"

namespace kiln {
namespace {

bool ReadByElement(const Instruction* tuple) {
  return tuple->shape().IsTuple() && !tuple->IsRoot() &&
         std::all_of(tuple->users().begin(), tuple->users().end(),
                     [](const Instruction* u) { return u->Is(Opcode::GetTupleElement); });
}

// Which elements of `tuple` have readers, in order.
Ints ReadElements(const Instruction* tuple) {
  Ints out;
  for (size_t k = 0; k < tuple->shape().tuple().size(); ++k)
    for (const Instruction* u : tuple->users())
      if (*u->attrs().tuple_index == static_cast<int64_t>(k)) {
        out.push_back(static_cast<int64_t>(k));
        break;
      }
  return out;
}

int64_t PlaceOf(const Ints& kept, int64_t element) {
  return std::lower_bound(kept.begin(), kept.end(), element) - kept.begin();
}

// Elements `kept` of `tuple` as a tuple.
Instruction* Part(Instruction* tuple, const Ints& kept) {
  std::vector<Instruction*> parts;
  std::vector<Shape> shapes;
  for (int64_t k : kept) {
    parts.push_back(tuple->Is(Opcode::Tuple) ? tuple->operand(k) : PartOf(tuple, k).get());
    shapes.push_back(parts.back()->shape());
  }
  return tuple->parent()->Add(Opcode::Tuple, Shape::Tuple(shapes), parts);
}

}  // namespace

bool UnifyEqualResults(Instruction* conditional) {
  if (!ReadByElement(conditional)) return false;
  const std::vector<Computation*> branches = BranchesOf(conditional);
  for (const Computation* b : branches)
    if (!b->root()->Is(Opcode::Tuple)) return false;
  std::map<std::vector<int64_t>, int64_t> first;  // from what the branches give, by id
  bool changed = false;
  for (size_t n = 0; n < conditional->shape().tuple().size(); ++n) {
    const int64_t k = static_cast<int64_t>(n);
    std::vector<int64_t> given;
    for (const Computation* b : branches) given.push_back(b->root()->operand(k)->id());
    const int64_t before = first.emplace(given, k).first->second;
    if (before == k) continue;
    for (Instruction* u : conditional->users())
      if (*u->attrs().tuple_index == k) {
        u->mutable_attrs().tuple_index = before;
        changed = true;
      }
  }
  return changed;
}

Instruction* WithoutUnreadResults(Instruction* conditional) {
  const bool unread = conditional->users().empty() && !conditional->IsRoot();
  if (!unread && !ReadByElement(conditional)) return nullptr;
  const Ints kept = unread ? Ints() : ReadElements(conditional);
  if (conditional->shape().IsTuple() && kept.size() == conditional->shape().tuple().size()) return nullptr;
  Computation* c = conditional->parent();
  std::vector<Computation*> branches;
  for (Computation* b : BranchesOf(conditional)) {
    Computation* own = c->module()->CloneComputation(b);
    own->set_root(Part(own->root(), kept));
    branches.push_back(own);
  }
  std::vector<Shape> shapes;
  for (int64_t k : kept) shapes.push_back(conditional->shape().tuple()[static_cast<size_t>(k)]);
  Instruction* n = c->AddClone(conditional, Shape::Tuple(shapes), conditional->operands());
  n->mutable_attrs().original_value.reset();
  n->mutable_attrs().origin.reset();
  SetBranches(n, branches);
  for (Instruction* u : std::vector<Instruction*>(conditional->users())) {
    Instruction* e = c->AddClone(u, u->shape(), {n});
    e->mutable_attrs().tuple_index = PlaceOf(kept, *u->attrs().tuple_index);
    u->ReplaceAllUsesWith(e);
    c->Remove(u);
  }
  c->Remove(conditional);
  return n;
}

bool DropUnreadOperands(Instruction* conditional) {
  std::vector<Computation*> branches = BranchesOf(conditional);
  bool changed = false;
  for (size_t b = 0; b < branches.size(); ++b) {
    if (!ReadByElement(branches[b]->parameter(0))) continue;
    const Ints kept = ReadElements(branches[b]->parameter(0));
    if (kept.size() == branches[b]->parameter(0)->shape().tuple().size()) continue;
    branches[b] = branches[b]->module()->CloneComputation(branches[b]);
    Instruction *parameter = branches[b]->parameter(0), *given = conditional->operand(static_cast<int64_t>(b) + 1);
    Instruction* part = Part(given, kept);
    parameter->mutable_shape() = part->shape();
    for (Instruction* u : parameter->users()) u->mutable_attrs().tuple_index = PlaceOf(kept, *u->attrs().tuple_index);
    conditional->ReplaceOperand(static_cast<int64_t>(b) + 1, part);
    changed = true;
  }
  if (changed) SetBranches(conditional, branches);
  return changed;
}

}  // namespace kiln
