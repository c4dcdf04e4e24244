// Collectives as calls of NCCL (compiler/hlo/nccl_call.h): those that have a call take its form, and the rest become
// gathers, which have one, and ordinary operations. Minima and maxima of floats are among the rest, since NCCL's pass
// over NaN, unless the program says that there is none (numerics { algebra: FAST }).
#include "compiler/hlo/nccl_call.h"
#include "compiler/hlo/replica_groups.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/collective_form.h"
#include "compiler/passes/expand/collective_gathers.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

// Groups of one size that every device is in: rows go from device to device, where the sizes say that there are any.
absl::StatusOr<bool> IsRaggedExchange(const Instruction& i, const Module& m) {
  if (!i.Is(Opcode::RaggedAllToAll)) return false;
  ASSIGN_OR_RETURN(const std::vector<Ints> groups, DeviceGroups(i, m.replica_count, m.partition_count));
  size_t all = 0;
  for (const Ints& g : groups) all += g.size() == groups[0].size() ? g.size() : 0;
  return static_cast<int64_t>(all) == m.replica_count * m.partition_count;
}

absl::StatusOr<Instruction*> Rewritten(Instruction* i, const Module& m, bool nan_may_occur) {
  if (i->attrs().to_apply) {
    const auto reduction = NcclReductionOf(**i->attrs().to_apply);
    if (!reduction || (reduction->passes_nan_by && nan_may_occur)) return AsGather(i, m);
  }
  const auto ragged = IsRaggedExchange(*i, m);
  if (!ragged.ok()) return ErrorAt(i, ragged.status().message());
  if (*ragged) return nullptr;
  const auto call = NcclCallOf(*i, m.replica_count, m.partition_count);
  if (!call.ok()) return ErrorAt(i, call.status().message());
  const bool one = *call && std::all_of((*call)->groups.begin(), (*call)->groups.end(),
                                        [](const Ints& group) { return group.size() < 2; });
  if (*call && !one) return nullptr;
  return AsExchange(i, m);
}

}  // namespace

absl::StatusOr<bool> CollectiveNcclCanonicalizer(Module& m, PassContext& ctx) {
  const bool nan_may_occur = ctx.algebra != Algebra::kFast;
  return ExpandEach(
      m, ctx, [&](Instruction* i) { return IsSynchronousCollective(i) && !IsPlainGather(i, m); },
      [&](Instruction* i) { return Rewritten(i, m, nan_may_occur); });
}

}  // namespace kiln
