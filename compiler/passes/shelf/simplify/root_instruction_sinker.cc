// In a scheduled module the root of every computation comes last: if it does not, a new root stands for it there.
#include "compiler/pass/pass.h"

namespace kiln {

absl::StatusOr<bool> RootInstructionSinker(Module& m, PassContext& ctx) {
  if (!m.is_scheduled) return false;
  bool changed = false;
  for (const auto& c : m.computations()) {
    Instruction* root = c->root();
    if (c->instructions().back().get() == root || !ctx.Take()) continue;
    Instruction* last;
    if (root->shape().IsTuple()) {
      std::vector<Instruction*> parts;
      for (size_t k = 0; k < root->shape().tuple().size(); ++k) {
        parts.push_back(c->Add(Opcode::GetTupleElement, root->shape().tuple()[k], {root}));
        parts.back()->mutable_attrs().tuple_index = static_cast<int64_t>(k);
      }
      last = c->Add(Opcode::Tuple, root->shape(), parts);
    } else {
      last = c->Add(Opcode::Bitcast, root->shape(), {root});
    }
    c->set_root(last);
    changed = true;
  }
  return changed;
}

}  // namespace kiln
