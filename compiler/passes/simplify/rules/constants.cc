// Constants and iotas that a formula gives.
#include "compiler/passes/simplify/rules/rule.h"
#include "compiler/passes/simplify/rules/terms.h"

namespace kiln {
namespace {

// One value everywhere: then it is a broadcast. Most arrays that are not differ early, so that looking costs little.
Instruction* SplatAsBroadcast(Instruction* i) {
  const Literal& l = i->literal();
  if (l.size() <= 1 || !l.IsSplat()) return nullptr;
  Literal one(Shape::Scalar(l.type()));
  one.Set(0, l.Get(0));
  return Spread(i->parent()->AddConstant(std::move(one)), i->shape().dims());
}

// The value of an element that counts; fractions and parts of complex numbers are no counts.
std::optional<int64_t> Count(const Literal& l, int64_t k) {
  const Element e = l.Get(k);
  if (!IsFloat(l.type())) return e.i;
  const bool whole = std::fabs(e.re) < 1e15 && e.re == std::floor(e.re) && !(e.re == 0 && std::signbit(e.re));
  return whole ? std::optional(static_cast<int64_t>(e.re)) : std::nullopt;
}

// 0, 1, 2, ... and, of integers, 0, s, 2s, ...
Instruction* SequenceAsIota(Instruction* i) {
  const Literal& l = i->literal();
  const PrimitiveType t = l.type();
  if (i->shape().rank() != 1 || l.size() <= 1 || (!IsFloat(t) && !IsIntegral(t)) || Count(l, 0) != 0) return nullptr;
  const int64_t step = Count(l, 1).value_or(0);
  if (step == 0 || (step != 1 && !IsIntegral(t)) || std::abs(step) > (int64_t{1} << 31)) return nullptr;
  for (int64_t k = 2; k < l.size(); ++k)
    if (Count(l, k) != k * step) return nullptr;
  const Expr iota = IotaOf(i->parent(), t, i->shape().dims(), 0);
  return step == 1 ? iota.get() : (iota * static_cast<double>(step)).get();
}

// A tuple of constants, which other rules see.
Instruction* TupleOfConstants(Instruction* i) {
  if (!i->shape().IsTuple()) return nullptr;
  std::vector<Instruction*> parts;
  for (const Literal& l : i->literal().elements()) parts.push_back(i->parent()->AddConstant(l));
  return i->parent()->Add(Opcode::Tuple, i->shape(), parts);
}

const Rule kRules[] = {
    {"constant-tuple",
     {Opcode::Constant},
     kTuples,
     Numerics::Exact,
     "ROOT r = ($T[2], $T[]) constant(({1, 2}, 3))",
     "ROOT r = $T[2] constant({1, 2})",
     TupleOfConstants},
    {"constant-splat",
     {Opcode::Constant},
     kAllTypes,
     Numerics::Exact,
     "ROOT r = $T[2,2] constant({{1, 1}, {1, 1}})",
     "ROOT r = $T[2,2] constant({{1, 1}, {1, 0}})",
     SplatAsBroadcast},
    {"constant-sequence",
     {Opcode::Constant},
     kInts | kFloats,
     Numerics::Exact,
     "ROOT r = $T[4] constant({0, 1, 2, 3})",
     "ROOT r = $T[4] constant({0, 1, 2, 4})",
     SequenceAsIota},
    {"iota-of-extent-one",
     {Opcode::Iota},
     kInts | kFloats | kComplex,
     Numerics::Exact,
     "ROOT r = $T[4,1] iota(), iota_dimension=1",
     "ROOT r = $T[4,1] iota(), iota_dimension=0",
     [](Instruction* i) {
       const bool one = i->shape().rank() > 0 && i->shape().dim(*i->attrs().iota_dimension) <= 1;
       return one ? Filled(i, 0) : nullptr;
     }},
};

}  // namespace

absl::Span<const Rule> ConstantRules() { return kRules; }

}  // namespace kiln
