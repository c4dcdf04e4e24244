// Tensor cores want features in multiples: of 8 in f16, of 4 in 8-bit integers (32 where there are more than 32).
// Filters and inputs get features of zeros, and a slice takes surplus features of the result away. Left alone if the
// arrays would grow by more than 1.35 (f16) or 2 (integers).
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

struct Plan {
  int64_t in = 0, out = 0;  // features after padding
  double most = 0;
};

std::optional<Plan> PlanFor(const Instruction* call) {
  const PrimitiveType t = call->operand(0)->shape().type();
  if (call->attrs().feature_group_count.value_or(1) != 1 || !call->attrs().dim_labels) return std::nullopt;
  const ConvDimensionNumbers& d = *call->attrs().dim_labels;
  const Shape& w = call->operand(1)->shape();
  const int64_t in = w.dim(d.kernel_input), out = w.dim(d.kernel_output);
  const auto up = [](int64_t n, int64_t m) { return (n + m - 1) / m * m; };
  Plan p;
  if (t == PrimitiveType::F16) {
    p = {up(in, 8), up(out, 8), 1.35};
  } else if (t == PrimitiveType::S8) {
    const int64_t m = in > 32 && out > 32 ? 32 : 4;
    p = {up(in, m), up(out, m), 2};
  } else {
    return std::nullopt;
  }
  if (p.in == in && p.out == out) return std::nullopt;
  const auto bytes = [](const Shape& s) { return static_cast<double>(s.ByteSize()); };
  const double x = bytes(call->operand(0)->shape()), f = bytes(w), r = bytes(call->shape().tuple()[0]);
  const double a = static_cast<double>(p.in) / static_cast<double>(in),
               b = static_cast<double>(p.out) / static_cast<double>(out);
  if (x * a > p.most * x || f * a * b > p.most * f * p.most || r * b > p.most * r) return std::nullopt;
  return p;
}

Instruction* PadTo(Instruction* x, int64_t dim, int64_t extent) {
  if (x->shape().dim(dim) == extent) return x;
  Shape s = x->shape();
  attr::Padding amounts(static_cast<size_t>(s.rank()));
  amounts[static_cast<size_t>(dim)].high = extent - s.dim(dim);
  s.mutable_dims()[static_cast<size_t>(dim)] = extent;
  Instruction* pad = x->parent()->Add(Opcode::Pad, s, {x, x->parent()->AddConstant(Literal::Of(s.type(), 0))});
  pad->mutable_attrs().padding = amounts;
  return pad;
}

}  // namespace

absl::StatusOr<bool> CudnnPadForConvolutions(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](const Instruction* i) { return IsCallTo(i, kConvForwardTarget) && PlanFor(i).has_value(); },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        const Plan p = *PlanFor(i);
        Computation* c = i->parent();
        const ConvDimensionNumbers& d = *i->attrs().dim_labels;
        Instruction* x = PadTo(i->operand(0), d.input_feature, p.in);
        Instruction* w = PadTo(PadTo(i->operand(1), d.kernel_input, p.in), d.kernel_output, p.out);
        Shape wide = i->shape();
        wide.mutable_tuple()[0].mutable_dims()[static_cast<size_t>(d.output_feature)] = p.out;
        Instruction* call = c->AddClone(i, wide, {x, w});
        std::vector<Expr> parts;
        for (int64_t k = 0; k < 2; ++k) {
          Instruction* e = PartOf(call, k).get();
          parts.push_back(e);
        }
        const Shape& narrow = i->shape().tuple()[0];
        if (parts[0].shape().dims() != narrow.dims())
          parts[0] = SliceOf(parts[0], Ints(static_cast<size_t>(narrow.rank()), 0), narrow.dims());
        return TupleOf(parts);
      });
}

}  // namespace kiln
