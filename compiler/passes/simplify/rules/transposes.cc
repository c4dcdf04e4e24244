// Transposes of transposes and of broadcasts, and those that move nothing.
#include <algorithm>

#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/simplify/rules/permutation.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

Instruction* OfTranspose(Instruction* i) {
  Instruction* x = i->operand(0);
  if (!x->Is(Opcode::Transpose)) return nullptr;
  Ints composed;
  for (int64_t d : *i->attrs().dimensions) composed.push_back((*x->attrs().dimensions)[d]);
  return TransposeBy(x->operand(0), composed).get();
}

Instruction* MovesExtentsOfOne(Instruction* i) {
  Ints moved;
  for (int64_t d : *i->attrs().dimensions)
    if (i->operand(0)->shape().dim(d) != 1) moved.push_back(d);
  if (!std::is_sorted(moved.begin(), moved.end())) return nullptr;
  return ReshapeTo(i->operand(0), i->shape().dims()).get();
}

Instruction* OfBroadcast(Instruction* i) {
  Instruction* x = i->operand(0);
  if (!x->Is(Opcode::Broadcast) || !i->shape().HasDefaultLayout()) return nullptr;
  const Ints& p = *i->attrs().dimensions;
  Ints map;
  for (int64_t d : *x->attrs().dimensions) map.push_back(std::find(p.begin(), p.end(), d) - p.begin());
  // Else it would hide a transpose.
  if (!std::is_sorted(map.begin(), map.end())) return nullptr;
  return BroadcastTo(x->operand(0), i->shape().dims(), map).get();
}

const Rule kRules[] = {
    {"transpose-to-itself",
     {Opcode::Transpose},
     kAllTypes,
     Numerics::Exact,
     "ROOT r = $T[4,6] transpose(p), dimensions={0,1}",
     "ROOT r = $T[6,4] transpose(p), dimensions={1,0}",
     [](Instruction* i) { return IsIdentity(*i->attrs().dimensions) ? i->operand(0) : nullptr; }},
    {"transpose-of-transpose",
     {Opcode::Transpose},
     kAllTypes,
     Numerics::Exact,
     "b = $T[2,3,4] reshape(p)\n c = $T[4,2,3] transpose(b), dimensions={2,0,1}\n"
     " ROOT r = $T[3,4,2] transpose(c), dimensions={2,0,1}",
     "ROOT r = $T[6,4] transpose(p), dimensions={1,0}",
     OfTranspose},
    {"transpose-of-extent-one",
     {Opcode::Transpose},
     kAllTypes,
     Numerics::Exact,
     "b = $T[4,1,6] reshape(p)\n ROOT r = $T[1,4,6] transpose(b), dimensions={1,0,2}",
     "ROOT r = $T[6,4] transpose(p), dimensions={1,0}",
     MovesExtentsOfOne},
    {"transpose-of-broadcast",
     {Opcode::Transpose},
     kAllTypes,
     Numerics::Exact,
     "b = $T[2,4,6] broadcast(p), dimensions={1,2}\n ROOT r = $T[4,2,6] transpose(b), dimensions={1,0,2}",
     "b = $T[2,4,6] broadcast(p), dimensions={1,2}\n ROOT r = $T[6,2,4] transpose(b), dimensions={2,0,1}",
     OfBroadcast},
};

}  // namespace

absl::Span<const Rule> TransposeRules() { return kRules; }

}  // namespace kiln
