// Replica groups as lists, and back, for passes that regroup.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/hlo/replica_groups.h"

namespace kiln {

using Groups = std::vector<Ints>;

inline std::string GroupsText(const Groups& groups) {
  return absl::StrCat(
      "{",
      absl::StrJoin(groups, ",",
                    [](std::string* s, const Ints& g) { absl::StrAppend(s, "{", absl::StrJoin(g, ","), "}"); }),
      "}");
}

// The groups as they are written; empty if there are none or they do not parse.
inline Groups WrittenGroups(const Instruction* i) {
  if (!i->attrs().replica_groups) return {};
  auto groups = ParseReplicaGroups(i->attrs().replica_groups->text);
  return groups.ok() ? *groups : Groups();
}

// Both number their members the same way.
inline bool NumberedAlike(const Instruction* a, const Instruction* b) {
  return a->attrs().channel_id.has_value() == b->attrs().channel_id.has_value() &&
         a->attrs().use_global_device_ids.value_or(false) == b->attrs().use_global_device_ids.value_or(false);
}

// A group is the devices of its replicas in all partitions at once: two steps over parts of it would count each
// partition twice.
inline bool TakesAllPartitions(const Instruction* i) {
  return GroupModeOf(*i) == GroupMode::kReplicasOfAllPartitions && i->parent()->module()->partition_count > 1;
}

inline bool PlainAllReduce(const Instruction* i) {
  return i->Is(Opcode::AllReduce) && i->operand_count() == 1 && i->shape().IsArray() &&
         i->control_predecessors().empty() && i->control_successors().empty() &&
         !i->attrs().constrain_layout.value_or(false);
}

// Where every group of `inner` meets every group of `outer` in at most one member and both together reach the same
// members from each: the groups that one reduction over both would have. Empty if they do not complement each other.
inline Groups ProductOf(const Groups& inner, const Groups& outer) {
  Groups out;
  std::set<int64_t> seen;
  for (const Ints& o : outer) {
    if (seen.count(o[0])) continue;
    std::set<int64_t> all;
    for (int64_t member : o)
      for (const Ints& i : inner)
        if (std::find(i.begin(), i.end(), member) != i.end()) all.insert(i.begin(), i.end());
    if (all.size() != o.size() * inner[0].size()) return {};
    // Whoever belongs to the product must reach the whole of it.
    for (const Ints& other : outer) {
      size_t common = 0;
      for (int64_t member : other) common += all.count(member);
      if (common != 0 && common != other.size()) return {};
    }
    for (int64_t member : all)
      if (!seen.insert(member).second) return {};
    out.push_back(Ints(all.begin(), all.end()));
  }
  return out;
}

}  // namespace kiln
