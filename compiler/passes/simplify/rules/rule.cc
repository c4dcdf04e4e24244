#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {

bool Admits(Algebra algebra, Numerics numerics) {
  switch (algebra) {
    case Algebra::kExact:
      return numerics == Numerics::Exact;
    case Algebra::kXla:
      return numerics != Numerics::Finite;
    case Algebra::kFast:
      return true;
  }
  return false;
}

unsigned TypeSetOf(const Shape& shape) {
  if (!shape.IsArray()) return kTuples;
  const PrimitiveType t = shape.type();
  return t == PrimitiveType::Pred ? kPred : IsFloat(t) ? kFloats : IsComplex(t) ? kComplex : kInts;
}

const std::vector<const Rule*>& AllRules() {
  static const auto* all = [] {
    auto* out = new std::vector<const Rule*>;
    for (const auto family :
         {ArithmeticRules,  LogicRules,        SumRules,       ProductRules,       QuotientRules,
          PowerRules,       ComparisonRules,   ExtremumRules,  SelectRules,        ConversionRules,
          ConstantRules,    SinkingRules,      BroadcastRules, ReshapeRules,       TransposeRules,
          SliceRules,       PieceRules,        PadRules,       PadSumRules,        DynamicSliceRules,
          DotRules,         DotOperandRules,   ReduceRules,    ReduceOperandRules, ReduceBroadcastRules,
          ReduceDotRules,   ReduceWindowRules, GatherRules,    ScatterRules,       MapRules,
          ConvolutionRules, CollectiveRules,   SortRules,      BarrierRules,       OrderRules})
      for (const Rule& r : family()) out->push_back(&r);
    return out;
  }();
  return *all;
}

const std::vector<const Rule*>& RulesFor(Opcode opcode) {
  static const auto* by_opcode = [] {
    auto* out = new std::vector<std::vector<const Rule*>>(static_cast<size_t>(OpcodeCount()));
    for (const Rule* r : AllRules())
      for (Opcode op : r->opcodes) (*out)[static_cast<size_t>(op)].push_back(r);
    return out;
  }();
  return (*by_opcode)[static_cast<size_t>(opcode)];
}

}  // namespace kiln
