// Minima, maxima and clamps of one another.
#include "compiler/passes/simplify/rules/rule.h"
#include "compiler/passes/simplify/rules/terms.h"

namespace kiln {
namespace {

using namespace pattern;

// The least or the greatest integer of type `t`.
int64_t Extreme(PrimitiveType t, bool greatest) {
  const int bits = static_cast<int>(BitWidth(t));
  if (IsUnsigned(t)) return greatest ? static_cast<int64_t>(~uint64_t{0} >> (64 - bits)) : 0;
  const int64_t most = static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
  return greatest ? most : -most - 1;
}

// The operand beside a bound that every integer keeps.
Instruction* BesideBound(Instruction* i) {
  const int64_t bound = Extreme(i->shape().type(), i->Is(Opcode::Minimum));
  for (int64_t k = 0; k < 2; ++k)
    if (const Literal* l = SplatOf(i->operand(k)); l && l->Get(0).i == bound) return i->operand(1 - k);
  return nullptr;
}

// max(max(x, y), y), whichever way: one of them is enough. Which operand a NaN comes from stays.
Instruction* OfSameExtremum(Instruction* i) {
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *inner = i->operand(k), *one = i->operand(1 - k);
    if (inner->Is(i->opcode()) && (inner->operand(0) == one || inner->operand(1) == one)) return inner;
  }
  return nullptr;
}

// The value below K in min(x, K), and K in *bound.
Instruction* Bounded(Instruction* i, Opcode opcode, Instruction** bound) {
  if (!i->Is(opcode)) return nullptr;
  for (int64_t k = 0; k < 2; ++k)
    if (ScalarOf(i->operand(k)) && !IsKnown(i->operand(1 - k))) {
      *bound = i->operand(k);
      return i->operand(1 - k);
    }
  return nullptr;
}

bool IsBelow(Instruction* low, Instruction* high) {
  const Element a = ScalarOf(low)->literal().Get(0), b = ScalarOf(high)->literal().Get(0);
  const PrimitiveType t = low->shape().type();
  if (IsFloat(t)) return a.re < b.re;
  return IsUnsigned(t) ? static_cast<uint64_t>(a.i) < static_cast<uint64_t>(b.i) : a.i < b.i;
}

// max(L, min(x, H)) and min(H, max(x, L)) with L < H are a clamp.
Instruction* ClampOf(Instruction* i) {
  Instruction *outer, *inner;
  Instruction* within = Bounded(i, i->opcode(), &outer);
  if (!within) return nullptr;
  const Opcode opposite = i->Is(Opcode::Maximum) ? Opcode::Minimum : Opcode::Maximum;
  Instruction* x = Bounded(within, opposite, &inner);
  if (!x || x->shape().type() != i->shape().type()) return nullptr;
  Instruction *low = i->Is(Opcode::Maximum) ? outer : inner, *high = i->Is(Opcode::Maximum) ? inner : outer;
  if (!IsBelow(low, high)) return nullptr;
  return i->parent()->Add(Opcode::Clamp, Shape::Array(i->shape().type(), i->shape().dims()), {low, x, high});
}

// max(f(x), f(y)) is f(max(x, y)) for a function that grows.
Instruction* OfGrowingFunctions(Instruction* i) {
  Instruction *a = i->operand(0), *b = i->operand(1);
  const bool grows = a->Is(Opcode::Cbrt) || a->Is(Opcode::Erf) || a->Is(Opcode::Logistic) || a->Is(Opcode::Tanh);
  if (!grows || !b->Is(a->opcode()) || !HasOneUser(a) || !HasOneUser(b)) return nullptr;
  return Over(a, {Binary(Opcode::Maximum, a->operand(0), b->operand(0)).get()});
}

// The number of this device, where the bounds leave all of them alone.
Instruction* OfDevice(Instruction* i) {
  Instruction* id = i->operand(1);
  const Module* m = i->parent()->module();
  const Literal *low = SplatOf(i->operand(0)), *high = SplatOf(i->operand(2));
  const int64_t count = id->Is(Opcode::PartitionId) ? m->partition_count
                        : id->Is(Opcode::ReplicaId) ? m->replica_count
                                                    : 0;
  const bool all = count > 0 && low && high && low->Get(0).i == 0 && high->Get(0).i >= count - 1;
  return all ? id : nullptr;
}

#define BOUNDS(low, high)                                                                          \
  "c = $T[] constant(" low ")\n d = $T[4,6] broadcast(c), dimensions={}\n y = $T[] constant(" high \
  ")\n"                                                                                            \
  " e = $T[4,6] broadcast(y), dimensions={}\n "

const Rule kRules[] = {
    {"extremum-of-bound",
     {Opcode::Maximum, Opcode::Minimum},
     kInts,
     Numerics::Exact,
     "z = u16[] constant(0)\n b = u16[4,6] broadcast(z), dimensions={}\n a = u16[4,6] convert(p)\n"
     " ROOT r = u16[4,6] maximum(a, b)",
     "z = u16[] constant(0)\n b = u16[4,6] broadcast(z), dimensions={}\n a = u16[4,6] convert(p)\n"
     " ROOT r = u16[4,6] minimum(a, b)",
     BesideBound},
    {"extremum-of-extremum",
     {Opcode::Maximum, Opcode::Minimum},
     kReal,
     Numerics::Exact,
     "a = $T[4,6] maximum(p, q)\n ROOT r = $T[4,6] maximum(q, a)",
     "a = $T[4,6] maximum(p, q)\n ROOT r = $T[4,6] minimum(q, a)",
     OfSameExtremum},
    {"clamp-of-extrema",
     {Opcode::Maximum, Opcode::Minimum},
     kInts | kFloats,
     Numerics::Exact,
     BOUNDS("1", "5") "a = $T[4,6] minimum(p, e)\n ROOT r = $T[4,6] maximum(a, d)",
     BOUNDS("5", "1") "a = $T[4,6] minimum(p, e)\n ROOT r = $T[4,6] maximum(a, d)",
     ClampOf},
    {"maximum-of-clamp",
     {Opcode::Maximum},
     kInts | kFloats,
     Numerics::Exact,
     BOUNDS("1", "5") "a = $T[4,6] clamp(d, p, e)\n ROOT r = $T[4,6] maximum(a, d)",
     BOUNDS("1", "5") "a = $T[4,6] clamp(d, p, e)\n ROOT r = $T[4,6] maximum(a, e)",
     [](Instruction* i) -> Instruction* {
       for (int64_t k = 0; k < 2; ++k) {
         Instruction *clamp = i->operand(k), *low = i->operand(1 - k);
         const bool ordered = clamp->Is(Opcode::Clamp) && clamp->operand(0) == low && ScalarOf(low) &&
                              ScalarOf(clamp->operand(2)) && IsBelow(low, clamp->operand(2));
         if (ordered) return clamp;
       }
       return nullptr;
     }},
    {"clamp-of-clamp",
     {Opcode::Clamp},
     kInts | kFloats,
     Numerics::Exact,
     "a = $T[4,6] clamp(q, p, q)\n ROOT r = $T[4,6] clamp(q, a, q)",
     "a = $T[4,6] clamp(q, p, q)\n ROOT r = $T[4,6] clamp(p, a, q)",
     [](Instruction* i) {
       Instruction* inner = i->operand(1);
       const bool same = inner->Is(Opcode::Clamp) && inner->operand(0) == i->operand(0) &&
                         inner->operand(2) == i->operand(2) && inner->shape().dims() == i->shape().dims();
       return same ? inner : nullptr;
     }},
    {"clamp-of-device",
     {Opcode::Clamp},
     kInts,
     Numerics::Exact,
     "l = u32[] constant(0)\n h = u32[] constant(7)\n a = u32[] partition-id()\n ROOT r = u32[] clamp(l, a, h)",
     "l = u32[] constant(1)\n h = u32[] constant(7)\n a = u32[] partition-id()\n ROOT r = u32[] clamp(l, a, h)",
     OfDevice},
    {"maximum-of-growing-functions",
     {Opcode::Maximum},
     kFloats,
     Numerics::Rounding,
     "a = $T[4,6] tanh(p)\n b = $T[4,6] tanh(q)\n ROOT r = $T[4,6] maximum(a, b)",
     "a = $T[4,6] sine(p)\n b = $T[4,6] sine(q)\n ROOT r = $T[4,6] maximum(a, b)",
     OfGrowingFunctions},
};

}  // namespace

absl::Span<const Rule> ExtremumRules() { return kRules; }

}  // namespace kiln
