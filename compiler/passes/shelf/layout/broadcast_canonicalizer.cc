// Broadcasts name the dimensions of their operand in order; one that does not broadcasts a transpose.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {

absl::StatusOr<bool> BroadcastCanonicalizer(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        return i->Is(Opcode::Broadcast) &&
               !std::is_sorted(i->attrs().dimensions->begin(), i->attrs().dimensions->end());
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        const Ints& dims = *i->attrs().dimensions;
        Ints order;
        for (int64_t d = 0; d < i->operand(0)->shape().rank(); ++d) order.push_back(d);
        std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return dims[a] < dims[b]; });
        Ints sorted = dims;
        std::sort(sorted.begin(), sorted.end());
        Expr x = TransposeBy(i->operand(0), order);
        if (i->operand(0)->shape().layout()) x.get()->mutable_shape().SetDefaultLayouts();
        Instruction* n = i->parent()->AddClone(i, i->shape(), {x.get()});
        n->mutable_attrs().dimensions = sorted;
        return n;
      });
}

}  // namespace kiln
