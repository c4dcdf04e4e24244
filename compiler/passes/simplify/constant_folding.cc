// Evaluates instructions whose operands are all constants.
//
// Limits: results of at most 4,096 elements, and no operation whose work is out of proportion; a broadcast, iota or pad
// that would grow memory stays.
#include "compiler/eval/evaluator.h"
#include "compiler/pass/pass.h"

namespace kiln {

absl::StatusOr<bool> ConstantFolding(Module& m, PassContext& ctx) {
  constexpr int64_t kMaxElements = 4096;
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (!i->shape().IsArray() || i->operands().empty() || i->HasSideEffect() || !i->called().empty() ||
          i->shape().HasDynamic())
        continue;
      if (!i->IsElementwise() && !i->Is(Opcode::Reshape) && !i->Is(Opcode::Slice) && !i->Is(Opcode::Transpose) &&
          !i->Is(Opcode::Concatenate) && !i->Is(Opcode::Reverse) && !i->Is(Opcode::BitcastConvert) &&
          !i->Is(Opcode::DynamicSlice) && !i->Is(Opcode::Gather))
        continue;
      bool constant = i->shape().ElementCount() <= kMaxElements;
      for (const Instruction* o : i->operands()) constant = constant && o->Is(Opcode::Constant);
      if (!constant || !ctx.Take()) continue;
      std::vector<const Literal*> x;
      for (const Instruction* o : i->operands()) x.push_back(&o->literal());
      auto r = EvaluateInstruction(*i, x);
      if (!r.ok()) continue;  // what the evaluator lacks stays for code generation
      Instruction* k = c->AddConstant(std::move(*r));
      k->mutable_shape() = i->shape();
      k->set_loc(i->loc());
      i->ReplaceAllUsesWith(k);
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
