// Each reader of a constant gets one of its own, which can then be sharded as that reader is.
#include "compiler/pass/pass.h"

namespace kiln {

absl::StatusOr<bool> HloConstantSplitter(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations())
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Constant) || i->users().size() < 2) continue;
      const std::vector<Instruction*> users = i->users();
      for (size_t k = 1; k < users.size(); ++k) {
        if (!ctx.Take()) continue;
        i->ReplaceUseWith(users[k], c->AddClone(i, i->shape(), {}));
        changed = true;
      }
    }
  return changed;
}

}  // namespace kiln
