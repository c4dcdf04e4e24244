// ragged-dot as one dot over masked operands: the left side is spread over the groups, zero outside its own.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

bool Has(const Ints& v, int64_t d) { return std::find(v.begin(), v.end(), d) != v.end(); }

// pred[batch..., groups, extent]: position n belongs to group g, for sizes [batch..., groups].
Expr Membership(Expr sizes, int64_t extent) {
  Computation* c = sizes.computation();
  const Ints& shape = sizes.shape().dims();
  const int64_t groups = shape.back(), last = sizes.shape().rank();
  const PrimitiveType t = sizes.type();
  Ints kept, square = shape, both = shape, listed;
  for (int64_t d = 0; d < last; ++d) kept.push_back(d);
  square.push_back(groups);
  both.push_back(extent);
  listed = kept;
  listed.back() = last;
  // End of each group: the sum of sizes up to it, by a triangle of ones.
  Expr row = IotaOf(c, PrimitiveType::S32, square, last - 1), col = IotaOf(c, PrimitiveType::S32, square, last);
  Expr upto = BroadcastTo(sizes, square, listed);
  Expr zero = c->AddConstant(Literal::Of(t, 0));
  Expr taken = SelectExpr(CompareExpr(Direction::LE, col, row), upto, BroadcastTo(zero, square));
  Expr end = ReduceOf(taken, zero, {last}, ScalarFunction(c->module(), Opcode::Add, t));
  Expr begin = end - sizes;
  Expr at = ConvertTo(t, IotaOf(c, PrimitiveType::S32, both, last));
  return CompareExpr(Direction::GE, at, BroadcastTo(begin, both, kept)) &
         CompareExpr(Direction::LT, at, BroadcastTo(end, both, kept));
}

// Whether there is a list of sizes for all, or one for each element of the batch.
bool SizesFit(const Shape& sizes, const Shape& lhs, const Ints& batch) {
  if (sizes.rank() == 1) return true;
  Ints extents;
  for (int64_t d : batch) extents.push_back(lhs.dim(d));
  extents.push_back(sizes.dims().back());
  return sizes.dims() == extents;
}

// Membership in the extents of the left side behind a first dimension for the groups.
Expr Mask(Expr sizes, const Ints& spread, const Ints& batch, int64_t ragged) {
  Ints at;  // where each dimension of the membership stands
  if (sizes.shape().rank() > 1)
    for (int64_t d : batch) at.push_back(d + 1);
  at.push_back(0);
  at.push_back(ragged + 1);
  Ints order;
  for (size_t k = 0; k < at.size(); ++k) order.push_back(static_cast<int64_t>(k));
  const auto place = [&](int64_t k) { return at[static_cast<size_t>(k)]; };
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return place(a) < place(b); });
  std::sort(at.begin(), at.end());
  return BroadcastTo(TransposeBy(Membership(sizes, spread[static_cast<size_t>(ragged + 1)]), order), spread, at);
}

absl::StatusOr<Instruction*> Rewrite(Instruction* i) {
  Computation* c = i->parent();
  Attributes a = i->attrs();
  Expr l = i->operand(0), r = i->operand(1), sizes = i->operand(2);
  const int64_t ragged = a.lhs_ragged_dims->at(0);
  const Ints lb = a.lhs_batch_dims.value_or(Ints()), rb = a.rhs_batch_dims.value_or(Ints());
  const Ints lc = a.lhs_contracting_dims.value_or(Ints()), rc = a.rhs_contracting_dims.value_or(Ints());
  auto dot = [&](Expr x, Expr y, const Ints& xb, const Ints& yb, const Ints& xc, const Ints& yc, const Shape& s) {
    Instruction* d = c->Add(Opcode::Dot, s, {x.get(), y.get()});
    if (!xb.empty()) {
      d->mutable_attrs().lhs_batch_dims = xb;
      d->mutable_attrs().rhs_batch_dims = yb;
    }
    d->mutable_attrs().lhs_contracting_dims = xc;
    d->mutable_attrs().rhs_contracting_dims = yc;
    d->mutable_attrs().operand_precision = a.operand_precision;
    return d;
  };
  const Shape result = Shape::Array(i->shape().type(), i->shape().dims());
  if (Has(lb, ragged)) return dot(l, r, lb, rb, lc, rc, result);
  if (!SizesFit(sizes.shape(), l.shape(), lb))
    return ErrorAt(i, "group sizes that differ by more than the batch are not supported",
                   absl::StatusCode::kUnimplemented);
  // The left side with a new first dimension for the groups.
  Ints spread = l.shape().dims(), old;
  spread.insert(spread.begin(), sizes.shape().dims().back());
  for (int64_t d = 0; d < l.shape().rank(); ++d) old.push_back(d + 1);
  Expr mask = Mask(sizes, spread, lb, ragged);
  Expr wide = BroadcastTo(l, spread, old);
  wide = SelectExpr(mask, wide, wide.Like(0));
  auto shifted = [](Ints v) {
    for (int64_t& d : v) ++d;
    return v;
  };
  if (!Has(lc, ragged)) {
    // Contract the groups too.
    Ints xc = shifted(lc), yc = rc;
    xc.push_back(0);
    yc.push_back(a.rhs_group_dims->at(0));
    return dot(wide, r, shifted(lb), rb, xc, yc, result);
  }
  // Groups are a free dimension of the left side; the result has it first.
  const Ints xb = shifted(lb);
  Ints dims;
  for (int64_t d : xb) dims.push_back(wide.shape().dim(d));
  dims.push_back(spread[0]);
  const size_t kept = dims.size() - 1;
  for (size_t k = 1 + kept; k < result.dims().size(); ++k) dims.push_back(result.dim(static_cast<int64_t>(k)));
  Expr product = dot(wide, r, xb, rb, shifted(lc), rc, Shape::Array(result.type(), dims));
  Ints order = {static_cast<int64_t>(kept)};
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d)
    if (d != static_cast<int64_t>(kept)) order.push_back(d);
  return TransposeBy(product, order).get();
}

}  // namespace

absl::StatusOr<bool> RaggedDotRewriter(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](Instruction* i) { return i->Is(Opcode::RaggedDot); }, Rewrite);
}

}  // namespace kiln
