// Sums of products' elements: what is added up is a factor's own dimension, or one more that the product contracts.
#include <algorithm>

#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/simplify/dot_form.h"
#include "compiler/passes/simplify/rules/pattern.h"
#include "compiler/passes/simplify/rules/reducer.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

// The dot of which `i` alone adds up elements.
Instruction* SummedDot(const Instruction* i) {
  Instruction* dot = i->operand(0);
  const bool wanted = i->operand_count() == 2 && i->shape().IsArray() && IsStatic(i) && IsPlainDot(dot) &&
                      dot->users().size() == 1 && ReducerOf(i) == Opcode::Add && pattern::IsAll(i->operand(1), 0);
  return wanted ? dot : nullptr;
}

// What a sum is over: places in the lists of batch dimensions and of either side's free ones, which the dot's result
// has in this order.
struct Summed {
  Ints batch, left, right;
};

Summed SummedOf(const Instruction* i, const DotSide& l) {
  Summed s;
  const auto batch = static_cast<int64_t>(l.batch.size()), left = batch + static_cast<int64_t>(l.free.size());
  for (int64_t d : *i->attrs().dimensions)
    (d < batch ? s.batch : d < left ? s.left : s.right).push_back(d < batch ? d : d < left ? d - batch : d - left);
  return s;
}

// Dimensions of `from` at the places that `which` does not name.
Ints Others(const Ints& from, const Ints& which) {
  Ints out;
  for (size_t k = 0; k < from.size(); ++k)
    if (!Holds(which, static_cast<int64_t>(k))) out.push_back(from[k]);
  return out;
}

// A batch dimension that is summed is contracted.
Instruction* OverBatch(Instruction* i) {
  Instruction* dot = SummedDot(i);
  if (!dot) return nullptr;
  DotSide l = SideOf(dot, 0), r = SideOf(dot, 1);
  const Summed s = SummedOf(i, l);
  if (s.batch.empty()) return nullptr;
  for (DotSide* side : {&l, &r}) {
    for (int64_t k : s.batch) side->contracting.push_back(side->batch[static_cast<size_t>(k)]);
    side->batch = Others(side->batch, s.batch);
  }
  Ints rest;  // of the new dot's dimensions
  for (int64_t d : *i->attrs().dimensions)
    if (d >= static_cast<int64_t>(l.batch.size() + s.batch.size()))
      rest.push_back(d - static_cast<int64_t>(s.batch.size()));
  const Expr product = DotLike(dot, dot->operand(0), l, dot->operand(1), r);
  return rest.empty() ? product.get() : ReduceOf(product, i->operand(1), rest, *i->attrs().to_apply).get();
}

// `side` of the dot, summed over the free dimensions at the places `which`; `side` then names what is left.
Expr SumOfFactor(const Instruction* dot, int64_t operand, PrimitiveType type, const Ints& which, DotSide& side) {
  const Expr x = ConvertTo(type, dot->operand(operand));
  if (which.empty()) return x;
  Ints gone;
  for (int64_t k : which) gone.push_back(side.free[static_cast<size_t>(k)]);
  std::sort(gone.begin(), gone.end());
  for (Ints* dims : {&side.batch, &side.contracting, &side.free}) {
    Ints kept;
    for (int64_t d : *dims)
      if (!Holds(gone, d))
        kept.push_back(d - std::count_if(gone.begin(), gone.end(), [&](int64_t g) { return g < d; }));
    *dims = kept;
  }
  Computation* c = x.computation();
  return ReduceOf(x, c->AddConstant(Literal::Of(type, 0)), gone, ScalarFunction(c->module(), Opcode::Add, type));
}

// The sum over rows or columns of a product: the factor that has them is summed, and a vector is multiplied. Narrow
// floats are summed in f32, and stay that: rounded, the sum would lose what single elements have.
Instruction* OverFree(Instruction* i) {
  Instruction* dot = SummedDot(i);
  if (!dot || dot->attrs().algorithm) return nullptr;
  const PrimitiveType type = dot->shape().type();
  for (int64_t k : {0, 1})
    if (dot->operand(k)->shape().type() != type) return nullptr;
  DotSide l = SideOf(dot, 0), r = SideOf(dot, 1);
  const Summed s = SummedOf(i, l);
  if (!s.batch.empty() || (s.left.empty() && s.right.empty())) return nullptr;
  const PrimitiveType wide = ProductType(dot, true);
  const Expr left = SumOfFactor(dot, 0, wide, s.left, l), right = SumOfFactor(dot, 1, wide, s.right, r);
  const Expr product = DotLike(dot, left, l, right, r);
  product.get()->mutable_shape() = Shape::Array(wide, product.shape().dims());
  return ConvertTo(type, product).get();
}

const Rule kRules[] = {
    {"reduce-of-dot-batch",
     {Opcode::Reduce},
     kInts | kFloats | kComplex,
     Numerics::Order,
     "ENTRY e { a = $T[3,4,5] parameter(0)\n b = $T[3,5,6] parameter(1)\n z = $T[] constant(0)\n"
     " d = $T[3,4,6] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2},"
     " rhs_contracting_dims={1}\n ROOT r = $T[4,6] reduce(d, z), dimensions={0}, to_apply=sum }",
     "ENTRY e { a = $T[3,4,5] parameter(0)\n b = $T[3,5,6] parameter(1)\n z = $T[] constant(1)\n"
     " d = $T[3,4,6] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2},"
     " rhs_contracting_dims={1}\n ROOT r = $T[4,6] reduce(d, z), dimensions={0}, to_apply=sum }",
     OverBatch,
     true},
    {"reduce-of-dot",
     {Opcode::Reduce},
     kInts | kFloats | kComplex,
     Numerics::Range,
     "ENTRY e { a = $T[4,5] parameter(0)\n b = $T[5,6] parameter(1)\n z = $T[] constant(0)\n"
     " d = $T[4,6] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
     " ROOT r = $T[4] reduce(d, z), dimensions={1}, to_apply=sum }",
     "ENTRY e { a = $T[4,5] parameter(0)\n b = $T[5,6] parameter(1)\n z = $T[] constant(0)\n"
     " d = $T[4,6] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
     " n = $T[4] reduce(d, z), dimensions={1}, to_apply=sum\n"
     " o = $T[6] reduce(d, z), dimensions={0}, to_apply=sum\n"
     " s = $T[4] slice(o), slice={[0:4]}\n ROOT r = $T[4] add(n, s) }",
     OverFree,
     true},
};

}  // namespace

absl::Span<const Rule> ReduceDotRules() { return kRules; }

}  // namespace kiln
