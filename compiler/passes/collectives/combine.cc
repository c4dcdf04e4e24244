#include "compiler/passes/collectives/combine.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/hlo/reachability.h"
#include "compiler/passes/collectives/annotations.h"
#include "compiler/passes/sharding/domain_map.h"

namespace kiln {
namespace {

// The shardings of all, as a tuple's; none if one has none.
std::optional<attr::Raw> ShardingOf(const std::vector<Instruction*>& group) {
  std::vector<std::string> each;
  for (const Instruction* i : group) {
    if (!i->attrs().sharding) return std::nullopt;
    each.push_back(i->attrs().sharding->text);
  }
  return absl::StrCat("{", absl::StrJoin(each, ", "), "}");
}

void Combine(const std::vector<Instruction*>& group) {
  Computation* c = group[0]->parent();
  std::vector<Instruction*> operands;
  std::vector<Shape> shapes;
  for (const Instruction* i : group) {
    operands.push_back(i->operand(0));
    shapes.push_back(i->shape());
  }
  Instruction* all = c->AddClone(group[0], Shape::Tuple(shapes), operands);
  all->mutable_attrs().sharding = ShardingOf(group);
  for (size_t k = 0; k < group.size(); ++k) {
    Instruction* e = c->Add(Opcode::GetTupleElement, shapes[k], {all});
    e->mutable_attrs().tuple_index = static_cast<int64_t>(k);
    group[k]->ReplaceAllUsesWith(e);
    c->Remove(group[k]);
  }
}

}  // namespace

std::string GroupingKey(const Instruction* i) {
  const Attributes& a = i->attrs();
  return absl::StrCat(TextOf(i->operand(0)->shape().type()), "/", a.replica_groups ? a.replica_groups->text : "", "/",
                      a.channel_id.value_or(0) > 0, "/", a.use_global_device_ids.value_or(false));
}

std::optional<std::string> ReducerKey(const Instruction* i) {
  const Computation* f = *i->attrs().to_apply;
  if (f->instruction_count() != 3 || f->parameters().size() != 2) return std::nullopt;
  return std::string(TextOf(f->root()->opcode()));
}

absl::StatusOr<bool> CombineCollectives(Module& m, PassContext& ctx, Opcode op, const CombineLimits& limits,
                                        const std::function<std::optional<std::string>(const Instruction*)>& key) {
  if (limits.bytes <= 0 || limits.count <= 0) return false;
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions())
      if (i->Is(op) && i->attrs().constrain_layout.value_or(false)) return false;
  bool changed = false;
  for (const auto& c : m.computations()) {
    const auto candidates =
        std::count_if(c->instructions().begin(), c->instructions().end(), [&](const auto& i) { return i->Is(op); });
    if (candidates < 2 || !Reachability::Affordable(c.get())) continue;
    absl::flat_hash_set<const Instruction*> done;  // never looked at again
    while (true) {
      const Reachability reach(c.get());
      DomainMap domains(c.get());
      std::vector<Instruction*> group;
      std::string group_key;
      int64_t bytes = 0;
      for (Instruction* i : c->PostOrder()) {
        if (!i->Is(op) || done.contains(i)) continue;
        const int64_t own = i->operand(0)->shape().ByteSize();
        const bool alone = i->operand_count() != 1 || own > limits.bytes || !i->control_predecessors().empty() ||
                           !i->control_successors().empty() || HasSchedulingGroup(i);
        std::optional<std::string> k = alone ? std::nullopt : key(i);
        if (!k) {
          done.insert(i);
          continue;
        }
        absl::StrAppend(&*k, "@", domains.ShardingOf(i));
        if (group.empty()) group_key = *k;
        if (*k != group_key) continue;
        bool depends = false;
        for (const Instruction* g : group) depends = depends || reach.Reaches(g, i);
        if (depends || bytes > limits.bytes - own || static_cast<int64_t>(group.size()) >= limits.count) break;
        group.push_back(i);
        bytes += own;
      }
      if (group.empty()) break;
      for (const Instruction* g : group) done.insert(g);
      if (group.size() < 2 || !ctx.Take()) continue;
      Combine(group);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
