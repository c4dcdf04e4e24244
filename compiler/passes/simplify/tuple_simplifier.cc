// An element of a tuple is what was put there; a tuple of all elements of a value is the value.
#include "compiler/pass/pass.h"

namespace kiln {
namespace {

// The element is to be divided in another way than what was put there.
bool LosesSharding(const Instruction* element) {
  const Instruction* put = element->operand(0)->operand(*element->attrs().tuple_index);
  return element->attrs().sharding && element->attrs().sharding != put->attrs().sharding;
}

}  // namespace

absl::StatusOr<bool> TupleSimplifier(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (i->Is(Opcode::GetTupleElement) && i->operand(0)->Is(Opcode::Tuple)) {
        if (LosesSharding(i) || !ctx.Take()) continue;
        i->ReplaceAllUsesWith(i->operand(0)->operand(*i->attrs().tuple_index));
        if (!i->IsRoot()) c->Remove(i);
        changed = true;
      } else if (i->Is(Opcode::Tuple) && i->operand_count() > 0 && i->operand(0)->Is(Opcode::GetTupleElement)) {
        Instruction* whole = i->operand(0)->operand(0);
        bool same = whole->shape().tuple().size() == i->operands().size();
        for (int64_t k = 0; same && k < i->operand_count(); ++k)
          same = i->operand(k)->Is(Opcode::GetTupleElement) && i->operand(k)->operand(0) == whole &&
                 *i->operand(k)->attrs().tuple_index == k;
        if (!same || !ctx.Take()) continue;
        i->ReplaceAllUsesWith(whole);
        c->Remove(i);
        changed = true;
      }
    }
  }
  return changed;
}

}  // namespace kiln
