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

}  // namespace

bool ForwardConstants(Instruction* loop) {
  bool changed = false;
  Computation *body = *loop->attrs().body, *condition = *loop->attrs().condition;
  for (size_t n = 0; n < loop->shape().tuple().size(); ++n) {
    const int64_t k = static_cast<int64_t>(n);
    if (!IsSameConstant(loop, k)) continue;
    const Instruction* constant = InitOf(loop, k);
    for (Instruction* state : {body->parameter(0), condition->parameter(0), loop}) ReadConstant(state, k, constant);
    // From here on it is forwarded, and dead.
    Instruction* own = body->Add(Opcode::GetTupleElement, constant->shape(), {body->parameter(0)});
    own->mutable_attrs().tuple_index = k;
    body->root()->ReplaceOperand(k, own);
    changed = true;
  }
  return changed;
}

}  // namespace kiln
