// A reduction over dimensions that do not lie together becomes two: over the largest first, then over the rest.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/gpu/bitcasts.h"

namespace kiln {

absl::StatusOr<bool> ReductionSplitter(Module& m, PassContext& ctx) {
  constexpr int64_t kTooSmall = 8;  // a first step over so few elements gains nothing
  const auto wanted = [](const Instruction* i) {
    if (!i->Is(Opcode::Reduce) || i->operand_count() != 2 || i->operand(0)->shape().HasDynamic()) return false;
    Ints dims = *i->attrs().dimensions;
    std::sort(dims.begin(), dims.end());
    int64_t largest = 0;
    bool together = true;
    for (size_t k = 0; k < dims.size(); ++k) {
      largest = std::max(largest, i->operand(0)->shape().dim(dims[k]));
      if (k > 0) together = together && dims[k] == dims[k - 1] + 1;
    }
    return !together && largest > kTooSmall;
  };
  return ExpandEach(m, ctx, wanted, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    const Shape& in = i->operand(0)->shape();
    const Ints& dims = *i->attrs().dimensions;
    const int64_t first =
        *std::max_element(dims.begin(), dims.end(), [&](int64_t a, int64_t b) { return in.dim(a) < in.dim(b); });
    Ints extents = in.dims(), rest;
    extents.erase(extents.begin() + first);
    for (int64_t d : dims)
      if (d != first) rest.push_back(d > first ? d - 1 : d);
    Shape between = Shape::Array(i->shape().type(), extents);
    if (in.layout()) between.SetDefaultLayouts();
    Instruction* inner = ReduceLike(i, {i->operand(0)}, {first}, {between});
    return ReduceLike(i, {inner}, rest, {i->shape()});
  });
}

}  // namespace kiln
