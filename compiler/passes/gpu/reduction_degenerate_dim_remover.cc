// Extents of 1 leave reductions: operands and results are seen without them.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/gpu/bitcasts.h"

namespace kiln {
namespace {

bool Degenerate(const Shape& s) { return std::find(s.dims().begin(), s.dims().end(), 1) != s.dims().end(); }

Shape Without(const Shape& s) {
  Ints dims, place(static_cast<size_t>(s.rank()), -1);
  for (int64_t d = 0; d < s.rank(); ++d) {
    if (s.dim(d) == 1) continue;
    place[static_cast<size_t>(d)] = static_cast<int64_t>(dims.size());
    dims.push_back(s.dim(d));
  }
  Shape out = Shape::Array(s.type(), dims);
  Layout layout;
  for (int64_t d : s.LayoutOrDefault().minor_to_major)
    if (place[static_cast<size_t>(d)] >= 0) layout.minor_to_major.push_back(place[static_cast<size_t>(d)]);
  out.set_layout(layout);
  return out;
}

}  // namespace

absl::StatusOr<bool> ReductionDegenerateDimRemover(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](const Instruction* i) {
        return i->Is(Opcode::Reduce) && !i->operand(0)->shape().HasDynamic() && Degenerate(i->operand(0)->shape());
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        const Shape& in = i->operand(0)->shape();
        const Ints& reduced = *i->attrs().dimensions;
        Ints dims;
        int64_t place = 0;
        for (int64_t d = 0; d < in.rank(); ++d) {
          if (in.dim(d) == 1) continue;
          if (std::find(reduced.begin(), reduced.end(), d) != reduced.end()) dims.push_back(place);
          ++place;
        }
        std::vector<Instruction*> operands;
        for (int64_t k = 0; k < i->operand_count() / 2; ++k)
          operands.push_back(BitcastTo(i->operand(k), Without(i->operand(k)->shape())));
        std::vector<Shape> results;
        for (const Shape& s : ResultShapes(i)) results.push_back(Without(s));
        return ResultsLike(i, ReduceLike(i, operands, dims, results));
      });
}

}  // namespace kiln
