// Batch normalisation as broadcasts, reductions and elementwise ops; narrow floats accumulate in f32.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"

namespace kiln {
namespace {

Expr SumOver(Expr x, int64_t feature) {
  Computation* c = x.computation();
  Ints dims;
  for (int64_t d = 0; d < x.shape().rank(); ++d)
    if (d != feature) dims.push_back(d);
  return ReduceOf(x, c->AddConstant(Literal::Of(x.type(), 0)), dims,
                  ScalarFunction(c->module(), Opcode::Add, x.type()));
}

// How many elements of `x` a feature has, as a number of type `t`; of dynamic dimensions, their sizes say.
Expr CountOf(Instruction* x, int64_t feature, PrimitiveType t) {
  const Shape& s = x->shape();
  double extents = 1;
  for (int64_t d = 0; d < s.rank(); ++d)
    if (d != feature && !s.is_dynamic(d)) extents *= static_cast<double>(s.dim(d));
  Expr count = x->parent()->AddConstant(Literal::Of(t, extents));
  for (int64_t d = 0; d < s.rank(); ++d) {
    if (d == feature || !s.is_dynamic(d)) continue;
    Instruction* size = x->parent()->Add(Opcode::GetDimensionSize, Shape::Scalar(PrimitiveType::S32), {x});
    size->mutable_attrs().dimensions = Ints{d};
    count = count * ConvertTo(t, size);
  }
  return count;
}

void MarkDynamic(Instruction* i, const Shape& like) {
  for (int64_t d = 0; d < like.rank(); ++d) i->mutable_shape().set_dynamic(d, like.is_dynamic(d));
}

}  // namespace

absl::StatusOr<bool> BatchNormExpander(Module& m, PassContext& ctx) {
  bool changed = false;
  std::vector<Computation*> all;
  for (const auto& c : m.computations()) all.push_back(c.get());
  for (Computation* c : all) {
    for (Instruction* i : c->PostOrder()) {
      const bool train = i->Is(Opcode::BatchNormTraining), infer = i->Is(Opcode::BatchNormInference),
                 grad = i->Is(Opcode::BatchNormGrad);
      if ((!train && !infer && !grad) || !ctx.Take()) continue;
      const PrimitiveType t = i->operand(0)->shape().type();
      const PrimitiveType wide = InfoOf(t).bits < 32 ? PrimitiveType::F32 : t;
      const int64_t f = *i->attrs().feature_index;
      const double eps = i->attrs().epsilon.value_or(0);
      auto in = [&](int k) { return ConvertTo(wide, i->operand(k)); };
      Expr x = in(0);
      const Ints dims = x.shape().dims();
      auto spread = [&](Expr v) { return BroadcastTo(v, dims, {f}); };
      const auto count = [&](const Ints& extents) { return BroadcastTo(CountOf(i->operand(0), f, wide), extents); };
      const auto averaged = [&](Expr sums) { return sums / count(sums.shape().dims()); };
      std::vector<Instruction*> results;
      if (infer) {
        Expr inv = Unary(Opcode::Rsqrt, in(4) + eps);
        results = {ConvertTo(t, (x - spread(in(3))) * spread(inv) * spread(in(1)) + spread(in(2))).get()};
      } else if (train) {
        Expr mean = averaged(SumOver(x, f));
        Expr d = x - spread(mean);
        Expr var = averaged(SumOver(d * d, f));
        Expr inv = Unary(Opcode::Rsqrt, var + eps);
        Expr y = d * spread(inv) * spread(in(1)) + spread(in(2));
        results = {ConvertTo(t, y).get(), ConvertTo(t, mean).get(), ConvertTo(t, var).get()};
      } else {
        Expr scale = in(1), mean = in(2), var = in(3), g = in(4);
        Expr inv = Unary(Opcode::Rsqrt, var + eps);
        Expr d = x - spread(mean);
        Expr grad_offset = SumOver(g, f);
        Expr sum_gd = SumOver(g * d, f);
        Expr grad_scale = sum_gd * inv;
        Expr i1 = g * count(dims);
        Expr i2 = spread(grad_offset);
        Expr i3 = d * spread(sum_gd * inv * inv);
        Expr grad_x = spread(averaged(scale * inv)) * (i1 - i2 - i3);
        results = {ConvertTo(t, grad_x).get(), ConvertTo(t, grad_scale).get(), ConvertTo(t, grad_offset).get()};
      }
      for (size_t k = 0; k < results.size(); ++k) MarkDynamic(results[k], infer ? i->shape() : i->shape().tuple()[k]);
      Instruction* out = results[0];
      if (results.size() > 1) {
        std::vector<Shape> shapes;
        for (Instruction* r : results) shapes.push_back(r->shape());
        out = c->Add(Opcode::Tuple, Shape::Tuple(shapes), results);
      }
      i->ReplaceAllUsesWith(out);
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
