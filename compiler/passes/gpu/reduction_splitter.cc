// A reduction over dimensions that do not lie together becomes two: over the largest first, then over the rest.
//
// One kernel suffices where the dimensions that stay lie together and give enough results to fill a GPU with blocks:
// the threads of a result walk what is reduced around them.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/gpu/bitcasts.h"

namespace kiln {
namespace {

// Whether `dims`, in ascending order, have no gap.
bool Together(const Ints& dims) {
  return dims.empty() || dims.back() - dims.front() + 1 == static_cast<int64_t>(dims.size());
}

}  // namespace

absl::StatusOr<bool> ReductionSplitter(Module& m, PassContext& ctx) {
  constexpr int64_t kTooSmall = 8;  // a first step over so few elements gains nothing
  constexpr int64_t kFills = 1024;  // blocks of one result each: several on every processor
  const auto wanted = [](const Instruction* i) {
    if (!i->Is(Opcode::Reduce) || i->operand_count() != 2 || i->operand(0)->shape().HasDynamic()) return false;
    Ints dims = *i->attrs().dimensions;
    std::sort(dims.begin(), dims.end());
    int64_t largest = 0;
    for (const int64_t d : dims) largest = std::max(largest, i->operand(0)->shape().dim(d));
    if (largest <= kTooSmall || Together(dims)) return false;
    Ints kept;
    for (int64_t d = 0; d < i->operand(0)->shape().rank(); ++d)
      if (!std::binary_search(dims.begin(), dims.end(), d)) kept.push_back(d);
    return !Together(kept) || i->shape().ElementCount() < kFills;
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
