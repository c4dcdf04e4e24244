// Products asked for as sums of bf16 products: operands in f32 are cut into two or three bf16 parts, whose products are
// added from the smallest on.
//   x3: high*low, low*high, high*high.   x6 and x9: three parts each, the six or all nine products.
// Where the product of the high parts is not finite, the corrections are left out: they would only be NaN.
#include "absl/strings/match.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

int Products(const Instruction* i) {
  if (!i->Is(Opcode::Dot) || !i->attrs().algorithm || i->shape().type() != PrimitiveType::F32 ||
      i->operand(0)->shape().type() != PrimitiveType::F32 || i->operand(1)->shape().type() != PrimitiveType::F32)
    return 0;
  const std::string& a = i->attrs().algorithm->text;
  if (a == "dot_bf16_bf16_f32") return 1;
  if (a == "dot_bf16_bf16_f32_x3") return 3;
  if (a == "dot_bf16_bf16_f32_x6") return 6;
  if (a == "dot_bf16_bf16_f32_x9") return 9;
  return 0;
}

std::vector<Expr> Parts(Expr x, int count) {
  std::vector<Expr> out;
  for (int k = 0; k < count; ++k) {
    Expr part = ConvertTo(PrimitiveType::BF16, x);
    out.push_back(part);
    if (k + 1 < count) x = x - ConvertTo(PrimitiveType::F32, part);
  }
  return out;
}

}  // namespace

absl::StatusOr<bool> DotAlgorithmRewriter(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](const Instruction* i) { return Products(i) > 0; },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        const int products = Products(i), parts = products == 1 ? 1 : products == 3 ? 2 : 3;
        const std::vector<Expr> a = Parts(i->operand(0), parts), b = Parts(i->operand(1), parts);
        const auto dot = [&](int p, int q) -> Expr {
          Instruction* d =
              i->parent()->AddClone(i, i->shape(), {a[static_cast<size_t>(p)].get(), b[static_cast<size_t>(q)].get()});
          d->mutable_attrs().algorithm.reset();
          return d;
        };
        Expr high = dot(0, 0);
        if (products == 1) return high.get();
        // By the size of what they add: the order of the parts' numbers.
        std::vector<std::pair<int, int>> pairs;
        const int most = products == 3 ? 1 : products == 6 ? 2 : 4;
        for (int order = most; order > 0; --order)
          for (int p = 0; p < parts; ++p)
            if (const int q = order - p; q >= 0 && q < parts) pairs.push_back({p, q});
        Expr low = dot(pairs[0].first, pairs[0].second);
        for (size_t k = 1; k < pairs.size(); ++k) low = low + dot(pairs[k].first, pairs[k].second);
        Expr finite = Unary(Opcode::IsFinite, high);
        return (high + SelectExpr(finite, low, low.Like(0))).get();
      });
}

}  // namespace kiln
