#include "compiler/passes/loops/while_simplifications.h"
#include "compiler/passes/loops/while_state.h"

namespace kiln {
namespace {

bool IsSameConstant(const Instruction* loop, int64_t k) {
  const Instruction *init = InitOf(loop, k), *next = (*loop->attrs().body)->root()->operand(k);
  return init->Is(Opcode::Constant) && next->Is(Opcode::Constant) && init->shape() == next->shape() &&
         init->literal() == next->literal();
}

// Readers of element `k` of `state` read a copy of `constant`.
void ReadConstant(Instruction* state, int64_t k, const Instruction* constant) {
  Computation* c = state->parent();
  for (Instruction* e : ElementReaders(state, k)) {
    if (e->users().empty() && !e->IsRoot()) continue;
    e->ReplaceAllUsesWith(c->AddClone(constant, constant->shape(), {}));
  }
}

// The body gives element `k` as it got it.
void Forward(Computation* body, int64_t k, const Shape& shape) {
  Instruction* own = body->Add(Opcode::GetTupleElement, shape, {body->parameter(0)});
  own->mutable_attrs().tuple_index = k;
  body->root()->ReplaceOperand(k, own);
}

// Whether more than the next iteration's state reads element `k` of `state`. The root of a condition is no state.
bool IsRead(const Instruction* state, int64_t k) {
  const Instruction* root = state->parent()->root();
  for (const Instruction* e : ElementReaders(state, k)) {
    if (e->IsRoot()) return true;
    for (const Instruction* u : e->users())
      if (u != root || !root->Is(Opcode::Tuple)) return true;
  }
  return false;
}

}  // namespace

bool ReadConstantsInside(Instruction* loop) {
  bool changed = false;
  Computation *body = *loop->attrs().body, *condition = *loop->attrs().condition;
  for (size_t n = 0; n < loop->shape().tuple().size(); ++n) {
    const int64_t k = static_cast<int64_t>(n);
    const Instruction* constant = InitOf(loop, k);
    if (!IsInvariant(loop, k) || !constant->Is(Opcode::Constant) || !constant->shape().IsScalar()) continue;
    if (IsRead(condition->parameter(0), k)) {
      ReadConstant(condition->parameter(0), k, constant);
      changed = true;
    }
    if (!IsRead(body->parameter(0), k)) continue;
    ReadConstant(body->parameter(0), k, constant);
    Forward(body, k, constant->shape());
    changed = true;
  }
  return changed;
}

bool ForwardConstants(Instruction* loop) {
  bool changed = false;
  Computation *body = *loop->attrs().body, *condition = *loop->attrs().condition;
  for (size_t n = 0; n < loop->shape().tuple().size(); ++n) {
    const int64_t k = static_cast<int64_t>(n);
    if (!IsSameConstant(loop, k)) continue;
    const Instruction* constant = InitOf(loop, k);
    for (Instruction* state : {body->parameter(0), condition->parameter(0), loop}) ReadConstant(state, k, constant);
    Forward(body, k, constant->shape());  // and dead, from here on
    changed = true;
  }
  return changed;
}

}  // namespace kiln
