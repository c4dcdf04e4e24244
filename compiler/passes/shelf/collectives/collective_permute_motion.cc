// A permutation at the end of a loop's body moves to the start of the next iteration, where more can run beside it. The
// first iteration takes what the loop starts with.
//
// Of elements that nothing reads behind the loop: the last iteration's permutation is left out.
#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/loops/while_state.h"

namespace kiln {
namespace {

bool IsConstant(const Instruction* i) {
  return i->Is(Opcode::Constant) || (i->Is(Opcode::Broadcast) && i->operand(0)->Is(Opcode::Constant));
}

// The permutation that element `k` ends with, and the operations on constants behind it, last first.
Instruction* PermutationAtEnd(const Instruction* loop, int64_t k, std::vector<Instruction*>* behind) {
  Instruction* i = (*loop->attrs().body)->root()->operand(k);
  const auto plain = [](const Instruction* x) {
    return x->users().size() == 1 && x->control_predecessors().empty() && x->control_successors().empty();
  };
  while (!i->Is(Opcode::CollectivePermute)) {
    if (!i->IsElementwise() || i->operand_count() == 0 || !plain(i)) return nullptr;
    int64_t data = -1;
    for (int64_t o = 0; o < i->operand_count(); ++o) {
      if (IsConstant(i->operand(o))) continue;
      if (data >= 0) return nullptr;
      data = o;
    }
    if (data < 0) return nullptr;
    behind->push_back(i);
    i = i->operand(data);
  }
  const std::vector<Instruction*>& roots = (*loop->attrs().body)->root()->operands();
  const Instruction* end = behind->empty() ? i : behind->front();
  const bool once = std::count(roots.begin(), roots.end(), end) == 1;
  return once && plain(i) && i->operand_count() == 1 && i->operand(0)->shape() == i->shape() ? i : nullptr;
}

bool ReadOnlyInBody(const Instruction* loop, int64_t k) {
  for (const Instruction* u : ElementReaders(loop, k))
    if (!u->users().empty() || u->IsRoot()) return false;
  return ElementReaders((*loop->attrs().condition)->parameter(0), k).empty();
}

Instruction* Onward(Instruction* x, const std::vector<Instruction*>& behind, const Instruction* after) {
  for (auto it = behind.rbegin(); it != behind.rend(); ++it) {
    std::vector<Instruction*> operands = (*it)->operands();
    const Instruction* data = it == behind.rbegin() ? after : *std::prev(it);
    for (Instruction*& o : operands)
      if (o == data) o = x;
    x = x->parent()->AddClone(*it, (*it)->shape(), operands);
  }
  return x;
}

// The element's readers read what the permutation gives; the state carries what it was given.
void MoveToStart(Instruction* loop, int64_t k, const Induction& v) {
  Computation* body = *loop->attrs().body;
  std::vector<Instruction*> behind;
  Instruction* permute = PermutationAtEnd(loop, k, &behind);
  const std::vector<Instruction*> readers = ElementReaders(body->parameter(0), k);
  const auto element = [&](int64_t index) {
    Instruction* e =
        body->Add(Opcode::GetTupleElement, loop->shape().tuple()[static_cast<size_t>(index)], {body->parameter(0)});
    e->mutable_attrs().tuple_index = index;
    return e;
  };
  Instruction* carried = element(k);
  Instruction* arrived = Onward(body->AddClone(permute, permute->shape(), {carried}), behind, permute);
  Expr counter = element(v.index);
  Expr first = BroadcastTo(CompareExpr(Direction::EQ, counter, IntegerIn(body, counter.type(), v.init)),
                           carried->shape().dims());
  Instruction* start = SelectExpr(first, carried, arrived).get();
  for (Instruction* r : readers) r->ReplaceAllUsesWith(start);
  body->root()->ReplaceOperand(k, permute->operand(0));
}

}  // namespace

absl::StatusOr<bool> CollectivePermuteMotion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : m.PostOrder())
    for (Instruction* loop : OfOpcode(c, Opcode::While)) {
      if (!HasFlatState(loop)) continue;
      const std::optional<Induction> v = FindInduction(loop);
      if (!v) continue;
      std::vector<int64_t> moving;
      for (size_t k = 0; k < loop->shape().tuple().size(); ++k) {
        std::vector<Instruction*> behind;
        const int64_t n = static_cast<int64_t>(k);
        if (n != v->index && ReadOnlyInBody(loop, n) && PermutationAtEnd(loop, n, &behind)) moving.push_back(n);
      }
      if (moving.empty() || !ctx.Take()) continue;
      loop->mutable_attrs().body = m.CloneComputation(*loop->attrs().body);
      for (int64_t k : moving) MoveToStart(loop, k, *v);
      changed = true;
    }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
