// Products that contract a few elements are sums of outer products: a loop stores their large results past the caches,
// fuses with what is made of them, and does with each result what a register tile would do, once.
#include <algorithm>
#include <optional>

#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/simplify/dot_form.h"

namespace kiln {
namespace {

// The extent that is contracted pays where the result leaves the caches, or where it is very short.
bool IsThin(int64_t k, int64_t results) {
  constexpr int64_t kShort = 4, kLeastResults = 1 << 16, kLong = 6, kFarResults = 1 << 19;
  return (k <= kShort && results >= kLeastResults) || (k <= kLong && results >= kFarResults);
}

bool IsWanted(const Instruction* i) {
  if (!IsPlainDot(i) || !MultipliesAsAsked(i) || IsComplex(i->shape().type()) ||
      i->shape().type() == PrimitiveType::Pred)
    return false;
  const DotSide l = SideOf(i, 0), r = SideOf(i, 1);
  constexpr int64_t kShortestRow = 64;
  if (l.batch.size() != 1 || l.contracting.size() != 1 || l.free.size() != 1 || r.free.size() != 1) return false;
  const int64_t rows = i->shape().dim(1), columns = i->shape().dim(2);
  return rows > 1 && columns >= kShortestRow &&
         IsThin(i->operand(0)->shape().dim(l.contracting[0]), i->shape().ElementCount());
}

// Element `k` of what a side contracts, [batch, free], spread over the result, of which `place` is its free dimension.
Expr Spread(Expr x, const DotSide& s, int64_t k, int64_t place, const Ints& result) {
  Ints start(3, 0), limit = x.shape().dims();
  const auto d = static_cast<size_t>(s.contracting[0]);
  start[d] = k;
  limit[d] = k + 1;
  return BroadcastTo(ReshapeTo(SliceOf(x, start, limit), {result[0], result[static_cast<size_t>(place)]}), result,
                     {0, place});
}

absl::StatusOr<Instruction*> Expanded(Instruction* i) {
  const PrimitiveType type = ProductType(i, true);
  const Ints& dims = i->shape().dims();
  DotSide l = SideOf(i, 0), r = SideOf(i, 1);
  const auto operand = [&](int64_t k) { return ConvertTo(type, i->operand(k)); };
  const Expr a = operand(0);
  Expr b = operand(1);
  // Its rows are read along the result's.
  if (r.contracting[0] == 2) {
    b = TransposeBy(b, {0, 2, 1});
    std::swap(r.contracting[0], r.free[0]);
  }
  std::optional<Expr> sum;
  for (int64_t k = 0; k < a.shape().dim(l.contracting[0]); ++k) {
    const Expr product = Spread(a, l, k, 1, dims) * Spread(b, r, k, 2, dims);
    sum = sum ? *sum + product : product;
  }
  return ConvertTo(i->shape().type(), *sum).get();
}

}  // namespace

absl::StatusOr<bool> CpuThinDotExpander(Module& m, PassContext& ctx) { return ExpandEach(m, ctx, IsWanted, Expanded); }

}  // namespace kiln
