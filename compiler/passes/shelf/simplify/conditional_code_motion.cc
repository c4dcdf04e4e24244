// An elementwise operation of one operand at the end of every branch moves behind the conditional: one copy of it
// instead of many, where it can fuse with what follows. One of several operands that all are results of one conditional
// moves into its branches, where it can fuse with what makes them; so does a copy into another layout that a copy in a
// branch may undo.
#include <algorithm>

#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/other_passes.h"
#include "compiler/passes/shelf/simplify/computation_text.h"
#include "compiler/passes/simplify/branches.h"

namespace kiln {
namespace {

// The operation behind result `k` of a branch, if it may leave.
Instruction* Last(const Computation* branch, int64_t k) {
  Instruction* i = branch->root()->operand(k);
  const bool moves =
      ((i->IsElementwise() && !i->Is(Opcode::Copy)) || i->Is(Opcode::Reshape) || i->Is(Opcode::Transpose)) &&
      i->operand_count() == 1 && i->users().size() == 1 && !i->HasSideEffect() && i->control_predecessors().empty() &&
      i->control_successors().empty();
  return moves && i->operand(0)->shape().IsArray() ? i : nullptr;
}

bool SameEverywhere(const std::vector<Computation*>& branches, int64_t k) {
  const Instruction* first = Last(branches[0], k);
  if (!first) return false;
  return std::all_of(branches.begin(), branches.end(), [&](const Computation* b) {
    const Instruction* i = Last(b, k);
    return i && InstructionText(i) == InstructionText(first) && i->operand(0)->shape() == first->operand(0)->shape();
  });
}

bool ReadByElement(const Instruction* i) {
  return !i->IsRoot() && std::all_of(i->users().begin(), i->users().end(),
                                     [](const Instruction* u) { return u->Is(Opcode::GetTupleElement); });
}

// The results of `conditional` that every operand of `user` is, -1 for constants; empty if there is another operand. An
// array that is the conditional itself counts as result 0.
Ints ResultsRead(const Instruction* conditional, const Instruction* user) {
  Ints out;
  bool any = false;
  for (const Instruction* o : user->operands()) {
    if (o == conditional && o->shape().IsArray()) {
      out.push_back(0);
    } else if (o->Is(Opcode::GetTupleElement) && o->operand(0) == conditional) {
      out.push_back(*o->attrs().tuple_index);
    } else if (o->Is(Opcode::Constant)) {
      out.push_back(-1);
    } else {
      return {};
    }
    any = any || out.back() >= 0;
  }
  return any ? out : Ints();
}

// What result `k` of a branch is computed by; null if it hands that on from its argument.
const Instruction* ResultOf(const Computation* branch, int64_t k, bool is_tuple) {
  const Instruction* root = branch->root();
  if (!is_tuple) return root;
  return root->Is(Opcode::Tuple) ? root->operand(k) : nullptr;
}

bool GainsInside(const Instruction* conditional, const Instruction* user, const Ints& read) {
  if (user->Is(Opcode::Copy)) {
    for (const Computation* b : BranchesOf(conditional)) {
      const Instruction* r = ResultOf(b, read[0], conditional->shape().IsTuple());
      if (r && r->Is(Opcode::Copy) && r->operand(0)->shape() == user->shape() && user->shape() != r->shape())
        return true;
    }
    return false;
  }
  if (user->operand_count() < 2) return false;
  for (const Computation* b : BranchesOf(conditional))
    for (int64_t k : read) {
      const Instruction* r = k < 0 ? nullptr : ResultOf(b, k, conditional->shape().IsTuple());
      if (r && r->IsElementwise() && r->operand_count() > 0) return true;
    }
  return false;
}

// A reader of the conditional that may move into its branches; null if there is none.
Instruction* MovesIn(const Instruction* conditional) {
  const bool is_tuple = conditional->shape().IsTuple();
  if (conditional->IsRoot() || (is_tuple && !ReadByElement(conditional)) ||
      (!is_tuple && conditional->users().size() != 1))
    return nullptr;
  for (Instruction* u : conditional->users()) {
    for (Instruction* user : is_tuple ? u->users() : std::vector<Instruction*>{u}) {
      if (!user->IsElementwise() || !user->shape().IsArray() || user->HasSideEffect() ||
          !user->control_predecessors().empty() || !user->control_successors().empty())
        continue;
      const Ints read = ResultsRead(conditional, user);
      if (!read.empty() && GainsInside(conditional, user, read)) return user;
    }
  }
  return nullptr;
}

// `user` computed at the end of a copy of `branch`: the result of an array, or the last of a tuple.
Computation* WithUser(Computation* branch, const Instruction* user, const Ints& read, bool is_tuple,
                      const Shape& shape) {
  Computation* b = branch->module()->CloneComputation(branch);
  Instruction* root = b->root();
  const auto result = [&](int64_t k) {
    if (!is_tuple) return root;
    if (root->Is(Opcode::Tuple)) return root->operand(k);
    Instruction* e = b->Add(Opcode::GetTupleElement, root->shape().tuple()[static_cast<size_t>(k)], {root});
    e->mutable_attrs().tuple_index = k;
    return e;
  };
  std::vector<Instruction*> operands;
  for (size_t k = 0; k < read.size(); ++k) {
    const Instruction* o = user->operand(static_cast<int64_t>(k));
    operands.push_back(read[k] >= 0 ? result(read[k]) : b->AddClone(o, o->shape(), {}));
  }
  Instruction* value = b->AddClone(user, user->shape(), operands);
  if (is_tuple) {
    std::vector<Instruction*> results;
    for (size_t k = 0; k + 1 < shape.tuple().size(); ++k) results.push_back(result(static_cast<int64_t>(k)));
    results.push_back(value);
    value = b->Add(Opcode::Tuple, shape, results);
  }
  b->set_root(value);
  return b;
}

// The conditional with `user` as its last, or only, result.
Instruction* MoveIn(Instruction* conditional, Instruction* user) {
  Computation* c = conditional->parent();
  const bool is_tuple = conditional->shape().IsTuple();
  const Ints read = ResultsRead(conditional, user);
  std::vector<Shape> shapes = conditional->shape().tuple();
  shapes.push_back(user->shape());
  const Shape shape = is_tuple ? Shape::Tuple(shapes) : user->shape();
  std::vector<Computation*> branches = BranchesOf(conditional);
  for (Computation*& b : branches) b = WithUser(b, user, read, is_tuple, shape);
  Instruction* n = c->AddClone(conditional, shape, conditional->operands());
  n->mutable_attrs().sharding.reset();
  SetBranches(n, branches);
  const auto element = [&](int64_t k) {
    Instruction* e = c->Add(Opcode::GetTupleElement, shapes[static_cast<size_t>(k)], {n});
    e->mutable_attrs().tuple_index = k;
    return e;
  };
  user->ReplaceAllUsesWith(is_tuple ? element(static_cast<int64_t>(shapes.size()) - 1) : n);
  c->Remove(user);
  if (is_tuple)
    for (Instruction* u : std::vector<Instruction*>(conditional->users())) {
      u->ReplaceAllUsesWith(element(*u->attrs().tuple_index));
      c->Remove(u);
    }
  c->Remove(conditional);
  return n;
}

// The ends of branches that `moving` names move behind the conditional.
void MoveOut(Instruction* i, std::vector<Computation*> branches, const std::vector<int64_t>& moving) {
  Computation* c = i->parent();
  Module& m = *c->module();
  std::vector<Shape> shapes = i->shape().tuple();
  std::vector<Instruction*> ends;
  for (int64_t k : moving) {
    ends.push_back(Last(branches[0], k));
    shapes[static_cast<size_t>(k)] = ends.back()->operand(0)->shape();
  }
  const Shape shape = Shape::Tuple(shapes);
  for (Computation*& b : branches) {
    b = m.CloneComputation(b);
    std::vector<Instruction*> results = b->root()->operands();
    for (int64_t k : moving) results[static_cast<size_t>(k)] = results[static_cast<size_t>(k)]->operand(0);
    Instruction* old = b->root();
    b->set_root(b->Add(Opcode::Tuple, shape, results));
    b->Remove(old);
  }
  Instruction* n = c->AddClone(i, shape, i->operands());
  SetBranches(n, branches);
  for (Instruction* u : std::vector<Instruction*>(i->users())) {
    const int64_t k = *u->attrs().tuple_index;
    Instruction* value = c->Add(Opcode::GetTupleElement, shapes[static_cast<size_t>(k)], {n});
    value->mutable_attrs().tuple_index = k;
    const auto at = std::find(moving.begin(), moving.end(), k);
    if (at != moving.end()) value = c->AddClone(ends[static_cast<size_t>(at - moving.begin())], u->shape(), {value});
    u->ReplaceAllUsesWith(value);
    c->Remove(u);
  }
  c->Remove(i);
}

// The results whose last operation may leave the branches.
std::vector<int64_t> MovesOut(const Instruction* i) {
  std::vector<int64_t> moving;
  if (!i->shape().IsTuple() || !ReadByElement(i)) return moving;
  const std::vector<Computation*> branches = BranchesOf(i);
  for (const Computation* b : branches)
    if (!b->root()->Is(Opcode::Tuple)) return moving;
  for (size_t k = 0; k < i->shape().tuple().size(); ++k)
    if (SameEverywhere(branches, static_cast<int64_t>(k))) moving.push_back(static_cast<int64_t>(k));
  return moving;
}

}  // namespace

absl::StatusOr<bool> ConditionalCodeMotion(Module& m, PassContext& ctx) {
  bool changed = false;
  const std::vector<Computation*> all = m.PostOrder();
  for (Computation* c : all) {
    for (Instruction* i : OfOpcode(c, Opcode::Conditional)) {
      const std::vector<int64_t> moving = MovesOut(i);
      if (!moving.empty()) {
        if (!ctx.Take()) continue;
        MoveOut(i, BranchesOf(i), moving);
        changed = true;
        continue;
      }
      for (Instruction* user = MovesIn(i); user && ctx.Take(); user = MovesIn(i)) {
        i = MoveIn(i, user);
        changed = true;
      }
    }
  }
  if (changed) RETURN_IF_ERROR(Dce(m, ctx).status());
  return changed;
}

}  // namespace kiln
