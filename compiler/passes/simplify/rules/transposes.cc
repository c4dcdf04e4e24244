// Transposes of transposes, broadcasts, what is made of these, and concatenations, and those that move nothing.
#include <algorithm>
#include <numeric>

#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/simplify/dot_form.h"
#include "compiler/passes/simplify/rules/permutation.h"
#include "compiler/passes/simplify/rules/rule.h"
#include "compiler/passes/simplify/rules/terms.h"

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
  if (!Ascend(i->operand(0)->shape(), {*i->attrs().dimensions})) return nullptr;
  return ReshapeTo(i->operand(0), i->shape().dims()).get();
}

// Lines that are stacked and then turned lie side by side from the start.
Instruction* OfLines(Instruction* i) {
  constexpr int64_t kMost = 8;  // that loops put side by side
  const Instruction* x = i->operand(0);
  if (!x->Is(Opcode::Concatenate) || !HasOneUser(x) || HasOwnLayout(i) || x->operand_count() > kMost) return nullptr;
  const Ints& p = *i->attrs().dimensions;
  std::vector<Expr> lines;
  for (Instruction* o : x->operands()) {
    if (!Ascend(o->shape(), {p})) return nullptr;
    Ints dims;
    for (int64_t d : p) dims.push_back(o->shape().dim(d));
    lines.push_back(ReshapeTo(o, dims));
  }
  return ConcatOf(lines, std::find(p.begin(), p.end(), (*x->attrs().dimensions)[0]) - p.begin()).get();
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

// Whether `x` is made of broadcasts of arrays that have at most a fourth of its elements each, element by element, for
// one user alone.
bool IsMadeOfBroadcasts(const Instruction* x, int depth = 0) {
  constexpr int kMostDepth = 6;
  constexpr int64_t kRepeats = 4;
  if (x->Is(Opcode::Broadcast)) return x->operand(0)->shape().ElementCount() * kRepeats <= x->shape().ElementCount();
  return x->IsElementwise() && x->operand_count() > 0 && HasOneUser(x) && !HasOwnLayout(x) && depth < kMostDepth &&
         std::all_of(x->operands().begin(), x->operands().end(),
                     [&](const Instruction* o) { return IsMadeOfBroadcasts(o, depth + 1); });
}

// Such an `x`, transposed by `p`: what is repeated is transposed in its place.
Instruction* Transposed(Instruction* x, const Ints& p) {
  Ints dims;
  for (int64_t d : p) dims.push_back(x->shape().dim(d));
  if (!x->Is(Opcode::Broadcast)) {
    std::vector<Instruction*> operands;
    for (Instruction* o : x->operands()) operands.push_back(Transposed(o, p));
    return x->parent()->AddClone(x, Shape::Array(x->shape().type(), dims), operands);
  }
  // Dimension k of what is repeated becomes dimension map[k].
  Ints map, order(x->operand(0)->shape().rank());
  for (int64_t d : *x->attrs().dimensions) map.push_back(std::find(p.begin(), p.end(), d) - p.begin());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return map[a] < map[b]; });
  std::sort(map.begin(), map.end());
  const Expr repeated = IsIdentity(order) ? Expr(x->operand(0)) : TransposeBy(x->operand(0), order);
  return BroadcastTo(repeated, dims, map).get();
}

Instruction* OfBroadcasts(Instruction* i) {
  const Instruction* x = i->operand(0);
  if (x->Is(Opcode::Broadcast) || HasOwnLayout(i) || !IsMadeOfBroadcasts(x)) return nullptr;
  return Transposed(i->operand(0), *i->attrs().dimensions);
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
    {"transpose-of-broadcasts",
     {Opcode::Transpose},
     kAllTypes,
     Numerics::Exact,
     "a = $T[4,6,4] broadcast(p), dimensions={2,1}\n b = $T[4,6,4] broadcast(q), dimensions={0,1}\n"
     " c = pred[4,6,4] compare(a, b), direction=EQ\n d = $T[4,6,4] select(c, a, b)\n"
     " ROOT r = $T[6,4,4] transpose(d), dimensions={1,2,0}",
     "a = $T[2,4,6] broadcast(p), dimensions={1,2}\n b = $T[2,4,6] broadcast(q), dimensions={1,2}\n"
     " c = pred[2,4,6] compare(a, b), direction=EQ\n d = $T[2,4,6] select(c, a, b)\n"
     " ROOT r = $T[6,4,2] transpose(d), dimensions={2,1,0}",
     OfBroadcasts},
    {"transpose-of-stacked-lines",
     {Opcode::Transpose},
     kAllTypes,
     Numerics::Exact,
     "a = $T[1,24] reshape(p)\n b = $T[1,24] reshape(q)\n c = $T[2,24] concatenate(a, b), dimensions={0}\n"
     " ROOT r = $T[24,2] transpose(c), dimensions={1,0}",
     "c = $T[8,6] concatenate(p, q), dimensions={0}\n ROOT r = $T[6,8] transpose(c), dimensions={1,0}",
     OfLines,
     true},
};

}  // namespace

absl::Span<const Rule> TransposeRules() { return kRules; }

}  // namespace kiln
