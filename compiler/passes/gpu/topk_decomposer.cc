// topk as a stable sort with the positions beside the values, of which the first k stay. The wide variant takes those
// of more elements than a kernel selects.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/target/gpu_target.h"

namespace kiln {
namespace {

absl::StatusOr<bool> Decompose(Module& m, PassContext& ctx, int64_t fewest) {
  return ExpandEach(
      m, ctx,
      [&](const Instruction* i) { return i->Is(Opcode::TopK) && !i->shape().HasDynamic() && *i->attrs().k >= fewest; },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        Computation* c = i->parent();
        const Shape& s = i->operand(0)->shape();
        const PrimitiveType t = s.type();
        const int64_t last = s.rank() - 1;
        const bool largest = i->attrs().largest.value_or(true);
        Computation* order = c->module()->AddComputation(largest ? "greater" : "less");
        Instruction *a = order->AddParameter(0, Shape::Scalar(t), "a"),
                    *b = order->AddParameter(1, Shape::Scalar(t), "b");
        order->AddParameter(2, Shape::Scalar(PrimitiveType::S32), "i");
        order->AddParameter(3, Shape::Scalar(PrimitiveType::S32), "j");
        Instruction* compare = CompareExpr(largest ? "GT" : "LT", a, b).get();
        if (IsFloat(t)) compare->mutable_attrs().compare_type = "TOTALORDER";
        order->set_root(compare);
        Expr iota = IotaOf(c, PrimitiveType::S32, s.dims(), last);
        Instruction* sort =
            c->Add(Opcode::Sort, Shape::Tuple({Shape::Array(t, s.dims()), iota.shape()}), {i->operand(0), iota.get()});
        sort->mutable_attrs().dimensions = Ints{last};
        sort->mutable_attrs().is_stable = true;
        sort->mutable_attrs().to_apply = order;
        std::vector<Expr> parts;
        for (int64_t k = 0; k < 2; ++k) {
          Ints limit = s.dims();
          limit[static_cast<size_t>(last)] = *i->attrs().k;
          parts.push_back(SliceOf(PartOf(sort, k), Ints(limit.size(), 0), limit));
        }
        return TupleOf(parts);
      });
}

}  // namespace

absl::StatusOr<bool> TopkDecomposer(Module& m, PassContext& ctx) { return Decompose(m, ctx, 0); }

absl::StatusOr<bool> WideTopkDecomposer(Module& m, PassContext& ctx) { return Decompose(m, ctx, kMostTopK + 1); }

}  // namespace kiln
