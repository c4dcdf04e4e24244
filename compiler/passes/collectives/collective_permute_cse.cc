// A part of an array that the same permutation moves anyway, as a whole or as a larger part, is that part of the
// result.
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/annotations.h"
#include "compiler/passes/collectives/groups.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

// What a permutation moves: elements [from, to) of `array` along each dimension.
struct Part {
  const Instruction* array;
  Ints from, to;
};

Part Moved(const Instruction* permute) {
  const Instruction* x = permute->operand(0);
  Part p{x, Ints(static_cast<size_t>(x->shape().rank()), 0), x->shape().dims()};
  if (!x->Is(Opcode::Slice)) return p;
  for (size_t d = 0; d < p.from.size(); ++d) {
    const SliceDim& s = (*x->attrs().slice)[d];
    if (s.stride != 1) return p;
  }
  for (size_t d = 0; d < p.from.size(); ++d) {
    p.from[d] = (*x->attrs().slice)[d].start;
    p.to[d] = (*x->attrs().slice)[d].limit;
  }
  p.array = x->operand(0);
  return p;
}

bool Plain(const Instruction* i) {
  return i->Is(Opcode::CollectivePermute) && i->operand_count() == 1 && i->shape().IsArray() &&
         !i->shape().HasDynamic() && i->control_predecessors().empty() && i->control_successors().empty() &&
         i->attrs().source_target_pairs;
}

// Whether the result of `large` holds that of `small`. Of two equal ones the earlier holds the later.
bool Holds(const Instruction* large, const Instruction* small) {
  if (large == small || !Plain(large) || !NumberedAlike(large, small) || !MayBecomeOne(large, small) ||
      large->attrs().source_target_pairs != small->attrs().source_target_pairs)
    return false;
  const Part a = Moved(large), b = Moved(small);
  if (a.array != b.array || (a.from == b.from && a.to == b.to && large->id() > small->id())) return false;
  for (size_t d = 0; d < a.from.size(); ++d)
    if (b.from[d] < a.from[d] || b.to[d] > a.to[d]) return false;
  return true;
}

Instruction* Holder(const Instruction* i) {
  if (!Plain(i)) return nullptr;
  for (const auto& other : i->parent()->instructions())
    if (Holds(other.get(), i)) return other.get();
  return nullptr;
}

}  // namespace

// The larger part depends on nothing but the array, which the smaller one needs too: it can always come first.
absl::StatusOr<bool> CollectivePermuteCse(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](const Instruction* i) { return Holder(i) != nullptr; },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        Instruction* large = Holder(i);
        Part a = Moved(large), b = Moved(i);
        if (a.from == b.from && a.to == b.to) return large;
        for (size_t d = 0; d < a.from.size(); ++d) {
          b.from[d] -= a.from[d];
          b.to[d] -= a.from[d];
        }
        return SliceOf(large, b.from, b.to).get();
      });
}

}  // namespace kiln
