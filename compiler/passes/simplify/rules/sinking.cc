// Elementwise operations on broadcasts compute before the values are repeated.
#include "compiler/passes/simplify/rules/rule.h"
#include "compiler/passes/simplify/rules/terms.h"

namespace kiln {
namespace {

std::vector<Opcode> ElementwiseOpcodes() {
  std::vector<Opcode> out;
  for (int k = 0; k < OpcodeCount(); ++k) {
    const OpcodeInfo& info = InfoOf(static_cast<Opcode>(k));
    if ((info.traits & Elementwise) && !(info.traits & SideEffect) && info.opcode != Opcode::Copy && info.arity > 0)
      out.push_back(info.opcode);
  }
  return out;
}

// The broadcast among the operands that repeats the most values; null if an operand is none, or repeats others.
Instruction* WidestBroadcast(const Instruction* i) {
  Instruction* widest = nullptr;
  for (Instruction* o : i->operands()) {
    if (!o->Is(Opcode::Broadcast) || o->shape().dims() != i->shape().dims()) return nullptr;
    if (o->operand(0)->shape().IsScalar() && widest) continue;
    if (widest && !widest->operand(0)->shape().IsScalar() &&
        (widest->operand(0)->shape().dims() != o->operand(0)->shape().dims() ||
         widest->attrs().dimensions != o->attrs().dimensions))
      return nullptr;
    widest = o;
  }
  return widest;
}

Instruction* Sink(Instruction* i) {
  const Instruction* widest = WidestBroadcast(i);
  if (!widest || widest->operand(0)->shape().ElementCount() >= i->shape().ElementCount()) return nullptr;
  const Ints& dims = widest->operand(0)->shape().dims();
  std::vector<Instruction*> small;
  for (Instruction* o : i->operands()) {
    Instruction* x = o->operand(0);
    small.push_back(x->shape().dims() == dims ? x : Spread(x, dims));
  }
  Instruction* f = i->parent()->AddClone(i, Shape::Array(i->shape().type(), dims), std::move(small));
  f->mutable_attrs().sharding.reset();
  return BroadcastTo(f, i->shape().dims(), *widest->attrs().dimensions).get();
}

}  // namespace

absl::Span<const Rule> SinkingRules() {
  static const auto* rules = new std::vector<Rule>{
      {"sink-broadcast", ElementwiseOpcodes(), kAllTypes, Numerics::Exact,
       "x = $T[1,6] slice(p), slice={[0:1], [0:6]}\n v = $T[6] reshape(x)\n a = $T[4,6] broadcast(v), dimensions={1}\n"
       " b = $T[4,6] broadcast(s), dimensions={}\n ROOT r = $T[4,6] multiply(a, b)",
       "b = $T[4,6] broadcast(s), dimensions={}\n ROOT r = $T[4,6] multiply(p, b)", Sink}};
  return *rules;
}

}  // namespace kiln
