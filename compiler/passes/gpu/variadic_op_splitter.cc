// A concatenation of more operands than a kernel takes becomes a tree of them.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {

absl::StatusOr<bool> VariadicOpSplitter(Module& m, PassContext& ctx) {
  constexpr size_t kMost = 128;
  return ExpandEach(
      m, ctx, [](const Instruction* i) { return i->Is(Opcode::Concatenate) && i->operands().size() > kMost; },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        const int64_t d = (*i->attrs().dimensions)[0];
        std::vector<Instruction*> parts = i->operands();
        while (parts.size() > kMost) {
          std::vector<Instruction*> next;
          for (size_t k = 0; k < parts.size(); k += kMost) {
            const std::vector<Instruction*> group(
                parts.begin() + static_cast<ptrdiff_t>(k),
                parts.begin() + static_cast<ptrdiff_t>(std::min(k + kMost, parts.size())));
            if (group.size() == 1) {
              next.push_back(group[0]);
              continue;
            }
            Shape s = i->shape();
            s.mutable_dims()[static_cast<size_t>(d)] = 0;
            for (const Instruction* p : group) s.mutable_dims()[static_cast<size_t>(d)] += p->shape().dim(d);
            next.push_back(i->parent()->AddClone(i, s, group));
          }
          parts = next;
        }
        return i->parent()->AddClone(i, i->shape(), parts);
      });
}

}  // namespace kiln
