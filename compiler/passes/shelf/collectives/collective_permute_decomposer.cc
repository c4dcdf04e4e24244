// A permutation of data that forms a ring becomes two without a ring - what goes up and what comes around - and each
// device selects what it was sent: without a ring, sends and receives can be pipelined.
#include "absl/strings/str_cat.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/replica_groups.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

using Pairs = std::vector<Ints>;

Pairs PairsOf(const Instruction* i) {
  if (!i->Is(Opcode::CollectivePermute) || i->operand_count() != 1 || !i->shape().IsArray() ||
      !i->attrs().source_target_pairs)
    return {};
  auto pairs = ParseReplicaGroups(i->attrs().source_target_pairs->text);
  return pairs.ok() ? *pairs : Pairs();
}

// {{0,1},{1,2},{2,3},{3,0}}: each to the next, the last to the first.
bool Ring(const Pairs& pairs) {
  if (pairs.size() < 2) return false;
  for (size_t k = 0; k < pairs.size(); ++k)
    if (pairs[k][0] != static_cast<int64_t>(k) || pairs[k][1] != static_cast<int64_t>((k + 1) % pairs.size()))
      return false;
  return true;
}

std::string Text(const Pairs& pairs) {
  std::string out;
  for (const Ints& p : pairs) absl::StrAppend(&out, out.empty() ? "" : ",", "{", p[0], ",", p[1], "}");
  return "{" + out + "}";
}

}  // namespace

absl::StatusOr<bool> CollectivePermuteDecomposer(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](const Instruction* i) { return Ring(PairsOf(i)); },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        Computation* c = i->parent();
        Pairs forward = PairsOf(i);
        const Pairs around = {forward.back()};
        forward.pop_back();
        const auto permute = [&](const Pairs& pairs) {
          Instruction* p = c->AddClone(i, i->shape(), i->operands());
          p->mutable_attrs().source_target_pairs = Text(pairs);
          return p;
        };
        Instruction *up = permute(forward), *back = permute(around);
        if (back->attrs().channel_id) back->mutable_attrs().channel_id = *back->attrs().channel_id + (int64_t{1} << 20);
        const Opcode number = i->attrs().channel_id ? Opcode::PartitionId : Opcode::ReplicaId;
        Expr id = c->Add(number, Shape::Scalar(PrimitiveType::U32), {});
        Expr first = BroadcastTo(id == static_cast<double>(around[0][1]), i->shape().dims());
        return SelectExpr(first, back, up).get();
      });
}

}  // namespace kiln
