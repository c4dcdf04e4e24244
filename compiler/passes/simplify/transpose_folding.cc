// Folds a transpose into the dot that reads it: the dot's dimension numbers change instead.
//
// Legal where the free dimensions of the operand keep their order, because they decide the order of the result.
#include <algorithm>

#include "compiler/pass/pass.h"

namespace kiln {

absl::StatusOr<bool> TransposeFolding(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Dot) || i->attrs().sparsity) continue;
      for (int side = 0; side < 2; ++side) {
        Instruction* t = i->operand(side);
        if (!t->Is(Opcode::Transpose)) continue;
        const Ints& p = *t->attrs().dimensions;
        Attributes& a = i->mutable_attrs();
        std::optional<Ints>& batch = side ? a.rhs_batch_dims : a.lhs_batch_dims;
        std::optional<Ints>& contract = side ? a.rhs_contracting_dims : a.lhs_contracting_dims;
        auto in = [](const std::optional<Ints>& v, int64_t d) {
          return v && std::find(v->begin(), v->end(), d) != v->end();
        };
        Ints free;
        for (int64_t d = 0; d < t->shape().rank(); ++d)
          if (!in(batch, d) && !in(contract, d)) free.push_back(p[d]);
        if (!std::is_sorted(free.begin(), free.end()) || !ctx.Take()) continue;
        for (auto* v : {&batch, &contract})
          if (*v)
            for (int64_t& d : **v) d = p[d];
        i->ReplaceOperand(side, t->operand(0));
        changed = true;
      }
    }
  }
  return changed;
}

}  // namespace kiln
