// all-to-all of a tuple, one operand for each member, as that of one array with the operands stacked in a first
// dimension.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {

absl::StatusOr<bool> AllToAllDecomposer(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](Instruction* i) { return i->Is(Opcode::AllToAll) && !i->attrs().dimensions && i->shape().IsTuple(); },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        const Ints dims = i->operand(0)->shape().dims();
        const int64_t n = i->operand_count();
        Ints one = dims, all = dims;
        one.insert(one.begin(), 1);
        all.insert(all.begin(), n);
        std::vector<Expr> rows;
        for (Instruction* o : i->operands()) rows.push_back(ReshapeTo(o, one));
        Instruction* whole =
            i->parent()->AddClone(i, Shape::Array(i->operand(0)->shape().type(), all), {ConcatOf(rows, 0).get()});
        whole->mutable_attrs().dimensions = Ints{0};
        std::vector<Instruction*> parts;
        for (int64_t k = 0; k < n; ++k) {
          Ints from(all.size(), 0), to = all;
          from[0] = k;
          to[0] = k + 1;
          parts.push_back(ReshapeTo(SliceOf(whole, from, to), dims).get());
        }
        return i->parent()->Add(Opcode::Tuple, i->shape(), parts);
      });
}

}  // namespace kiln
