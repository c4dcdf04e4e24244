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
      const double n =
          static_cast<double>(x.shape().ElementCount()) / static_cast<double>(std::max<int64_t>(dims[f], 1));
      std::vector<Instruction*> results;
      if (infer) {
        Expr inv = Unary(Opcode::Rsqrt, in(4) + eps);
        results = {ConvertTo(t, (x - spread(in(3))) * spread(inv) * spread(in(1)) + spread(in(2))).get()};
      } else if (train) {
        Expr mean = SumOver(x, f) / n;
        Expr d = x - spread(mean);
        Expr var = SumOver(d * d, f) / n;
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
        Expr i1 = g * n;
        Expr i2 = spread(grad_offset);
        Expr i3 = d * spread(sum_gd * inv * inv);
        Expr grad_x = spread(scale * inv / n) * (i1 - i2 - i3);
        results = {ConvertTo(t, grad_x).get(), ConvertTo(t, grad_scale).get(), ConvertTo(t, grad_offset).get()};
      }
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
