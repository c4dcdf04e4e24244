// Reductions of what was moved, merged, negated or reduced before.
#include <algorithm>

#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/physical_shape.h"
#include "compiler/passes/simplify/rules/pattern.h"
#include "compiler/passes/simplify/rules/permutation.h"
#include "compiler/passes/simplify/rules/reducer.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

bool Reduces(const Instruction* i, int64_t d) {
  const Ints& dims = *i->attrs().dimensions;
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

bool IsPlainReduce(const Instruction* i) {
  return i->Is(Opcode::Reduce) && i->operand_count() == 2 && i->shape().IsArray() && IsStatic(i);
}

Expr ReduceLike(const Instruction* i, Expr x, Ints dims) {
  std::sort(dims.begin(), dims.end());
  return ReduceOf(x, i->operand(1), dims, *i->attrs().to_apply);
}

// -(a + b) is -a + -b, rounded alike.
Instruction* OfNegation(Instruction* i) {
  if (!IsPlainReduce(i) || !i->operand(0)->Is(Opcode::Negate) || ReducerOf(i) != Opcode::Add) return nullptr;
  if (!pattern::IsAll(i->operand(1), 0)) return nullptr;
  return (-ReduceLike(i, i->operand(0)->operand(0), *i->attrs().dimensions)).get();
}

// By which a transpose of a reduction's results has them in the order of `kept`, dimensions of its operand.
Ints OrderOf(const Ints& kept) {
  Ints order;
  for (int64_t d : kept)
    order.push_back(std::count_if(kept.begin(), kept.end(), [&](int64_t other) { return other < d; }));
  return order;
}

// The reduction takes its operand as it lies; a transpose of the result is smaller, and often none.
Instruction* OfTranspose(Instruction* i) {
  if (!IsPlainReduce(i) || !i->operand(0)->Is(Opcode::Transpose)) return nullptr;
  const Instruction* t = i->operand(0);
  const bool all_reduce =
      std::all_of(t->users().begin(), t->users().end(), [](const Instruction* u) { return u->Is(Opcode::Reduce); });
  if (i->shape().rank() >= 2 && !all_reduce) return nullptr;
  const Ints& p = *t->attrs().dimensions;
  Ints reduced, kept;
  for (int64_t d = 0; d < t->shape().rank(); ++d) (Reduces(i, d) ? reduced : kept).push_back(p[static_cast<size_t>(d)]);
  return TransposeBy(ReduceLike(i, t->operand(0), reduced), OrderOf(kept)).get();
}

// `x`, of the extents of a transpose by `p`, as it lies before it: what costs nothing to make otherwise; or null.
Instruction* Untransposed(Instruction* x, const Ints& p) {
  const Ints back = InversePermutation(p);
  Ints dims;
  for (int64_t d : back) dims.push_back(x->shape().dim(d));
  if (x->Is(Opcode::Transpose)) return *x->attrs().dimensions == p ? x->operand(0) : nullptr;
  if (x->Is(Opcode::Iota))
    return IotaOf(x->parent(), x->shape().type(), dims, p[static_cast<size_t>(*x->attrs().iota_dimension)]).get();
  if (!x->Is(Opcode::Broadcast)) return nullptr;
  const Ints& mapped = x->attrs().dimensions.value_or(Ints());
  if (mapped.size() > 1) return nullptr;
  return BroadcastTo(x->operand(0), dims, mapped.empty() ? Ints() : Ints{p[static_cast<size_t>(mapped[0])]}).get();
}

// The same for reductions of several arrays, of which what is no transpose numbers places: those of the largest.
Instruction* OfTransposes(Instruction* i) {
  const int64_t n = i->operand_count() / 2;
  if (n < 2 || !IsStatic(i) || !i->operand(0)->Is(Opcode::Transpose)) return nullptr;
  const Ints& p = *i->operand(0)->attrs().dimensions;
  Ints reduced, kept;
  for (int64_t d = 0; d < i->operand(0)->shape().rank(); ++d)
    (Reduces(i, d) ? reduced : kept).push_back(p[static_cast<size_t>(d)]);
  std::sort(reduced.begin(), reduced.end());
  std::vector<Instruction*> operands;
  for (int64_t k = 0; k < n; ++k) {
    operands.push_back(Untransposed(i->operand(k), p));
    if (!operands.back()) return nullptr;
  }
  for (int64_t k = n; k < 2 * n; ++k) operands.push_back(i->operand(k));
  const Ints order = OrderOf(kept), before = InversePermutation(order);
  std::vector<Shape> shapes;
  for (const Shape& result : i->shape().tuple()) {
    Ints dims;
    for (int64_t d : before) dims.push_back(result.dim(d));
    shapes.push_back(Shape::Array(result.type(), dims));
  }
  Instruction* reduce = i->parent()->AddClone(i, Shape::Tuple(shapes), operands);
  reduce->mutable_attrs().dimensions = reduced;
  std::vector<Expr> results;
  for (int64_t k = 0; k < n; ++k) results.push_back(TransposeBy(PartOf(reduce, k), order));
  return TupleOf(results);
}

// Several arrays without the extents of 1 that a reshape gave the first.
Instruction* OfAddedOnes(Instruction* i) {
  const int64_t n = i->operand_count() / 2;
  if (n < 2 || !IsStatic(i) || !i->operand(0)->Is(Opcode::Reshape)) return nullptr;
  const Shape &now = i->operand(0)->shape(), &before = i->operand(0)->operand(0)->shape();
  Ints dims, place, reduced, kept;
  for (int64_t d = 0; d < now.rank(); ++d) {
    place.push_back(static_cast<int64_t>(dims.size()));
    if (now.dim(d) == 1) continue;
    (Reduces(i, d) ? reduced : kept).push_back(Reduces(i, d) ? place.back() : now.dim(d));
    dims.push_back(now.dim(d));
  }
  if (before.dims() != dims || before.type() != now.type() || reduced.empty()) return nullptr;
  std::vector<Instruction*> operands = i->operands();
  for (int64_t k = 0; k < n; ++k) {
    Instruction*& x = operands[static_cast<size_t>(k)];
    const bool iota = x->Is(Opcode::Iota) && now.dim(*x->attrs().iota_dimension) != 1;
    x = iota
            ? IotaOf(x->parent(), x->shape().type(), dims, place[static_cast<size_t>(*x->attrs().iota_dimension)]).get()
            : ReshapeTo(x, dims).get();
  }
  std::vector<Shape> shapes;
  for (const Shape& result : i->shape().tuple()) shapes.push_back(Shape::Array(result.type(), kept));
  Instruction* reduce = i->parent()->AddClone(i, Shape::Tuple(shapes), operands);
  reduce->mutable_attrs().dimensions = reduced;
  std::vector<Expr> results;
  for (int64_t k = 0; k < n; ++k)
    results.push_back(ReshapeTo(PartOf(reduce, k), i->shape().tuple()[static_cast<size_t>(k)].dims()));
  return TupleOf(results);
}

// Two reductions by one operation are one over the dimensions of both, if the initial value may be taken twice.
Instruction* OfReduction(Instruction* i) {
  Instruction* inner = i->operand(0);
  if (!IsPlainReduce(i) || !inner->Is(Opcode::Reduce) || !IsPlainReduce(inner) || inner->users().size() != 1)
    return nullptr;
  const std::optional<Opcode> op = ReducerOf(i);
  if (!op || op != ReducerOf(inner) || !SameScalar(i->operand(1), inner->operand(1)) ||
      !InitialMayRepeat(*op, i->shape().type(), i->operand(1)))
    return nullptr;
  Ints dims;
  int64_t of_inner = 0;
  for (int64_t d = 0; d < inner->operand(0)->shape().rank(); ++d)
    if (Reduces(inner, d) || Reduces(i, of_inner++)) dims.push_back(d);
  return ReduceLike(i, inner->operand(0), dims).get();
}

// A reshape among reduced dimensions does nothing; one among kept dimensions is done on the result.
Instruction* OfReshape(Instruction* i) {
  if (!IsPlainReduce(i) || !i->operand(0)->Is(Opcode::Reshape)) return nullptr;
  const Instruction* reshape = i->operand(0);
  Instruction* x = reshape->operand(0);
  if (x->shape().ElementCount() == 0) return nullptr;
  const auto whole = DimsKeptByReshape(x->shape().dims(), reshape->shape().dims());
  Ints reduced_whole, other;  // dimensions of x
  int64_t kept_whole = 0;
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    const auto pair = std::find_if(whole.begin(), whole.end(), [&](const auto& k) { return k.first == d; });
    if (pair == whole.end())
      other.push_back(d);
    else if (Reduces(i, pair->second))
      reduced_whole.push_back(d);
    else
      ++kept_whole;
  }
  if (kept_whole == i->shape().rank()) {
    other.insert(other.end(), reduced_whole.begin(), reduced_whole.end());
    return ReduceLike(i, x, other).get();
  }
  if (reshape->users().size() != 1 || reduced_whole.size() != i->attrs().dimensions->size()) return nullptr;
  return ReshapeTo(ReduceLike(i, x, reduced_whole), i->shape().dims()).get();
}

// Pieces of one shape, or a result of one element: each is reduced where it lies, and nothing is copied together.
Instruction* OfConcatenation(Instruction* i) {
  if (!IsPlainReduce(i) || !i->operand(0)->Is(Opcode::Concatenate)) return nullptr;
  const Instruction* pieces = i->operand(0);
  const std::optional<Opcode> op = ReducerOf(i);
  if (!op || !Reduces(i, (*pieces->attrs().dimensions)[0]) || !InitialMayRepeat(*op, i->shape().type(), i->operand(1)))
    return nullptr;
  const bool alike = std::all_of(pieces->operands().begin(), pieces->operands().end(), [&](const Instruction* x) {
    return x->shape().dims() == pieces->operand(0)->shape().dims();
  });
  if (!alike && i->shape().rank() != 0) return nullptr;
  std::optional<Expr> all;
  for (Instruction* x : pieces->operands()) {
    Expr one = ReduceLike(i, x, *i->attrs().dimensions);
    all = all ? Binary(*op, *all, one) : one;
  }
  return all->get();
}

constexpr const char* kOfParameter = "z = $T[] constant(0)\n ROOT r = $T[6] reduce(p, z), dimensions={0}, to_apply=sum";

const Rule kRules[] = {
    {"reduce-of-negation",
     {Opcode::Reduce},
     kFloats,
     Numerics::ZeroSign,
     "z = $T[] constant(0)\n n = $T[4,6] negate(p)\n ROOT r = $T[6] reduce(n, z), dimensions={0}, to_apply=sum",
     "n = $T[4,6] negate(p)\n ROOT r = $T[6] reduce(n, s), dimensions={0}, to_apply=sum",
     OfNegation,
     true},
    {"reduce-of-transpose",
     {Opcode::Reduce},
     kAllTypes,
     Numerics::Order,
     "ENTRY e { x = $T[2,3,4] parameter(0)\n t = $T[4,3,2] transpose(x), dimensions={2,1,0}\n"
     " z = $T[] constant(0)\n ROOT r = $T[4,2] reduce(t, z), dimensions={1}, to_apply=sum }",
     kOfParameter,
     OfTranspose,
     true},
    {"reduce-of-transposes",
     {Opcode::Reduce},
     kTuples,
     Numerics::Order,
     "ENTRY e { x = f32[2,3,4] parameter(0)\n p = f32[4,3,2] transpose(x), dimensions={2,1,0}\n"
     " i = s32[4,3,2] iota(), iota_dimension=2\n n = f32[] constant(-inf)\n z = s32[] constant(0)\n"
     " t = (f32[4,3], s32[4,3]) reduce(p, i, n, z), dimensions={2}, to_apply=argmax\n"
     " ROOT r = s32[4,3] get-tuple-element(t), index=1 }",
     "ENTRY e { x = f32[2,3,4] parameter(0)\n p = f32[4,3,2] transpose(x), dimensions={2,1,0}\n"
     " i = s32[4,3,2] parameter(1)\n n = f32[] constant(-inf)\n z = s32[] constant(0)\n"
     " t = (f32[4,3], s32[4,3]) reduce(p, i, n, z), dimensions={2}, to_apply=argmax\n"
     " ROOT r = s32[4,3] get-tuple-element(t), index=1 }",
     OfTransposes,
     true},
    {"reduce-of-added-ones",
     {Opcode::Reduce},
     kTuples,
     Numerics::Exact,
     "ENTRY e { x = f32[3,4] parameter(0)\n p = f32[1,3,4] reshape(x)\n i = s32[1,3,4] iota(), iota_dimension=2\n"
     " n = f32[] constant(-inf)\n z = s32[] constant(0)\n"
     " t = (f32[1,3], s32[1,3]) reduce(p, i, n, z), dimensions={2}, to_apply=argmax\n"
     " ROOT r = s32[1,3] get-tuple-element(t), index=1 }",
     "ENTRY e { x = f32[12] parameter(0)\n p = f32[1,3,4] reshape(x)\n i = s32[1,3,4] iota(), iota_dimension=2\n"
     " n = f32[] constant(-inf)\n z = s32[] constant(0)\n"
     " t = (f32[1,3], s32[1,3]) reduce(p, i, n, z), dimensions={2}, to_apply=argmax\n"
     " ROOT r = s32[1,3] get-tuple-element(t), index=1 }",
     OfAddedOnes,
     true},
    {"reduce-of-reduce",
     {Opcode::Reduce},
     kAllTypes,
     Numerics::Order,
     "ENTRY e { x = $T[2,3,4] parameter(0)\n z = $T[] constant(0)\n"
     " i = $T[2,4] reduce(x, z), dimensions={1}, to_apply=sum\n"
     " ROOT r = $T[4] reduce(i, z), dimensions={0}, to_apply=sum }",
     "other { a = $T[] parameter(0)\n b = $T[] parameter(1)\n ROOT c = $T[] multiply(a, b) }\n"
     "ENTRY e { x = $T[2,3,4] parameter(0)\n z = $T[] constant(0)\n"
     " i = $T[2,4] reduce(x, z), dimensions={1}, to_apply=other\n"
     " ROOT r = $T[4] reduce(i, z), dimensions={0}, to_apply=sum }",
     OfReduction,
     true},
    {"reduce-of-reshape",
     {Opcode::Reduce},
     kAllTypes,
     Numerics::Order,
     "ENTRY e { x = $T[2,3,4] parameter(0)\n m = $T[6,4] reshape(x)\n z = $T[] constant(0)\n"
     " ROOT r = $T[6] reduce(m, z), dimensions={1}, to_apply=sum }",
     "ENTRY e { x = $T[2,3,4] parameter(0)\n m = $T[4,6] reshape(x)\n z = $T[] constant(0)\n"
     " ROOT r = $T[6] reduce(m, z), dimensions={0}, to_apply=sum }",
     OfReshape,
     true},
    {"reduce-of-merged",
     {Opcode::Reduce},
     kAllTypes,
     Numerics::Order,
     "ENTRY e { x = $T[2,3,4] parameter(0)\n m = $T[6,4] reshape(x)\n z = $T[] constant(0)\n"
     " ROOT r = $T[4] reduce(m, z), dimensions={0}, to_apply=sum }",
     kOfParameter,
     OfReshape,
     true},
    {"reduce-of-concatenation",
     {Opcode::Reduce},
     kAllTypes,
     Numerics::Order,
     "z = $T[] constant(0)\n c = $T[8,6] concatenate(p, q), dimensions={0}\n"
     " ROOT r = $T[6] reduce(c, z), dimensions={0}, to_apply=sum",
     "z = $T[] constant(0)\n c = $T[8,6] concatenate(p, q), dimensions={0}\n"
     " ROOT r = $T[8] reduce(c, z), dimensions={1}, to_apply=sum",
     OfConcatenation,
     true},
};

}  // namespace

absl::Span<const Rule> ReduceOperandRules() { return kRules; }

}  // namespace kiln
