// A product with few results and a long sum: the sum is cut into pieces, a batch of products whose results are added.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

constexpr int64_t kFewResults = 128 * 128, kLongSum = 4096, kMostPieces = 32, kShortestPiece = 1024;

// Into how many pieces the sum divides evenly; 1: leave it.
int64_t Pieces(const Instruction* i) {
  const int64_t k = i->operand(0)->shape().dim((*i->attrs().lhs_contracting_dims)[0]);
  for (int64_t p = kMostPieces; p > 1; p /= 2)
    if (k % p == 0 && k / p >= kShortestPiece) return p;
  return 1;
}

}  // namespace

absl::StatusOr<bool> SplitkRewriter(Module& m, PassContext& ctx) {
  const auto wanted = [](const Instruction* i) {
    const Attributes& a = i->attrs();
    if (!i->Is(Opcode::Dot) || a.sparsity || a.algorithm || i->shape().HasDynamic()) return false;
    if ((a.lhs_batch_dims && !a.lhs_batch_dims->empty()) || !a.lhs_contracting_dims ||
        a.lhs_contracting_dims->size() != 1)
      return false;
    if (i->operand(0)->shape().rank() != 2 || i->operand(1)->shape().rank() != 2) return false;
    const int64_t k = i->operand(0)->shape().dim((*a.lhs_contracting_dims)[0]);
    return i->shape().ElementCount() <= kFewResults && k >= kLongSum && Pieces(i) > 1 &&
           (IsFloat(i->shape().type()) || IsIntegral(i->shape().type()));
  };
  return ExpandEach(m, ctx, wanted, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    const int64_t pieces = Pieces(i);
    const PrimitiveType t = i->shape().type();
    const PrimitiveType wide = IsFloat(t) && InfoOf(t).bits < 32 ? PrimitiveType::F32 : t;
    // [.., k, ..] as [.., pieces, k / pieces, ..], the pieces moved to the front.
    const auto cut = [&](Expr x, int64_t d) {
      Ints dims = x.shape().dims();
      dims[static_cast<size_t>(d)] /= pieces;
      dims.insert(dims.begin() + d, pieces);
      Expr split = ReshapeTo(x, dims);
      return d == 0 ? split : TransposeBy(split, {1, 0, 2});
    };
    const int64_t lk = (*i->attrs().lhs_contracting_dims)[0], rk = (*i->attrs().rhs_contracting_dims)[0];
    Ints dims = i->shape().dims();
    dims.insert(dims.begin(), pieces);
    Instruction* dot = i->parent()->AddClone(i, Shape::Array(wide, dims),
                                             {cut(i->operand(0), lk).get(), cut(i->operand(1), rk).get()});
    dot->mutable_attrs().lhs_batch_dims = dot->mutable_attrs().rhs_batch_dims = Ints{0};
    dot->mutable_attrs().lhs_contracting_dims = Ints{lk == 0 ? 1 : 2};
    dot->mutable_attrs().rhs_contracting_dims = Ints{rk == 0 ? 1 : 2};
    Expr zero = i->parent()->AddConstant(Literal::Of(wide, 0));
    return ConvertTo(t, ReduceOf(dot, zero, {0}, ScalarFunction(i->parent()->module(), Opcode::Add, wide))).get();
  });
}

}  // namespace kiln
