// Reductions of what was repeated, and of what another reduction knows.
#include <algorithm>
#include <cmath>
#include <optional>

#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/simplify/rules/arg_reducer.h"
#include "compiler/passes/simplify/rules/pattern.h"
#include "compiler/passes/simplify/rules/reducer.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

bool Holds(const Ints& v, int64_t d) { return std::find(v.begin(), v.end(), d) != v.end(); }

bool IsPlainReduceOf(const Instruction* i, Opcode operand) {
  return i->operand_count() == 2 && i->shape().IsArray() && i->operand(0)->Is(operand) && IsStatic(i);
}

// The greatest of equal numbers is the number.
Instruction* OfRepeatedScalar(Instruction* i) {
  if (!IsPlainReduceOf(i, Opcode::Broadcast) || i->shape().rank() != 0 ||
      i->operand(0)->operand(0)->shape().rank() != 0)
    return nullptr;
  if (i->operand(0)->shape().ElementCount() == 0) return nullptr;
  const std::optional<Opcode> op = ReducerOf(i);
  const bool idempotent = op == Opcode::Maximum || op == Opcode::Minimum || op == Opcode::And || op == Opcode::Or;
  return idempotent ? Binary(*op, i->operand(1), i->operand(0)->operand(0)).get() : nullptr;
}

// Dimensions that the operand had before it was repeated are reduced there.
Instruction* BeforeRepetition(Instruction* i) {
  if (!IsPlainReduceOf(i, Opcode::Broadcast)) return nullptr;
  const Instruction* b = i->operand(0);
  const Ints &reduced = *i->attrs().dimensions, &mapped = *b->attrs().dimensions;
  if (reduced.empty() || !std::all_of(reduced.begin(), reduced.end(), [&](int64_t d) { return Holds(mapped, d); }))
    return nullptr;
  Ints inner, outer;
  for (size_t k = 0; k < mapped.size(); ++k) {
    if (Holds(reduced, mapped[k]))
      inner.push_back(static_cast<int64_t>(k));
    else
      outer.push_back(mapped[k] -
                      std::count_if(reduced.begin(), reduced.end(), [&](int64_t d) { return d < mapped[k]; }));
  }
  return BroadcastTo(ReduceOf(b->operand(0), i->operand(1), inner, *i->attrs().to_apply), i->shape().dims(), outer)
      .get();
}

// The sum of n equal numbers is n times the number.
Instruction* SumOfRepetition(Instruction* i) {
  if (!IsPlainReduceOf(i, Opcode::Broadcast) || ReducerOf(i) != Opcode::Add) return nullptr;
  Instruction *b = i->operand(0), *x = b->operand(0);
  const Ints& mapped = *b->attrs().dimensions;
  int64_t n = 1;
  for (int64_t d : *i->attrs().dimensions) {
    if (Holds(mapped, d)) return nullptr;
    n *= b->shape().dim(d);
  }
  const PrimitiveType t = i->shape().type();
  constexpr int64_t kMostExact = int64_t{1} << 53;  // literals are built of doubles
  if (n == 0 || n > kMostExact || (IsFloat(t) && !std::isfinite(RoundToType(t, static_cast<double>(n)))))
    return nullptr;
  Ints outer;
  for (int64_t d : mapped)
    outer.push_back(d - std::count_if(i->attrs().dimensions->begin(), i->attrs().dimensions->end(),
                                      [&](int64_t other) { return other < d; }));
  Computation* c = i->parent();
  Expr count = IsIntegral(t) ? IntegerIn(c, t, n) : Expr(c->AddConstant(Literal::Of(t, static_cast<double>(n))));
  Expr sum = BroadcastTo(i->operand(1), x->shape().dims()) + Expr(x) * BroadcastTo(count, x->shape().dims());
  return BroadcastTo(sum, i->shape().dims(), outer).get();
}

// The first of equal numbers is the greatest, and the least.
Instruction* PlaceOfRepeatedConstant(Instruction* i) {
  const std::optional<Opcode> op = ArgReducerOf(i);
  if (!op || !IsStatic(i)) return nullptr;
  const Instruction* b = i->operand(0);
  if (!b->Is(Opcode::Broadcast) || !b->operand(0)->Is(Opcode::Constant) || !b->operand(0)->shape().IsScalar() ||
      b->shape().ElementCount() == 0 ||
      !Holds(*i->attrs().dimensions, i->operand(1)->attrs().iota_dimension.value_or(0)))
    return nullptr;
  // A number that the initial value equals or precedes would have the initial place, which is 0 as well.
  const Ints& dims = i->shape().tuple()[0].dims();
  Expr value = BroadcastTo(b->operand(0), dims);
  Expr place = BroadcastTo(i->operand(3), dims);
  return i->parent()->Add(Opcode::Tuple, i->shape(), {value.get(), place.get()});
}

// The greatest value, where the greatest with its place is computed of the same operand.
Instruction* SharedWithPlace(Instruction* i) {
  if (i->operand_count() != 2 || !i->shape().IsArray() || !IsStatic(i)) return nullptr;
  const std::optional<Opcode> op = ReducerOf(i);
  if (op != Opcode::Maximum && op != Opcode::Minimum) return nullptr;
  if (!IsFloat(i->shape().type()) || !IsIdentityOf(*op, i->shape().type(), i->operand(1))) return nullptr;
  for (Instruction* user : i->operand(0)->users())
    if (user != i && user->operand(0) == i->operand(0) && ArgReducerOf(user) == op &&
        user->attrs().dimensions == i->attrs().dimensions && user->control_predecessors().empty())
      return PartOf(user, 0).get();
  return nullptr;
}

// A constant where dimension `d` is at a place, elsewhere 0: one-hot vectors along `d`, as classes of examples are
// written.
struct OneHot {
  const Instruction* place;  // broadcast along `d`
  Instruction* value;        // a constant, everywhere; null: 1
};
std::optional<OneHot> OneHotAlong(Instruction* x, int64_t d) {
  OneHot hot{};
  if (x->Is(Opcode::Multiply)) {
    const int64_t k = pattern::SplatOf(x->operand(0)) ? 0 : 1;
    hot.value = x->operand(k);
    x = x->operand(1 - k);
    const Literal* c = pattern::SplatOf(hot.value);
    if (!c || !hot.value->Is(Opcode::Broadcast) || hot.value->operand(0)->shape().rank() != 0) return std::nullopt;
    if (IsFloat(c->shape().type()) && !std::isfinite(c->Get(0).re)) return std::nullopt;
  }
  if (!x->Is(Opcode::Convert) || !x->operand(0)->Is(Opcode::Compare)) return std::nullopt;
  const Instruction* is = x->operand(0);
  const int64_t k = is->operand(0)->Is(Opcode::Iota) ? 0 : 1;
  const Instruction *iota = is->operand(k), *place = is->operand(1 - k);
  constexpr int64_t kLeastBits = 32;  // that count every place
  if (*is->attrs().direction != Direction::EQ || !iota->Is(Opcode::Iota) || iota->attrs().iota_dimension != d ||
      !IsIntegral(iota->shape().type()) || InfoOf(iota->shape().type()).bits < kLeastBits ||
      !place->Is(Opcode::Broadcast) || Holds(*place->attrs().dimensions, d))
    return std::nullopt;
  hot.place = place;
  return hot;
}

// The sum along a one-hot vector is its value, unless the place is nowhere.
Instruction* SumOfOneHot(Instruction* i) {
  const Ints& reduced = *i->attrs().dimensions;
  if (i->operand_count() != 2 || !i->shape().IsArray() || !IsStatic(i) || reduced.size() != 1 ||
      ReducerOf(i) != Opcode::Add || !pattern::IsAll(i->operand(1), 0))
    return nullptr;
  const std::optional<OneHot> hot = OneHotAlong(i->operand(0), reduced[0]);
  if (!hot) return nullptr;
  Ints mapped;
  for (int64_t d : *hot->place->attrs().dimensions) mapped.push_back(d < reduced[0] ? d : d - 1);
  const Expr place = hot->place->operand(0), zero = i->operand(1);
  Expr somewhere = place < static_cast<double>(i->operand(0)->shape().dim(reduced[0]));
  if (IsSigned(place.type())) somewhere = (place >= 0) & somewhere;
  const Expr value = hot->value ? Expr(hot->value->operand(0)) : zero.Like(1);
  const auto all = [&](Expr scalar) { return BroadcastTo(scalar, place.shape().dims()); };
  return BroadcastTo(SelectExpr(somewhere, all(value), all(zero)), i->shape().dims(), mapped).get();
}

constexpr const char* kOfParameter = "ROOT r = $T[6] reduce(p, s), dimensions={0}, to_apply=sum";

const Rule kRules[] = {
    {"reduce-repeated-scalar",
     {Opcode::Reduce},
     kReal,
     Numerics::Exact,
     "most { a = $T[] parameter(0)\n b = $T[] parameter(1)\n ROOT c = $T[] maximum(a, b) }\n"
     "ENTRY e { s = $T[] parameter(0)\n t = $T[] parameter(1)\n b = $T[4,6] broadcast(s), dimensions={}\n"
     " ROOT r = $T[] reduce(b, t), dimensions={0,1}, to_apply=most }",
     kOfParameter,
     OfRepeatedScalar,
     true},
    {"reduce-before-repetition",
     {Opcode::Reduce},
     kAllTypes,
     Numerics::Exact,
     "b = $T[6,5,4] broadcast(p), dimensions={2,0}\n ROOT r = $T[5,4] reduce(b, s), dimensions={0}, to_apply=sum",
     kOfParameter,
     BeforeRepetition,
     true},
    {"sum-of-repetition",
     {Opcode::Reduce},
     kInts | kFloats,
     Numerics::Order,
     "b = $T[4,2,6] broadcast(p), dimensions={0,2}\n ROOT r = $T[4,6] reduce(b, s), dimensions={1}, to_apply=sum",
     kOfParameter,
     SumOfRepetition,
     true},
    {"sum-of-one-hot",
     {Opcode::Reduce},
     kInts | kFloats,
     Numerics::ZeroSign,
     "ENTRY e { l = s32[4] parameter(0)\n w = s32[4,6] broadcast(l), dimensions={0}\n"
     " n = s32[4,6] iota(), iota_dimension=1\n h = pred[4,6] compare(n, w), direction=EQ\n"
     " x = $T[4,6] convert(h)\n c = $T[] constant(3)\n cs = $T[4,6] broadcast(c), dimensions={}\n"
     " y = $T[4,6] multiply(x, cs)\n z = $T[] constant(0)\n"
     " ROOT r = $T[4] reduce(y, z), dimensions={1}, to_apply=sum }",
     "ENTRY e { l = s32[4] parameter(0)\n w = s32[4,6] broadcast(l), dimensions={0}\n"
     " n = s32[4,6] iota(), iota_dimension=1\n h = pred[4,6] compare(n, w), direction=EQ\n"
     " x = $T[4,6] convert(h)\n z = $T[] constant(0)\n"
     " ROOT r = $T[6] reduce(x, z), dimensions={0}, to_apply=sum }",
     SumOfOneHot},
    {"place-of-repeated-constant",
     {Opcode::Reduce},
     kTuples,
     Numerics::Exact,
     "ENTRY e { c = f32[] constant(3)\n b = f32[4,6] broadcast(c), dimensions={}\n"
     " i = s32[4,6] iota(), iota_dimension=1\n n = f32[] constant(-inf)\n z = s32[] constant(0)\n"
     " t = (f32[4], s32[4]) reduce(b, i, n, z), dimensions={1}, to_apply=argmax\n"
     " ROOT r = s32[4] get-tuple-element(t), index=1 }",
     "ENTRY e { c = f32[] constant(3)\n b = f32[4,6] broadcast(c), dimensions={}\n"
     " i = s32[4,6] iota(), iota_dimension=0\n n = f32[] constant(-inf)\n z = s32[] constant(0)\n"
     " t = (f32[4], s32[4]) reduce(b, i, n, z), dimensions={1}, to_apply=argmax\n"
     " ROOT r = s32[4] get-tuple-element(t), index=1 }",
     PlaceOfRepeatedConstant,
     true},
    {"reduce-shared-with-place",
     {Opcode::Reduce},
     kFloats,
     Numerics::ZeroSign,
     "most { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] maximum(a, b) }\n"
     "ENTRY e { b = f32[4,6] parameter(0)\n"
     " i = s32[4,6] iota(), iota_dimension=1\n n = f32[] constant(-inf)\n z = s32[] constant(0)\n"
     " t = (f32[4], s32[4]) reduce(b, i, n, z), dimensions={1}, to_apply=argmax\n"
     " v = f32[4] get-tuple-element(t), index=0\n m = f32[4] reduce(b, n), dimensions={1}, to_apply=most\n"
     " ROOT r = f32[4] add(v, m) }",
     "most { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] maximum(a, b) }\n"
     "ENTRY e { b = f32[4,6] parameter(0)\n n = f32[] constant(-inf)\n"
     " ROOT m = f32[4] reduce(b, n), dimensions={1}, to_apply=most }",
     SharedWithPlace,
     true},
};

}  // namespace

absl::Span<const Rule> ReduceBroadcastRules() { return kRules; }

}  // namespace kiln
