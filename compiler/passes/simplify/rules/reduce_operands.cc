// Reductions of what was moved, merged, negated or reduced before.
#include <algorithm>

#include "compiler/hlo/graph_builder.h"
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
  Ints order;  // of the kept dimensions among themselves
  for (int64_t d : kept)
    order.push_back(std::count_if(kept.begin(), kept.end(), [&](int64_t other) { return other < d; }));
  return TransposeBy(ReduceLike(i, t->operand(0), reduced), order).get();
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
