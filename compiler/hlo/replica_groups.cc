#include "compiler/hlo/replica_groups.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/hlo/sharding.h"

namespace kiln {

namespace {

absl::StatusOr<Ints> Numbers(absl::string_view text) {
  Ints out;
  for (absl::string_view n : absl::StrSplit(text, absl::ByAnyChar("[]{}(), "), absl::SkipEmpty())) {
    int64_t v;
    if (!absl::SimpleAtoi(n, &v)) return InvalidArgument("'", n, "' is not a number");
    out.push_back(v);
  }
  return out;
}

// [groups,size]<=[dims]T(permutation): an iota over dims, transposed, cut into groups.
absl::StatusOr<std::vector<Ints>> IotaGroups(absl::string_view text) {
  const std::vector<absl::string_view> sides = absl::StrSplit(text, "<=");
  if (sides.size() != 2) return InvalidArgument("replica groups '", text, "' are not understood");
  ASSIGN_OR_RETURN(Ints result, Numbers(sides[0]));
  ASSIGN_OR_RETURN(const Ints ids, ParseIota(sides[1]));
  const auto n = static_cast<int64_t>(ids.size());
  if (result.size() != 2 || result[0] < 0 || result[0] > n || result[0] * result[1] != n)
    return InvalidArgument("replica groups '", text, "' do not add up");
  std::vector<Ints> groups(static_cast<size_t>(result[0]));
  for (size_t k = 0; k < ids.size(); ++k) groups[k / static_cast<size_t>(result[1])].push_back(ids[k]);
  return groups;
}

// mesh['a'=4,'b'=2] {'a'}: the devices of a mesh, numbered row major; a group varies along the named axes. 'a':(2)2
// names a part of an axis: the factor of 2 that comes after a factor of 2.
absl::StatusOr<std::vector<Ints>> MeshGroups(absl::string_view text) {
  const auto fail = [&] { return InvalidArgument("replica groups '", text, "' are not understood"); };
  const size_t open = text.find('['), close = text.find(']'), list = text.find('{');
  if (close == absl::string_view::npos || list == absl::string_view::npos || open > close || list < close ||
      text.back() != '}')
    return fail();
  struct Axis {
    std::string name;
    int64_t size, stride;
  };
  std::vector<Axis> axes;
  for (absl::string_view part : absl::StrSplit(text.substr(open + 1, close - open - 1), ',')) {
    const std::vector<absl::string_view> sides = absl::StrSplit(part, '=');
    Axis a;
    if (sides.size() != 2 || !absl::SimpleAtoi(absl::StripAsciiWhitespace(sides[1]), &a.size) || a.size < 1)
      return fail();
    a.name = std::string(absl::StripAsciiWhitespace(sides[0]));
    axes.push_back(a);
  }
  int64_t devices = 1;
  for (size_t k = axes.size(); k-- > 0;) {
    axes[k].stride = devices;
    if (devices > (1 << 20) / axes[k].size) return fail();
    devices *= axes[k].size;
  }
  // The positions along which a group varies, most significant first.
  Ints members = {0};
  for (absl::string_view part :
       absl::StrSplit(text.substr(list + 1, text.size() - list - 2), ',', absl::SkipWhitespace())) {
    const std::vector<absl::string_view> sides = absl::StrSplit(absl::StripAsciiWhitespace(part), ':');
    const auto axis = std::find_if(axes.begin(), axes.end(), [&](const Axis& a) { return a.name == sides[0]; });
    if (axis == axes.end()) return fail();
    int64_t size = axis->size, stride = axis->stride;
    if (sides.size() == 2) {
      ASSIGN_OR_RETURN(Ints sub, Numbers(absl::string_view(sides[1])));
      if (sub.size() != 2) {  // "(2)2" reads as one word
        const size_t end = sides[1].find(')');
        sub.resize(2);
        if (end == absl::string_view::npos || sides[1][0] != '(' ||
            !absl::SimpleAtoi(sides[1].substr(1, end - 1), &sub[0]) ||
            !absl::SimpleAtoi(sides[1].substr(end + 1), &sub[1]))
          return fail();
      }
      if (sub[0] < 1 || sub[1] < 1 || axis->size % sub[0] || axis->size / sub[0] % sub[1]) return fail();
      stride *= axis->size / sub[0] / sub[1];
      size = sub[1];
    }
    if (static_cast<int64_t>(members.size()) > devices / size) return fail();
    Ints next;
    for (int64_t m : members)
      for (int64_t k = 0; k < size; ++k) next.push_back(m + k * stride);
    members = std::move(next);
  }
  std::vector<bool> taken(devices);
  std::vector<Ints> groups;
  for (int64_t d = 0; d < devices; ++d) {
    if (taken[d]) continue;
    Ints group;
    for (int64_t m : members) {
      if (d + m >= devices || taken[d + m]) return fail();
      taken[d + m] = true;
      group.push_back(d + m);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

GroupMode GroupModeOf(const Instruction& i) {
  const bool channel = i.attrs().channel_id.has_value(), global = i.attrs().use_global_device_ids.value_or(false);
  switch (i.opcode()) {
    case Opcode::AllToAll:
    case Opcode::CollectivePermute:
    case Opcode::CollectivePermuteStart:
    case Opcode::CollectiveBroadcast:
    case Opcode::RaggedAllToAll:
      return global ? GroupMode::kDevices : channel ? GroupMode::kPartitions : GroupMode::kReplicas;
    default:
      return !channel ? GroupMode::kReplicas : global ? GroupMode::kDevices : GroupMode::kReplicasOfAllPartitions;
  }
}

absl::Status CheckGroupSize(const Instruction& i, int64_t members) {
  if (i.Is(Opcode::AllToAll)) {
    if (!i.attrs().dimensions)
      return i.operand_count() == members
                 ? absl::OkStatus()
                 : ErrorAt(&i, absl::StrCat("takes ", i.operand_count(), " operands, but its groups have ", members));
    const int64_t extent = i.operand(0)->shape().dim((*i.attrs().dimensions)[0]);
    return extent < 0 || extent % members == 0
               ? absl::OkStatus()
               : ErrorAt(&i, absl::StrCat("extent ", extent, " does not divide into ", members, " parts"));
  }
  const bool gathers = i.Is(Opcode::AllGather) || i.Is(Opcode::AllGatherStart);
  if (!gathers && !i.Is(Opcode::ReduceScatter)) return absl::OkStatus();
  const Shape* result = &i.shape();
  if (i.Is(Opcode::AllGatherStart) && result->IsTuple()) result = &result->tuple()[1];
  if (i.operand_count() > 1) result = &result->tuple()[0];
  const int64_t d = (*i.attrs().dimensions)[0];
  const int64_t in = i.operand(0)->shape().dim(d), out = result->dim(d);
  if (in < 0 || out < 0 || (gathers ? in * members == out : (in + members - 1) / members == out))
    return absl::OkStatus();
  return ErrorAt(&i, absl::StrCat("extent ", in, " becomes ", out, ", but its groups have ", members,
                                  " devices; replica_count and num_partitions of the module say how many there are"));
}

absl::StatusOr<Ints> ParseIota(absl::string_view text) {
  const size_t t = text.find('T');
  ASSIGN_OR_RETURN(const Ints dims, Numbers(text.substr(0, t)));
  Ints order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  if (t != absl::string_view::npos) {
    ASSIGN_OR_RETURN(order, Numbers(text.substr(t + 1)));
  }
  constexpr int64_t kMost = 1 << 20;
  int64_t n = 1;
  for (int64_t d : dims) {
    if (d < 0 || (d > 0 && n > kMost / d)) return InvalidArgument("'", text, "' lists too many devices");
    n *= d;
  }
  std::vector<bool> seen(dims.size());
  for (int64_t d : order) {
    if (d < 0 || d >= static_cast<int64_t>(dims.size()) || seen[d])
      return InvalidArgument("'", text, "': not a permutation");
    seen[d] = true;
  }
  if (order.size() != dims.size()) return InvalidArgument("'", text, "': not a permutation");
  Ints strides(dims.size(), 1), ids;
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  for (int64_t k = 0; k < n; ++k) {
    int64_t rest = k, id = 0;
    for (size_t d = order.size(); d-- > 0;) {
      id += rest % dims[order[d]] * strides[order[d]];
      rest /= dims[order[d]];
    }
    ids.push_back(id);
  }
  return ids;
}

absl::StatusOr<std::vector<Ints>> ParseReplicaGroups(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (!text.empty() && text[0] == '[') return IotaGroups(text);
  if (absl::ConsumePrefix(&text, "mesh")) return MeshGroups(text);
  std::vector<Ints> groups;
  if (!absl::ConsumePrefix(&text, "{") || !absl::ConsumeSuffix(&text, "}"))
    return InvalidArgument("replica groups '", text, "' are not understood");
  for (absl::string_view g : absl::StrSplit(text, '}', absl::SkipWhitespace())) {
    ASSIGN_OR_RETURN(Ints members, Numbers(g));
    if (!members.empty()) groups.push_back(std::move(members));
  }
  return groups;
}

absl::Status CheckAllGroupSizes(const Module& m) {
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions()) {
      if (!i->Is(Opcode::AllGather) && !i->Is(Opcode::AllGatherStart) && !i->Is(Opcode::ReduceScatter) &&
          !i->Is(Opcode::AllToAll))
        continue;
      const auto groups = DeviceGroups(*i, m.replica_count, m.partition_count);
      if (!groups.ok()) return ErrorAt(i.get(), groups.status().message());
      for (const Ints& g : *groups) RETURN_IF_ERROR(CheckGroupSize(*i, static_cast<int64_t>(g.size())));
    }
  return absl::OkStatus();
}

absl::Status SettleDeviceCounts(Module* m) {
  if (m->replica_count * m->partition_count != 1) return absl::OkStatus();
  int64_t replicas = 1, partitions = 1, devices = 1;
  for (const auto& c : m->computations())
    for (const auto& i : c->instructions()) {
      if (i->Is(Opcode::CustomCall)) {
        // One that cannot be kept is an error of whoever cuts arrays, and no reason not to print the program.
        const absl::StatusOr<std::optional<ManualBoundary>> boundary = ManualBoundaryOf(*i);
        if (boundary.ok() && *boundary)
          for (const Sharding& s : (*boundary)->shardings)
            for (int64_t id : s.devices) partitions = std::max(partitions, id + 1);
      }
      if (!i->HasTrait(Collective)) continue;
      int64_t largest = 0;
      if (i->attrs().replica_groups) {
        ASSIGN_OR_RETURN(auto groups, ParseReplicaGroups(i->attrs().replica_groups->text));
        for (const Ints& g : groups)
          for (int64_t id : g) largest = std::max(largest, id);
      }
      if (i->attrs().source_target_pairs) {
        ASSIGN_OR_RETURN(Ints ids, Numbers(i->attrs().source_target_pairs->text));
        for (int64_t id : ids) largest = std::max(largest, id);
      }
      const GroupMode mode = GroupModeOf(*i);
      int64_t& count = mode == GroupMode::kPartitions ? partitions : mode == GroupMode::kDevices ? devices : replicas;
      count = std::max(count, largest + 1);
    }
  if (replicas > 1 && partitions > 1 && devices % (replicas * partitions))
    return InvalidArgument(m->file,
                           ":1:1: error: collectives between replicas and between partitions, but the module "
                           "does not say how many of each there are");
  // Groups of devices count all of them; what the partitions leave are replicas.
  if (devices > replicas * partitions) replicas = (devices + partitions - 1) / partitions;
  if (replicas * partitions > m->limits.devices)
    return ResourceExhausted(m->file, ":1:1: error: collectives between ", replicas * partitions,
                             " devices, more than ", m->limits.devices);
  m->replica_count = replicas;
  m->partition_count = partitions;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Ints>> DeviceGroups(const Instruction& i, int64_t replicas, int64_t partitions) {
  std::vector<Ints> ids;
  if (i.attrs().replica_groups) {
    ASSIGN_OR_RETURN(ids, ParseReplicaGroups(i.attrs().replica_groups->text));
  }
  const GroupMode mode = GroupModeOf(i);
  const int64_t n = mode == GroupMode::kPartitions ? partitions
                    : mode == GroupMode::kDevices  ? replicas * partitions
                                                   : replicas;
  if (ids.empty()) {
    ids.emplace_back(n);
    std::iota(ids[0].begin(), ids[0].end(), 0);
  }
  std::vector<bool> seen(n);
  for (const Ints& g : ids)
    for (int64_t id : g) {
      if (id < 0 || id >= n) return InvalidArgument("replica group member ", id, " is out of range: there are ", n);
      if (seen[id]) return InvalidArgument(id, " is in two replica groups");
      seen[id] = true;
    }
  std::vector<Ints> out;
  switch (mode) {
    case GroupMode::kDevices:
      return ids;
    case GroupMode::kReplicas:
      for (const Ints& g : ids)
        for (int64_t p = 0; p < partitions; ++p) {
          out.emplace_back();
          for (int64_t r : g) out.back().push_back(r * partitions + p);
        }
      return out;
    case GroupMode::kPartitions:
      for (int64_t r = 0; r < replicas; ++r)
        for (const Ints& g : ids) {
          out.emplace_back();
          for (int64_t p : g) out.back().push_back(r * partitions + p);
        }
      return out;
    case GroupMode::kReplicasOfAllPartitions:
      for (const Ints& g : ids) {
        out.emplace_back();
        for (int64_t r : g)
          for (int64_t p = 0; p < partitions; ++p) out.back().push_back(r * partitions + p);
      }
      return out;
  }
  return out;
}

absl::StatusOr<std::vector<std::pair<int64_t, int64_t>>> DevicePairs(const Instruction& i, int64_t replicas,
                                                                     int64_t partitions) {
  Ints ids;
  if (i.attrs().source_target_pairs) {
    ASSIGN_OR_RETURN(ids, Numbers(i.attrs().source_target_pairs->text));
  }
  if (ids.size() % 2) return InvalidArgument("source_target_pairs are not pairs");
  const GroupMode mode = GroupModeOf(i);
  const int64_t n = mode == GroupMode::kPartitions ? partitions
                    : mode == GroupMode::kDevices  ? replicas * partitions
                                                   : replicas;
  std::vector<bool> target(n), source(n);
  std::vector<std::pair<int64_t, int64_t>> out;
  for (size_t k = 0; k < ids.size(); k += 2) {
    const int64_t from = ids[k], to = ids[k + 1];
    if (from < 0 || from >= n || to < 0 || to >= n)
      return InvalidArgument("pair {", from, ",", to, "} is out of range: there are ", n);
    if (target[to] || source[from])
      return InvalidArgument(target[to] ? to : from, " is ", target[to] ? "the target" : "the source", " of two pairs");
    target[to] = source[from] = true;
    switch (mode) {
      case GroupMode::kDevices:
        out.push_back({from, to});
        break;
      case GroupMode::kPartitions:
        for (int64_t r = 0; r < replicas; ++r) out.push_back({r * partitions + from, r * partitions + to});
        break;
      default:
        for (int64_t p = 0; p < partitions; ++p) out.push_back({from * partitions + p, to * partitions + p});
    }
  }
  return out;
}

}  // namespace kiln
