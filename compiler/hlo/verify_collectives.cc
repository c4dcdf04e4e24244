#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "compiler/hlo/replica_groups.h"
#include "compiler/hlo/verify_rules.h"

namespace kiln::verify {
namespace {

// Those that a group's ids number; 1 where the module leaves the counts open.
int64_t CountOf(const Instruction* i) {
  const Module& m = *i->parent()->module();
  switch (GroupModeOf(*i)) {
    case GroupMode::kPartitions:
      return m.partition_count;
    case GroupMode::kDevices:
      return m.replica_count * m.partition_count;
    default:
      return m.replica_count;
  }
}

absl::Status CheckGroups(const Instruction* i, bool as_written) {
  const Module& m = *i->parent()->module();
  std::vector<Ints> groups;
  if (i->attrs().replica_groups) {
    auto read = ParseReplicaGroups(i->attrs().replica_groups->text);
    if (!read.ok()) return ErrorAt(i, read.status().message());
    groups = *std::move(read);
  }
  const GroupMode mode = GroupModeOf(*i);
  const int64_t count = CountOf(i);
  if (groups.empty() && mode == GroupMode::kDevices)
    return ErrorAt(i, "use_global_device_ids needs replica_groups that list the devices");
  const bool any_size = i->Is(Opcode::AllReduce) || i->Is(Opcode::AllReduceStart) || i->Is(Opcode::CollectiveBroadcast);
  absl::flat_hash_set<int64_t> seen;
  for (const Ints& g : groups) {
    if (as_written && !any_size && g.size() != groups[0].size())
      return ErrorAt(i, absl::StrCat("replica groups have ", groups[0].size(), " and ", g.size(), " members"));
    for (int64_t id : g) {
      if (id < 0) return ErrorAt(i, absl::StrCat("replica group member ", id, " is no id"));
      if (!seen.insert(id).second) return ErrorAt(i, absl::StrCat("id ", id, " is in two replica groups"));
    }
  }
  if (i->Is(Opcode::CollectiveBroadcast)) return absl::OkStatus();  // others keep what they have
  for (int64_t id = 0; id < static_cast<int64_t>(seen.size()); ++id)
    if (as_written && !seen.contains(id)) return ErrorAt(i, absl::StrCat("id ", id, " is in no replica group"));
  if (as_written && count > 1 && !groups.empty() && static_cast<int64_t>(seen.size()) != count)
    return ErrorAt(i, absl::StrCat("replica groups have ", seen.size(), " members, but there are ", count));
  int64_t members = groups.empty() ? count : 0;
  for (const Ints& g : groups) members = std::max(members, static_cast<int64_t>(g.size()));
  if (mode == GroupMode::kReplicasOfAllPartitions) {
    if (m.partition_count == 1) return absl::OkStatus();
    members *= m.partition_count;
  }
  // Without counts and groups nothing is known until the program is compiled.
  return members > 1 ? CheckGroupSize(*i, members) : absl::OkStatus();
}

absl::Status CheckPairs(const Instruction* i) {
  const std::string& text = i->attrs().source_target_pairs->text;
  const int64_t count = CountOf(i);
  absl::flat_hash_set<int64_t> from, to;
  int64_t k = 0;
  for (absl::string_view n : absl::StrSplit(text, absl::ByAnyChar("{}, "), absl::SkipEmpty())) {
    int64_t id;
    if (!absl::SimpleAtoi(n, &id) || id < 0) return ErrorAt(i, absl::StrCat("'", n, "' is no id"));
    if (count > 1 && id >= count) return ErrorAt(i, absl::StrCat("id ", id, " is out of range: there are ", count));
    const bool target = k++ % 2 == 1;
    if (!(target ? to : from).insert(id).second)
      return ErrorAt(i, absl::StrCat("id ", id, target ? " is the target" : " is the source", " of two pairs"));
  }
  if (k % 2) return ErrorAt(i, absl::StrCat("source_target_pairs ", text, " are not pairs"));
  return absl::OkStatus();
}

bool IsPointToPoint(const Instruction* i) {
  return i->Is(Opcode::Send) || i->Is(Opcode::SendDone) || i->Is(Opcode::Recv) || i->Is(Opcode::RecvDone);
}

bool IsDone(const Instruction* i) {
  return i->Is(Opcode::AllReduceDone) || i->Is(Opcode::AllGatherDone) || i->Is(Opcode::CollectivePermuteDone);
}

absl::Status CheckTransfer(const Instruction* i) {
  const bool send = i->Is(Opcode::Send);
  if (!send && !i->Is(Opcode::Recv)) return absl::OkStatus();
  for (const Instruction* u : i->users()) {
    if (!u->Is(send ? Opcode::SendDone : Opcode::RecvDone)) continue;
    if (u->attrs().channel_id != i->attrs().channel_id)
      return ErrorAt(u, absl::StrCat("channel_id is not that of ", i->name()));
    if (u->attrs().is_host_transfer.value_or(false) != i->attrs().is_host_transfer.value_or(false))
      return ErrorAt(u, absl::StrCat("is_host_transfer is not that of ", i->name()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCollective(const Instruction* i, bool as_written) {
  RETURN_IF_ERROR(CheckTransfer(i));
  if (!i->HasTrait(Collective) || IsDone(i)) return absl::OkStatus();
  if (i->attrs().use_global_device_ids.value_or(false) && i->attrs().channel_id.value_or(0) <= 0)
    return ErrorAt(i, "use_global_device_ids needs a channel_id");
  if (i->attrs().source_target_pairs) return CheckPairs(i);
  return CheckGroups(i, as_written);
}

// A channel joins sends with receives, or collectives with each other, never both. Layout constraints are all
// reductions' or none's.
absl::Status CheckChannels(const Module& m) {
  absl::flat_hash_map<int64_t, const Instruction*> channels;
  const Instruction* reduction = nullptr;
  for (const auto& c : m.computations())
    for (const auto& owned : c->instructions()) {
      const Instruction* i = owned.get();  // whose attributes, if it has none, are not made by being read
      if (const auto channel = i->attrs().channel_id; channel && *channel > 0) {
        const auto [it, fresh] = channels.insert({*channel, i});
        if (!fresh && IsPointToPoint(it->second) != IsPointToPoint(i))
          return ErrorAt(i, absl::StrCat("channel ", *channel, " is used by ", TextOf(it->second->opcode()), " too"));
      }
      if (!i->Is(Opcode::AllReduce) && !i->Is(Opcode::AllReduceStart)) continue;
      if (!reduction) reduction = i;
      if (reduction->attrs().constrain_layout.value_or(false) != i->attrs().constrain_layout.value_or(false))
        return ErrorAt(i, absl::StrCat("constrain_layout is not that of ", reduction->name()));
    }
  return absl::OkStatus();
}

}  // namespace kiln::verify
