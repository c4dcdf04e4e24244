// Reductions of one element, or of none.
#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/expand/scalar_body.h"
#include "compiler/passes/simplify/rules/reducer.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

std::vector<Instruction*> Instructions(const std::vector<Expr>& values) {
  std::vector<Instruction*> out;
  for (const Expr& v : values) out.push_back(v.get());
  return out;
}

Instruction* OfExtentsOfOne(Instruction* i) {
  if (i->operand_count() != 2) return nullptr;
  for (int64_t d : *i->attrs().dimensions)
    if (i->operand(0)->shape().dim(d) != 1) return nullptr;
  const std::optional<Opcode> op = ReducerOf(i);
  if (!op || !IsIdentityOf(*op, i->shape().type(), i->operand(1))) return nullptr;
  return ReshapeTo(i->operand(0), i->shape().dims()).get();
}

bool TakesTypesOf(const Computation* f, const std::vector<Expr>& arguments) {
  for (size_t k = 0; k < arguments.size(); ++k)
    if (f->parameter(static_cast<int64_t>(k))->shape().type() != arguments[k].type()) return false;
  return true;
}

// One element for each result, and any reducer: the reducer itself, once.
Instruction* ReducedOnce(Instruction* i) {
  const int64_t count = i->operand_count() / 2;
  const Shape& first = i->shape().IsTuple() ? i->shape().tuple()[0] : i->shape();
  if (!IsStatic(i) || first.ElementCount() != i->operand(0)->shape().ElementCount() || first.ElementCount() == 0 ||
      !IsScalarBody(*i->attrs().to_apply))
    return nullptr;
  if (i->Is(Opcode::ReduceWindow) && first.rank() != 0) return nullptr;
  std::vector<Expr> arguments;
  for (int64_t k = 0; k < count; ++k) arguments.push_back(BroadcastTo(i->operand(count + k), first.dims()));
  for (int64_t k = 0; k < count; ++k) arguments.push_back(ReshapeTo(i->operand(k), first.dims()));
  if (!TakesTypesOf(*i->attrs().to_apply, arguments)) return nullptr;
  const std::vector<Expr> values = ApplyScalarBody(*i->attrs().to_apply, arguments);
  if (i->shape().IsArray()) return values[0].get();
  return i->parent()->Add(Opcode::Tuple, i->shape(), Instructions(values));
}

// What a reduction or a window of nothing, or to nothing, gives: its initial values.
Instruction* OfNothing(Instruction* i) {
  const int64_t count = i->operand_count() / 2;
  const bool several = i->shape().IsTuple();
  const Shape& first = several ? i->shape().tuple()[0] : i->shape();
  if (!IsStatic(i)) return nullptr;
  if (i->operand(0)->shape().ElementCount() != 0 && first.ElementCount() != 0) return nullptr;
  std::vector<Expr> values;
  for (int64_t k = 0; k < count; ++k) values.push_back(BroadcastTo(i->operand(count + k), first.dims()));
  return several ? i->parent()->Add(Opcode::Tuple, i->shape(), Instructions(values)) : values[0].get();
}

// One value that is reduced as a tuple of one.
Instruction* OfTupleOfOne(Instruction* i) {
  Computation* f = *i->attrs().to_apply;
  if (!i->shape().IsTuple() || i->operand_count() != 2 || !f->root()->Is(Opcode::Tuple)) return nullptr;
  if (!IsStatic(i)) return nullptr;
  Computation* plain = i->parent()->module()->CloneComputation(f, "plain");
  plain->set_root(plain->root()->operand(0));
  Instruction* value = i->parent()->AddClone(i, i->shape().tuple()[0], i->operands());
  value->mutable_attrs().to_apply = plain;
  return i->parent()->Add(Opcode::Tuple, i->shape(), {value});
}

const Rule kRules[] = {
    {"reduce-of-nothing",
     {Opcode::Reduce, Opcode::ReduceWindow},
     kAllTypes | kTuples,
     Numerics::Exact,
     "n = $T[0,6] slice(p), slice={[0:0], [0:6]}\n ROOT r = $T[6] reduce(n, s), dimensions={0}, to_apply=sum",
     "ROOT r = $T[6] reduce(p, s), dimensions={0}, to_apply=sum",
     OfNothing,
     true},
    {"reduce-tuple-of-one",
     {Opcode::Reduce, Opcode::ReduceWindow},
     kTuples,
     Numerics::Exact,
     "one { a = s32[] parameter(0)\n b = s32[] parameter(1)\n c = s32[] add(a, b)\n ROOT t = (s32[]) tuple(c) }\n"
     "ENTRY e { p = s32[4,6] parameter(0)\n s = s32[] parameter(1)\n"
     " t = (s32[6]) reduce(p, s), dimensions={0}, to_apply=one\n ROOT r = s32[6] get-tuple-element(t), index=0 }",
     "ENTRY e { p = s32[4,6] parameter(0)\n s = s32[] parameter(1)\n"
     " ROOT r = s32[6] reduce(p, s), dimensions={0}, to_apply=sum }",
     OfTupleOfOne,
     true},
    // The sum of one element may turn -0 into 0: 0 + -0 is 0, and HLO leaves open whether the 0 is added.
    {"reduce-extent-one",
     {Opcode::Reduce},
     kAllTypes,
     Numerics::ZeroSign,
     "b = $T[4,1,6] reshape(p)\n z = $T[] constant(0)\n ROOT r = $T[4,6] reduce(b, z), dimensions={1}, to_apply=sum",
     "z = $T[] constant(0)\n ROOT r = $T[4] reduce(p, z), dimensions={1}, to_apply=sum",
     OfExtentsOfOne},
    {"reduce-once",
     {Opcode::Reduce, Opcode::ReduceWindow},
     kAllTypes | kTuples,
     Numerics::Exact,
     "b = $T[4,1,6] reshape(p)\n ROOT r = $T[4,6] reduce(b, s), dimensions={1}, to_apply=sum",
     "ROOT r = $T[4] reduce(p, s), dimensions={1}, to_apply=sum",
     ReducedOnce,
     true},
};

}  // namespace

absl::Span<const Rule> ReduceRules() { return kRules; }

}  // namespace kiln
