// all-reduce of what every device has alike: a sum is a product with the number of devices; a largest, smallest, and or
// or is the value itself. Groups of one device reduce nothing.
#include "compiler/hlo/replica_groups.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/shelf/collectives/replication.h"

namespace kiln {
namespace {

// Members of each group; 0: they differ, or the groups leave devices out.
int64_t GroupSize(const Module& m, const Instruction* i) {
  auto groups = DeviceGroups(*i, m.replica_count, m.partition_count);
  if (!groups.ok() || groups->empty()) return 0;
  int64_t all = 0;
  for (const Ints& g : *groups) {
    if (g.size() != (*groups)[0].size()) return 0;
    all += static_cast<int64_t>(g.size());
  }
  return all == m.replica_count * m.partition_count ? static_cast<int64_t>((*groups)[0].size()) : 0;
}

}  // namespace

absl::StatusOr<bool> AllReduceSimplifier(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [&](Instruction* i) {
        if (!i->Is(Opcode::AllReduce) || !i->shape().IsArray()) return false;
        const int64_t n = GroupSize(m, i);
        if (n == 1) return true;
        if (n == 0 || !SameOnEveryDevice(i->operand(0))) return false;
        switch ((*i->attrs().to_apply)->root()->opcode()) {
          case Opcode::Add:
          case Opcode::Maximum:
          case Opcode::Minimum:
          case Opcode::And:
          case Opcode::Or:
            return true;
          default:
            return false;
        }
      },
      [&](Instruction* i) -> absl::StatusOr<Instruction*> {
        const int64_t n = GroupSize(m, i);
        if (n == 1 || !(*i->attrs().to_apply)->root()->Is(Opcode::Add)) return i->operand(0);
        return (Expr(i->operand(0)) * static_cast<double>(n)).get();
      });
}

}  // namespace kiln
