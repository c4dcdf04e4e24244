// One vector of start indices becomes as many scalars.
#include "compiler/pass/pass.h"

namespace kiln {

absl::StatusOr<bool> DynamicIndexSplitter(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      const bool ds = i->Is(Opcode::DynamicSlice), dus = i->Is(Opcode::DynamicUpdateSlice);
      const int64_t first = ds ? 1 : 2;
      if ((!ds && !dus) || i->operand_count() != first + 1 || i->operand(first)->shape().rank() != 1 || !ctx.Take())
        continue;
      Instruction* v = i->operand(first);
      const PrimitiveType t = v->shape().type();
      std::vector<Instruction*> ops(i->operands().begin(), i->operands().begin() + first);
      for (int64_t k = 0; k < v->shape().dim(0); ++k) {
        Instruction* s = c->Add(Opcode::Slice, Shape::Array(t, {1}), {v});
        s->mutable_attrs().slice = attr::Slices{{k, k + 1, 1}};
        ops.push_back(c->Add(Opcode::Reshape, Shape::Scalar(t), {s}));
      }
      Instruction* n = c->AddClone(i, i->shape(), ops);
      i->ReplaceAllUsesWith(n);
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
