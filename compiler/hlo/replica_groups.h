// Which devices meet in a collective.
//
// What: replica_groups, channel_id and use_global_device_ids of an instruction, resolved to groups of devices. A device
//   is numbered replica * partitions + partition.
// Guarantees: every device appears at most once; groups are in written order. Fails on ids out of range.
#pragma once

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

// The numbers that "[4,2]T(1,0)" lists: an iota over the extents, transposed.
absl::StatusOr<Ints> ParseIota(absl::string_view text);
// "{{0,1},{2,3}}" or "[2,4]<=[4,2]T(1,0)"; empty for "{}".
absl::StatusOr<std::vector<Ints>> ParseReplicaGroups(absl::string_view text);
// Devices of each group of an all-reduce, all-gather, reduce-scatter, all-to-all or collective-broadcast.
absl::StatusOr<std::vector<Ints>> DeviceGroups(const Instruction& collective, int64_t replicas, int64_t partitions);
// Source and target devices of a collective-permute; no target twice.
absl::StatusOr<std::vector<std::pair<int64_t, int64_t>>> DevicePairs(const Instruction& permute, int64_t replicas,
                                                                     int64_t partitions);

// What the ids of replica_groups and source_target_pairs number.
enum class GroupMode { kReplicas, kPartitions, kReplicasOfAllPartitions, kDevices };
GroupMode GroupModeOf(const Instruction& collective);

// The shapes of an all-gather, a reduce-scatter or an all-to-all fit groups of `members` devices.
absl::Status CheckGroupSize(const Instruction& collective, int64_t members);
// Those of every collective fit its groups, once the counts of devices are settled.
absl::Status CheckAllGroupSizes(const Module& module);

// For a module that names no counts (one replica, one partition) and yet has collectives between more: as many as their
// groups and pairs name, partitions where a region is written for each of them. Changes nothing else.
absl::Status SettleDeviceCounts(Module* module);

}  // namespace kiln
