// Dots that are less than they say: without elements, of vectors, of extents of 1.
#include "compiler/passes/simplify/dot_form.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

Instruction* OfNothing(Instruction* i) {
  if (!IsPlainDot(i)) return nullptr;
  for (const Instruction* x : {i->operand(0), i->operand(1), i})
    if (x->shape().ElementCount() == 0) return Expr(i).Like(0).get();
  return nullptr;
}

// An outer product: no sum, so no kernel of products gains anything.
Instruction* WithoutContraction(Instruction* i) {
  const bool wanted = IsPlainDot(i) && SideOf(i, 0).contracting.empty() && MultipliesAsAsked(i);
  return wanted ? DotAsProducts(i).get() : nullptr;
}

// One sum for each element of the batch: nothing to tile.
Instruction* OfVectors(Instruction* i) {
  const bool wanted = IsPlainDot(i) && SideOf(i, 0).free.empty() && SideOf(i, 1).free.empty() && MultipliesAsAsked(i);
  return wanted ? DotAsProducts(i).get() : nullptr;
}

// What dot-decomposer makes for the kernels, [batch, free, contracting] in whichever order of the last two.
bool IsKernelForm(const Instruction* i) {
  const DotSide l = SideOf(i, 0), r = SideOf(i, 1);
  return l.batch == Ints{0} && r.batch == Ints{0} && l.contracting.size() == 1 && l.free.size() == 1 &&
         r.free.size() == 1;
}

struct Reduced {
  Expr x;
  DotSide side;
};

// Operand `k` without its extents of 1.
Reduced WithoutOnes(Instruction* dot, int64_t k) {
  Instruction* x = dot->operand(k);
  Ints dims, place;
  for (int64_t extent : x->shape().dims()) {
    place.push_back(static_cast<int64_t>(dims.size()));
    if (extent != 1) dims.push_back(extent);
  }
  const auto moved = [&](const Ints& from) {
    Ints to;
    for (int64_t d : from)
      if (x->shape().dim(d) != 1) to.push_back(place[static_cast<size_t>(d)]);
    return to;
  };
  const DotSide s = SideOf(dot, k);
  return {ReshapeTo(x, dims), {moved(s.batch), moved(s.contracting), moved(s.free)}};
}

Instruction* OfExtentsOfOne(Instruction* i) {
  if (!IsPlainDot(i) || IsKernelForm(i)) return nullptr;
  const Reduced l = WithoutOnes(i, 0), r = WithoutOnes(i, 1);
  if (l.x.get() == i->operand(0) && r.x.get() == i->operand(1)) return nullptr;
  return ReshapeTo(DotLike(i, l.x, l.side, r.x, r.side), i->shape().dims()).get();
}

constexpr const char* kProduct =
    "ENTRY e { a = $T[4,5] parameter(0)\n b = $T[5,6] parameter(1)\n"
    " ROOT r = $T[4,6] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }";

const Rule kRules[] = {
    {"dot-of-nothing",
     {Opcode::Dot},
     kInts | kFloats | kComplex,
     Numerics::Exact,
     "ENTRY e { a = $T[4,0] parameter(0)\n b = $T[0,6] parameter(1)\n"
     " ROOT r = $T[4,6] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
     kProduct,
     OfNothing,
     true},
    {"dot-without-contraction",
     {Opcode::Dot},
     kInts | kFloats | kComplex,
     Numerics::Order,
     "ENTRY e { a = $T[3,4] parameter(0)\n b = $T[5,3] parameter(1)\n"
     " ROOT r = $T[3,4,5] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={},"
     " rhs_contracting_dims={} }",
     kProduct,
     WithoutContraction,
     true},
    {"dot-of-vectors",
     {Opcode::Dot},
     kInts | kFloats | kComplex,
     Numerics::Order,
     "ENTRY e { a = $T[3,4,2] parameter(0)\n b = $T[3,2,4] parameter(1)\n"
     " ROOT r = $T[3] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1,2},"
     " rhs_contracting_dims={2,1} }",
     kProduct,
     OfVectors,
     true},
    {"dot-extent-one",
     {Opcode::Dot},
     kInts | kFloats | kComplex,
     Numerics::Order,
     "ENTRY e { a = $T[1,4,5] parameter(0)\n b = $T[5,1,6] parameter(1)\n"
     " ROOT r = $T[1,4,6] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2},"
     " rhs_contracting_dims={0} }",
     kProduct,
     OfExtentsOfOne,
     true},
};

}  // namespace

absl::Span<const Rule> DotRules() { return kRules; }

}  // namespace kiln
