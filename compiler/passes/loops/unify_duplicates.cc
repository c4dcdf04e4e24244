#include "compiler/passes/loops/while_simplifications.h"
#include "compiler/passes/loops/while_state.h"

namespace kiln {
namespace {

// Readers of `state`'s element `from` read `to` instead.
bool Redirect(Instruction* state, int64_t from, int64_t to) {
  bool changed = false;
  for (Instruction* u : ElementReaders(state, from)) {
    u->mutable_attrs().tuple_index = to;
    changed = true;
  }
  return changed;
}

bool SameAttributes(const Instruction* x, const Instruction* y) {
  Attributes a = x->attrs(), b = y->attrs();
  for (Attributes* of : {&a, &b}) {
    of->metadata.reset();
    of->origin.reset();
  }
  return a == b;
}

// Whether `x` is for element `a` of the state what `y` is for element `b`, at most `depth` operations deep.
bool Equivalent(const Instruction* x, const Instruction* y, int64_t a, int64_t b, int depth) {
  if (x == y) return true;
  if (depth == 0 || x->opcode() != y->opcode() || x->shape() != y->shape() || x->HasSideEffect() ||
      x->Is(Opcode::CustomCall) || x->Is(Opcode::Rng) || x->Is(Opcode::Domain) || x->Is(Opcode::Parameter) ||
      x->operand_count() != y->operand_count())
    return false;
  if (x->Is(Opcode::Constant)) return x->literal() == y->literal();
  if (x->Is(Opcode::GetTupleElement) && x->operand(0)->Is(Opcode::Parameter) && x->operand(0) == y->operand(0))
    return *x->attrs().tuple_index == *y->attrs().tuple_index ||
           (*x->attrs().tuple_index == a && *y->attrs().tuple_index == b);
  if (!SameAttributes(x, y)) return false;
  for (int64_t k = 0; k < x->operand_count(); ++k)
    if (!Equivalent(x->operand(k), y->operand(k), a, b, depth - 1)) return false;
  return true;
}

bool StayEqual(const Instruction* loop, int64_t a, int64_t b) {
  constexpr int kDepth = 4;
  if (InitOf(loop, a) != InitOf(loop, b) || loop->shape().tuple()[a] != loop->shape().tuple()[b]) return false;
  const Instruction* next = (*loop->attrs().body)->root();
  return Equivalent(next->operand(a), next->operand(b), a, b, kDepth);
}

}  // namespace

bool UnifyDuplicates(Instruction* loop) {
  bool changed = false;
  Computation* body = *loop->attrs().body;
  const int64_t n = static_cast<int64_t>(loop->shape().tuple().size());
  for (int64_t b = 1; b < n; ++b)
    for (int64_t a = 0; a < b; ++a) {
      if (!StayEqual(loop, a, b)) continue;
      if (!loop->IsRoot()) changed |= Redirect(loop, b, a);
      changed |= Redirect((*loop->attrs().condition)->parameter(0), b, a);
      const Instruction* next = body->root()->operand(b);
      for (Instruction* u : ElementReaders(body->parameter(0), b)) {
        if (u->users().empty()) continue;
        // The body's root may go on forwarding the element itself.
        if (u->users().size() == 1 && u->users()[0] == body->root() && next == u) continue;
        Instruction* first = body->Add(Opcode::GetTupleElement, u->shape(), {u->operand(0)});
        first->mutable_attrs().tuple_index = a;
        for (Instruction* user : std::vector<Instruction*>(u->users()))
          if (user != body->root()) u->ReplaceUseWith(user, first);
        changed = true;
      }
      break;
    }
  return changed;
}

}  // namespace kiln
