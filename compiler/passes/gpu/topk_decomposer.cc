// topk, the operation or a call of that name, as a stable sort with the positions beside the values, of which the first
// k stay. The wide variant takes those of more elements than a kernel selects. topk-splitter makes of one very long row
// as many rows as one has elements, about, and sorts what it selects of each.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/target/gpu_target.h"

namespace kiln {
namespace {

// The comparator of a call named TopK, over two values and two places; null: `i` is none, or has another one.
Computation* ComparatorOfCall(const Instruction* i) {
  const Attributes& a = i->attrs();
  if (!i->Is(Opcode::CustomCall) || !a.custom_call_target || !(*a.custom_call_target == "TopK")) return nullptr;
  const Shape& s = i->shape();
  if (i->operand_count() != 1 || !s.IsTuple() || s.tuple().size() != 2 || s.tuple()[0].rank() == 0) return nullptr;
  Computation* f = a.to_apply                                                    ? *a.to_apply
                   : a.called_computations && a.called_computations->size() == 1 ? (*a.called_computations)[0]
                                                                                 : nullptr;
  return f && f->parameters().size() == 4 && f->parameter(2)->shape().type() == s.tuple()[1].type() ? f : nullptr;
}

// Orders values of type `t`, the ones that come first before.
Computation* Comparator(Module* m, PrimitiveType t, bool largest) {
  Computation* order = m->AddComputation(largest ? "greater" : "less");
  Instruction *a = order->AddParameter(0, Shape::Scalar(t), "a"), *b = order->AddParameter(1, Shape::Scalar(t), "b");
  order->AddParameter(2, Shape::Scalar(PrimitiveType::S32), "i");
  order->AddParameter(3, Shape::Scalar(PrimitiveType::S32), "j");
  Instruction* compare = CompareExpr(largest ? Direction::GT : Direction::LT, a, b).get();
  if (IsFloat(t)) compare->mutable_attrs().compare_type = CompareType::TOTALORDER;
  order->set_root(compare);
  return order;
}

// The first of `values` with their `places`, as `i` has them.
Instruction* FirstSorted(Instruction* i, Expr values, Expr places) {
  Computation* c = i->parent();
  Computation* order = ComparatorOfCall(i);
  if (!order) order = Comparator(c->module(), values.type(), i->attrs().largest.value_or(true));
  const Shape sorted = Shape::Tuple({Shape::Array(values.type(), values.shape().dims()), places.shape()});
  Instruction* sort = c->Add(Opcode::Sort, sorted, {values.get(), places.get()});
  sort->mutable_attrs().dimensions = Ints{values.shape().rank() - 1};
  sort->mutable_attrs().is_stable = true;
  sort->mutable_attrs().to_apply = order;
  const Ints& limit = i->shape().tuple()[0].dims();
  std::vector<Expr> parts;
  for (int64_t k = 0; k < 2; ++k) parts.push_back(SliceOf(PartOf(sort, k), Ints(limit.size(), 0), limit));
  return TupleOf(parts);
}

absl::StatusOr<Instruction*> Expand(Instruction* i) {
  const Shape& s = i->operand(0)->shape();
  return FirstSorted(i, i->operand(0), IotaOf(i->parent(), i->shape().tuple()[1].type(), s.dims(), s.rank() - 1));
}

// Into how many rows one row of `n` is cut: a power of two about its root.
int64_t RowsOf(int64_t n) {
  int64_t rows = 1;
  while (4 * rows * rows <= n && n % (2 * rows) == 0) rows *= 2;
  return rows;
}

bool IsLongRow(const Instruction* i) {
  constexpr int64_t kShort = 1 << 20, kMultiple = 1024;
  if (!i->Is(Opcode::TopK) && !ComparatorOfCall(i)) return false;
  const Shape &x = i->operand(0)->shape(), &first = i->shape().tuple()[0];
  if (x.HasDynamic() || x.rank() == 0) return false;
  const int64_t n = x.dims().back(), k = first.dims().back();
  return x.ElementCount() == n && n > kShort && n % kMultiple == 0 && k * k <= n && k <= n / RowsOf(n);
}

Instruction* Split(Instruction* i) {
  const Shape &x = i->operand(0)->shape(), &first = i->shape().tuple()[0];
  const PrimitiveType place = i->shape().tuple()[1].type();
  const int64_t n = x.dims().back(), k = first.dims().back(), rows = RowsOf(n);
  Instruction* each =
      i->parent()->AddClone(i, Shape::Tuple({Shape::Array(x.type(), {rows, k}), Shape::Array(place, {rows, k})}),
                            {ReshapeTo(i->operand(0), {rows, n / rows}).get()});
  const Expr begins = IotaOf(i->parent(), place, {rows, k}, 0) * static_cast<double>(n / rows);
  Ints dims = x.dims();
  dims.back() = rows * k;
  return FirstSorted(i, ReshapeTo(PartOf(each, 0), dims), ReshapeTo(PartOf(each, 1) + begins, dims));
}

absl::StatusOr<bool> Decompose(Module& m, PassContext& ctx, int64_t fewest) {
  const auto wanted = [&](const Instruction* i) {
    if (i->shape().HasDynamic()) return false;
    if (i->Is(Opcode::TopK)) return *i->attrs().k >= fewest;
    return ComparatorOfCall(i) && i->shape().tuple()[0].dims().back() >= fewest;
  };
  return ExpandEach(m, ctx, wanted, Expand);
}

}  // namespace

absl::StatusOr<bool> TopkSplitter(Module& m, PassContext& ctx) {
  return ExpandEach(m, ctx, IsLongRow, [](Instruction* i) -> absl::StatusOr<Instruction*> { return Split(i); });
}

absl::StatusOr<bool> TopkDecomposer(Module& m, PassContext& ctx) { return Decompose(m, ctx, 0); }

absl::StatusOr<bool> WideTopkDecomposer(Module& m, PassContext& ctx) { return Decompose(m, ctx, kMostTopK + 1); }

}  // namespace kiln
