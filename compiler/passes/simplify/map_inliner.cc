// map becomes array operations: its scalar body, on whole arrays.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/scalar_body.h"

namespace kiln {

absl::StatusOr<bool> MapInliner(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Map)) continue;
      const Computation* f = *i->attrs().to_apply;
      if (!IsScalarBody(f) || f->root()->Is(Opcode::Tuple))
        return ErrorAt(i, "its computation is not made of scalar elementwise operations",
                       absl::StatusCode::kUnimplemented);
      if (!ctx.Take()) continue;
      const std::vector<Expr> arguments(i->operands().begin(), i->operands().end());
      i->ReplaceAllUsesWith(ApplyScalarBody(f, arguments)[0].get());
      c->Remove(i);
      changed = true;
    }
  }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
