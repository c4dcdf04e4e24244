// Long reductions become two, so that no kernel has to add atomically: the last reduced dimension of n elements is seen
// as k1 x k2 with k1 at most sqrt(n) (padded with the initial value where it must be), and k2 is reduced first, which
// leaves the fewer partial results.
//
// Rows (the reduced dimension is minor) of up to 16384 elements and columns of up to 4096 are one kernel's work and
// stay.
#include <algorithm>
#include <cmath>

#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/gpu/bitcasts.h"

namespace kiln {
namespace {

constexpr int64_t kLongestRow = 1024 * 16, kLongestColumn = 32 * 128;

// The reduced dimension that one kernel cannot take, or -1.
int64_t TooLong(const Instruction* i) {
  const Shape& in = i->operand(0)->shape();
  const Ints& dims = *i->attrs().dimensions;
  if (dims.empty()) return -1;
  const int64_t last = *std::max_element(dims.begin(), dims.end());
  const bool row = last == in.rank() - 1;
  return in.dim(last) > (row ? kLongestRow : kLongestColumn) ? last : -1;
}

// The outer extent: of those in (sqrt(n) / 2, sqrt(n)] one that needs least padding, a power of two among equals.
int64_t OuterExtent(int64_t n) {
  const auto root = static_cast<int64_t>(std::floor(std::sqrt(static_cast<double>(n))));
  const auto padding = [&](int64_t k) { return (n + k - 1) / k * k - n; };
  const auto power = [](int64_t k) { return (k & (k - 1)) == 0; };
  int64_t best = root;
  for (int64_t k = root; k > root / 2; --k)
    if (padding(k) < padding(best) || (padding(k) == padding(best) && power(k) && !power(best))) best = k;
  return best;
}

}  // namespace

absl::StatusOr<bool> GpuTreeReductionRewriter(Module& m, PassContext& ctx) {
  const auto wanted = [](const Instruction* i) {
    if (!i->Is(Opcode::Reduce) || i->operand(0)->shape().HasDynamic()) return false;
    for (int64_t k = 0; k < i->operand_count() / 2; ++k)
      if (!i->operand(k)->shape().HasDefaultLayout()) return false;
    return TooLong(i) >= 0;
  };
  return ExpandEach(m, ctx, wanted, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    Computation* c = i->parent();
    const int64_t d = TooLong(i), n = i->operand(0)->shape().dim(d), arrays = i->operand_count() / 2;
    const int64_t outer = OuterExtent(n), inner = (n + outer - 1) / outer;
    std::vector<Instruction*> operands;
    std::vector<Shape> between;
    const bool laid_out = i->operand(0)->shape().layout().has_value();
    for (int64_t k = 0; k < arrays; ++k) {
      Instruction* x = i->operand(k);
      Ints dims = x->shape().dims();
      if (outer * inner != n) {
        dims[static_cast<size_t>(d)] = outer * inner;
        Shape padded = Shape::Array(x->shape().type(), dims);
        if (laid_out) padded.SetDefaultLayouts();
        attr::Padding amounts(dims.size());
        amounts[static_cast<size_t>(d)].high = outer * inner - n;
        x = c->Add(Opcode::Pad, padded, {x, i->operand(arrays + k)});
        x->mutable_attrs().padding = amounts;
      }
      dims[static_cast<size_t>(d)] = outer;
      Ints split = dims;
      split.insert(split.begin() + d + 1, inner);
      operands.push_back(BitcastTo(x, LaidOut(x->shape().type(), split)));
      between.push_back(LaidOut(x->shape().type(), dims));
    }
    // The inner half; every other reduced dimension is left to the second step.
    Instruction* partial = ReduceLike(i, operands, {d + 1}, between);
    std::vector<Instruction*> halves;
    for (int64_t k = 0; k < arrays; ++k) {
      if (!partial->shape().IsTuple()) {
        halves.push_back(partial);
        continue;
      }
      Instruction* e = PartOf(partial, k).get();
      halves.push_back(e);
    }
    return ReduceLike(i, halves, *i->attrs().dimensions, ResultShapes(i));
  });
}

}  // namespace kiln
