// Pads, concatenations, reversals and dynamic slices that do nothing, or less than they say.
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

Instruction* PadOfNothing(Instruction* i) {
  for (const PadDim& p : *i->attrs().padding)
    if (p != PadDim{}) return nullptr;
  return i->operand(0);
}

Instruction* WithoutEmptyOperands(Instruction* i) {
  const int64_t d = (*i->attrs().dimensions)[0];
  std::vector<Instruction*> kept;
  for (Instruction* o : i->operands())
    if (o->shape().dim(d) != 0) kept.push_back(o);
  if (kept.empty() || kept.size() == i->operands().size()) return nullptr;
  if (kept.size() == 1) return kept[0];
  Instruction* n = i->parent()->Add(Opcode::Concatenate, i->shape(), kept);
  n->mutable_attrs().dimensions = i->attrs().dimensions;
  return n;
}

Instruction* ReversesExtentsOfOne(Instruction* i) {
  for (int64_t d : *i->attrs().dimensions)
    if (i->operand(0)->shape().dim(d) != 1) return nullptr;
  return i->operand(0);
}

Instruction* OperandOfSameExtents(Instruction* i, int64_t operand) {
  Instruction* x = i->operand(operand);
  return i->shape().dims() == x->shape().dims() ? x : nullptr;
}

const Rule kRules[] = {
    {"pad-of-nothing",
     {Opcode::Pad},
     kAllTypes,
     Numerics::Exact,
     "ROOT r = $T[4,6] pad(p, s), padding=0_0x0_0",
     "ROOT r = $T[4,7] pad(p, s), padding=0_0x0_1",
     PadOfNothing},
    {"concatenate-one",
     {Opcode::Concatenate},
     kAllTypes,
     Numerics::Exact,
     "ROOT r = $T[4,6] concatenate(p), dimensions={0}",
     "ROOT r = $T[8,6] concatenate(p, q), dimensions={0}",
     [](Instruction* i) { return i->operand_count() == 1 ? i->operand(0) : nullptr; }},
    {"concatenate-empty",
     {Opcode::Concatenate},
     kAllTypes,
     Numerics::Exact,
     "n = $T[0,6] slice(p), slice={[0:0], [0:6]}\n ROOT r = $T[8,6] concatenate(p, n, q), dimensions={0}",
     "ROOT r = $T[8,6] concatenate(p, q), dimensions={0}",
     WithoutEmptyOperands},
    {"reverse-extent-one",
     {Opcode::Reverse},
     kAllTypes,
     Numerics::Exact,
     "b = $T[4,1,6] reshape(p)\n ROOT r = $T[4,1,6] reverse(b), dimensions={1}",
     "ROOT r = $T[4,6] reverse(p), dimensions={1}",
     ReversesExtentsOfOne},
    {"dynamic-slice-of-everything",
     {Opcode::DynamicSlice},
     kAllTypes,
     Numerics::Exact,
     "a = s32[] constant(3)\n ROOT r = $T[4,6] dynamic-slice(p, a, a), dynamic_slice_sizes={4,6}",
     "a = s32[] constant(3)\n ROOT r = $T[4,5] dynamic-slice(p, a, a), dynamic_slice_sizes={4,5}",
     [](Instruction* i) { return OperandOfSameExtents(i, 0); }},
    {"dynamic-update-of-everything",
     {Opcode::DynamicUpdateSlice},
     kAllTypes,
     Numerics::Exact,
     "a = s32[] constant(3)\n ROOT r = $T[4,6] dynamic-update-slice(p, q, a, a)",
     "a = s32[] constant(3)\n u = $T[4,5] slice(q), slice={[0:4], [0:5]}\n"
     " ROOT r = $T[4,6] dynamic-update-slice(p, u, a, a)",
     [](Instruction* i) { return OperandOfSameExtents(i, 1); }},
};

}  // namespace

absl::Span<const Rule> PieceRules() { return kRules; }

}  // namespace kiln
