// Neighbouring dimensions that a reduction treats alike become one.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/gpu/bitcasts.h"

namespace kiln {
namespace {

struct Groups {
  Ints extents, reduced;
};

Groups GroupsOf(const Instruction* i) {
  const Shape& in = i->operand(0)->shape();
  const Ints& dims = *i->attrs().dimensions;
  Groups g;
  bool before = false;
  for (int64_t d = 0; d < in.rank(); ++d) {
    const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (d > 0 && reduced == before) {
      g.extents.back() *= in.dim(d);
    } else {
      if (reduced) g.reduced.push_back(static_cast<int64_t>(g.extents.size()));
      g.extents.push_back(in.dim(d));
    }
    before = reduced;
  }
  return g;
}

}  // namespace

absl::StatusOr<bool> ReductionDimensionGrouper(Module& m, PassContext& ctx) {
  const auto wanted = [](const Instruction* i) {
    if (!i->Is(Opcode::Reduce) || i->operand(0)->shape().HasDynamic()) return false;
    for (int64_t k = 0; k < i->operand_count() / 2; ++k)
      if (!i->operand(k)->shape().HasDefaultLayout()) return false;
    for (const Shape& s : ResultShapes(i))
      if (!s.HasDefaultLayout()) return false;
    return static_cast<int64_t>(GroupsOf(i).extents.size()) < i->operand(0)->shape().rank();
  };
  return ExpandEach(m, ctx, wanted, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    const Groups g = GroupsOf(i);
    Ints kept;
    for (size_t k = 0; k < g.extents.size(); ++k)
      if (std::find(g.reduced.begin(), g.reduced.end(), static_cast<int64_t>(k)) == g.reduced.end())
        kept.push_back(g.extents[k]);
    std::vector<Instruction*> operands;
    for (int64_t k = 0; k < i->operand_count() / 2; ++k)
      operands.push_back(BitcastTo(i->operand(k), LaidOut(i->operand(k)->shape().type(), g.extents)));
    std::vector<Shape> results;
    for (const Shape& s : ResultShapes(i)) results.push_back(LaidOut(s.type(), kept));
    return ResultsLike(i, ReduceLike(i, operands, g.reduced, results));
  });
}

}  // namespace kiln
