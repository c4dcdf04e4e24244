// Products that share an operand become one kernel with several results: queries, keys and values of arguments, gate
// and up projections, the gradients of several weights by one input.
//
// Nothing is joined in memory: each product has units of its own in one parallel loop, and those of one shape pack the
// left operand that they share once (fusion_product.cc). What is made of a product stays with it. Behind all other
// fusions, as cpu-product-epilogue-fusion is.
#include <algorithm>
#include <cstdlib>
#include <map>

#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/gpu/kernel_depths.h"

namespace kiln {
namespace {

// Results that one kernel has: all live from its start on.
constexpr size_t kMostProducts = 4;
// Kernels between those that read the results, or make the operands: what is computed again to save memory is not
// computed with what it saves.
constexpr int64_t kFarApart = 12;
// Multiply-adds below which a call costs as little as finding one's units does.
constexpr int64_t kLeastWork = 1 << 15;

// The dot that `i` is, or that it is a fusion around; null if it may not join.
const Instruction* DotOf(const Instruction* i) {
  if (i->users().empty() || !i->control_predecessors().empty() || !i->control_successors().empty() ||
      !i->shape().IsArray() || !i->shape().HasDefaultLayout() || i->shape().HasDynamic())
    return nullptr;
  for (const Instruction* o : i->operands())
    if (IsUpdatedInPlace(WithoutBitcasts(o))) return nullptr;
  const Instruction* dot = i->Is(Opcode::Dot) ? i : nullptr;
  if (i->Is(Opcode::Fusion) && i->attrs().fusion_kind == FusionKind::kOutput)
    for (const auto& inner : (*i->attrs().calls)->instructions())
      if (inner->Is(Opcode::Dot)) dot = inner.get();
  if (!dot || dot->attrs().sparsity || dot->shape().rank() != 3 || !dot->attrs().lhs_contracting_dims ||
      dot->attrs().lhs_contracting_dims->size() != 1 || dot->shape().ElementCount() == 0)
    return nullptr;
  const int64_t k = dot->operand(0)->shape().dim((*dot->attrs().lhs_contracting_dims)[0]);
  return dot->shape().ElementCount() * k < kLeastWork ? nullptr : dot;
}

// The array outside of `i` that its dot's operand `k` is.
const Instruction* OperandOf(const Instruction* i, const Instruction* dot, int64_t k) {
  const Instruction* o = WithoutBitcasts(dot->operand(k));
  if (i != dot) o = WithoutBitcasts(i->operand(*o->attrs().parameter_number));
  return o;
}

// Products at one depth that read one array on one side and contract its same dimension; those of constants have panels
// to come, or are one already. `fewest`: of a group.
bool MergeRound(Computation* c, PassContext& ctx, size_t fewest, bool from_arguments) {
  const KernelDepths depths(c);
  using Types = std::vector<PrimitiveType>;
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t, Types>, std::vector<Instruction*>> groups;
  for (Instruction* i : c->PostOrder()) {
    const Instruction* dot = DotOf(i);
    if (!dot) continue;
    const Instruction* sides[] = {OperandOf(i, dot, 0), OperandOf(i, dot, 1)};
    if (sides[0]->Is(Opcode::Constant) || sides[1]->Is(Opcode::Constant)) continue;
    const Types types = {sides[0]->shape().type(), sides[1]->shape().type(), dot->shape().type()};
    const int64_t depth = from_arguments ? depths.before.at(i) : depths.after.at(i);
    for (int64_t side = 0; side < 2; ++side) {
      const Ints& contracted = side ? *dot->attrs().rhs_contracting_dims : *dot->attrs().lhs_contracting_dims;
      groups[{depth, side, contracted[0], sides[side]->id(), types}].push_back(i);
    }
  }
  bool changed = false;
  absl::flat_hash_set<const Instruction*> merged;
  for (const auto& [key, members] : groups) {
    std::vector<std::vector<Instruction*>> near;
    const auto other = [&](const Instruction* i) { return from_arguments ? depths.after.at(i) : depths.before.at(i); };
    for (Instruction* i : members) {
      if (merged.contains(i)) continue;
      const auto group = std::find_if(near.begin(), near.end(), [&](const std::vector<Instruction*>& g) {
        return g.size() < kMostProducts && std::abs(other(g[0]) - other(i)) <= kFarApart;
      });
      if (group == near.end())
        near.push_back({i});
      else
        group->push_back(i);
    }
    for (const std::vector<Instruction*>& group : near) {
      if (group.size() < fewest || !ctx.Take()) continue;
      merged.insert(group.begin(), group.end());
      Instruction* all = group[0];
      for (size_t k = 1; k < group.size(); ++k) all = FuseSiblings(all, group[k]);
      all->mutable_attrs().fusion_kind = FusionKind::kOutput;
      changed = true;
    }
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> CpuProductGrouping(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m))
    for (const size_t fewest : {3, 2})  // three gradients are no pair and one, whichever depth they have in common
      for (const bool from_arguments : {true, false}) changed = MergeRound(c, ctx, fewest, from_arguments) || changed;
  return changed;
}

}  // namespace kiln
