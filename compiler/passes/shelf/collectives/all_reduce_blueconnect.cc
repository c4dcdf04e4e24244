// A reduction over many devices in three steps that use links of different speed at once: each host's devices scatter a
// reduction among themselves, equal places of all hosts reduce their shares, and the hosts gather them.
//
// For groups of more than 8 members in multiples of 8, whose array divides by 8; devices of a host are numbered
// together.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/groups.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

constexpr int64_t kPerHost = 8;

bool Wanted(const Instruction* i) {
  if (!PlainAllReduce(i) || TakesAllPartitions(i)) return false;
  if (i->shape().ElementCount() % kPerHost != 0 || i->shape().ElementCount() == 0) return false;
  const Groups groups = WrittenGroups(i);
  for (const Ints& g : groups)
    if (static_cast<int64_t>(g.size()) <= kPerHost || static_cast<int64_t>(g.size()) % kPerHost != 0) return false;
  return !groups.empty();
}

}  // namespace

absl::StatusOr<bool> AllReduceBlueconnect(Module& m, PassContext& ctx) {
  return ExpandEach(m, ctx, Wanted, [](Instruction* i) -> absl::StatusOr<Instruction*> {
    Computation* c = i->parent();
    Groups hosts, across;
    for (const Ints& g : WrittenGroups(i)) {
      const size_t first = across.size();
      across.resize(first + kPerHost);
      for (size_t k = 0; k < g.size(); ++k) {
        if (k % kPerHost == 0) hosts.emplace_back();
        hosts.back().push_back(g[k]);
        across[first + k % kPerHost].push_back(g[k]);
      }
    }
    const int64_t n = i->shape().ElementCount();
    const PrimitiveType t = i->shape().type();
    const Shape share = Shape::Array(t, {n / kPerHost}), whole = Shape::Array(t, {n});
    Expr flat = ReshapeTo(i->operand(0), {n});
    const auto step = [&](Opcode op, const Shape& s, Instruction* x, const Groups& groups) {
      Instruction* r = c->Add(op, s, {x});
      r->mutable_attrs() = i->attrs();
      r->mutable_attrs().replica_groups = GroupsText(groups);
      if (op != Opcode::AllReduce) r->mutable_attrs().dimensions = Ints{0};
      if (op == Opcode::AllGather) {
        r->mutable_attrs().to_apply.reset();
        r->mutable_attrs().collective_mode.reset();
      }
      return r;
    };
    Instruction* scattered = step(Opcode::ReduceScatter, share, flat.get(), hosts);
    Instruction* reduced = step(Opcode::AllReduce, share, scattered, across);
    return ReshapeTo(step(Opcode::AllGather, whole, reduced, hosts), i->shape().dims()).get();
  });
}

}  // namespace kiln
