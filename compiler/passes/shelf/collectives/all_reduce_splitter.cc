// A reduction over a large group becomes two, over the groups of a smaller reduction in the same computation and over
// what is left: the first can then travel with the smaller one, or become a reduce-scatter.
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/groups.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/simplify/rules/reducer.h"

namespace kiln {
namespace {

// Groups of `small` that cut every group of `large` into equal parts; empty if they do not.
bool Cuts(const Groups& small, const Groups& large) {
  if (small.empty() || large.empty() || small.size() <= large.size()) return false;
  for (const Ints& s : small) {
    if (s.size() != small[0].size() || s.size() < 2) return false;
    bool inside = false;
    for (const Ints& l : large) {
      const bool all =
          std::all_of(s.begin(), s.end(), [&](int64_t x) { return std::find(l.begin(), l.end(), x) != l.end(); });
      inside = inside || all;
    }
    if (!inside) return false;
  }
  return true;
}

// One member of each small group: the k-th of all of them that lie in one large group.
Groups Across(const Groups& small, const Groups& large) {
  Groups out;
  for (const Ints& l : large)
    for (size_t k = 0; k < small[0].size(); ++k) {
      Ints group;
      for (const Ints& s : small)
        if (std::find(l.begin(), l.end(), s[0]) != l.end()) group.push_back(s[k]);
      out.push_back(group);
    }
  return out;
}

const Instruction* SmallerBeside(const Instruction* i) {
  if (!PlainAllReduce(i) || TakesAllPartitions(i) || ReducerOf(i) != Opcode::Add) return nullptr;
  for (const auto& other : i->parent()->instructions())
    if (other.get() != i && PlainAllReduce(other.get()) && NumberedAlike(other.get(), i) &&
        ReducerOf(other.get()) == Opcode::Add && Cuts(WrittenGroups(other.get()), WrittenGroups(i)) &&
        other->operand(0) != i && i->operand(0) != other.get())
      return other.get();
  return nullptr;
}

}  // namespace

absl::StatusOr<bool> AllReduceSplitter(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](const Instruction* i) { return SmallerBeside(i) != nullptr; },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        const Groups small = WrittenGroups(SmallerBeside(i)), across = Across(small, WrittenGroups(i));
        Instruction* first = i->parent()->AddClone(i, i->shape(), {i->operand(0)});
        first->mutable_attrs().replica_groups = GroupsText(small);
        Instruction* second = i->parent()->AddClone(i, i->shape(), {first});
        second->mutable_attrs().replica_groups = GroupsText(across);
        return second;
      });
}

}  // namespace kiln
