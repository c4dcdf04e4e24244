// map becomes array operations: its scalar body, on whole arrays.
#include "compiler/pipeline/registry.h"

namespace kiln {

absl::StatusOr<bool> MapInliner(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Map)) continue;
      const Computation* f = *i->attrs().to_apply;
      bool plain = true;
      for (const auto& x : f->instructions())
        plain = plain && x->shape().IsScalar() &&
                (x->IsElementwise() || x->Is(Opcode::Parameter) || x->Is(Opcode::Constant));
      if (!plain)
        return ErrorAt(i, "its computation is not made of scalar elementwise operations",
                       absl::StatusCode::kUnimplemented);
      if (!ctx.Take()) continue;
      absl::flat_hash_map<const Instruction*, Instruction*> map;
      for (Instruction* x : f->PostOrder()) {
        const Shape s = Shape::Array(x->shape().type(), i->shape().dims());
        if (x->Is(Opcode::Parameter)) {
          map[x] = i->operand(*x->attrs().parameter_number);
        } else if (x->Is(Opcode::Constant)) {
          Instruction* k = c->AddConstant(x->literal());
          map[x] = c->Add(Opcode::Broadcast, s, {k});
          map[x]->attrs().dimensions = Ints();
        } else {
          std::vector<Instruction*> ops;
          for (Instruction* o : x->operands()) ops.push_back(map.at(o));
          map[x] = c->AddClone(x, s, ops);
        }
      }
      i->ReplaceAllUsesWith(map.at(f->root()));
      c->Remove(i);
      changed = true;
    }
  }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
