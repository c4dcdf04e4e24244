// topk, the operation or a call of that name, as a stable sort with the positions beside the values, of which the first
// k stay. The wide variant takes those of more elements than a kernel selects.
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

absl::StatusOr<Instruction*> Expand(Instruction* i) {
  Computation* c = i->parent();
  const Shape& s = i->operand(0)->shape();
  const int64_t last = s.rank() - 1;
  Computation* order = ComparatorOfCall(i);
  if (!order) order = Comparator(c->module(), s.type(), i->attrs().largest.value_or(true));
  Expr iota = IotaOf(c, i->shape().tuple()[1].type(), s.dims(), last);
  Instruction* sort =
      c->Add(Opcode::Sort, Shape::Tuple({Shape::Array(s.type(), s.dims()), iota.shape()}), {i->operand(0), iota.get()});
  sort->mutable_attrs().dimensions = Ints{last};
  sort->mutable_attrs().is_stable = true;
  sort->mutable_attrs().to_apply = order;
  const Ints& limit = i->shape().tuple()[0].dims();
  std::vector<Expr> parts;
  for (int64_t k = 0; k < 2; ++k) parts.push_back(SliceOf(PartOf(sort, k), Ints(limit.size(), 0), limit));
  return TupleOf(parts);
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

absl::StatusOr<bool> TopkDecomposer(Module& m, PassContext& ctx) { return Decompose(m, ctx, 0); }

absl::StatusOr<bool> WideTopkDecomposer(Module& m, PassContext& ctx) { return Decompose(m, ctx, kMostTopK + 1); }

}  // namespace kiln
