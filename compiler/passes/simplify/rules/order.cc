// One order of operands, so that equal computations look equal.
#include "compiler/passes/simplify/rules/pattern.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

Instruction* ConstantOnTheRight(Instruction* i) {
  Instruction *a = i->operand(0), *b = i->operand(1);
  const auto known = [](const Instruction* x) { return x->Is(Opcode::Constant) || pattern::SplatOf(x); };
  if (a->shape().type() != b->shape().type() || !known(a) || known(b)) return nullptr;
  return i->parent()->AddClone(i, i->shape(), {b, a});
}

std::vector<Opcode> CommutativeOpcodes() {
  std::vector<Opcode> out;
  for (int k = 0; k < OpcodeCount(); ++k) {
    const OpcodeInfo& info = InfoOf(static_cast<Opcode>(k));
    if ((info.traits & Commutative) && info.arity == 2) out.push_back(info.opcode);
  }
  return out;
}

}  // namespace

absl::Span<const Rule> OrderRules() {
  static const auto* rules = new std::vector<Rule>{
      {"constant-on-the-right", CommutativeOpcodes(), kAllTypes, Numerics::Exact,
       "z = $T[] constant(1)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] add(b, p)",
       "z = $T[] constant(1)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,6] add(p, b)",
       ConstantOnTheRight}};
  return *rules;
}

}  // namespace kiln
