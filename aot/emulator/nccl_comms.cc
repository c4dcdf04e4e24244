#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "aot/emulator/nccl_world.h"

namespace kiln {
namespace {

bool Complete(const NcclWorld& w) { return w.joined == w.size; }

kiln_nccl_result StateOf(NcclRank* r) {
  NcclWorld& w = *r->world;
  if (w.failure != kNcclSuccess) return Refused(r, w.failure, w.why);
  if (!Complete(w)) return kNcclInProgress;
  const auto splits = All().splits.find(r);
  if (splits != All().splits.end())
    for (const auto& [number, split] : w.splits)
      if (split.here[static_cast<size_t>(r->rank)]) return kNcclInProgress;
  if (r->finalized && w.left < w.size) return kNcclInProgress;
  if (r->unsettled > 0) {
    --r->unsettled;
    return kNcclInProgress;
  }
  return kNcclSuccess;
}

// Of a blocking communicator: until it is there.
kiln_nccl_result Await(NcclLock* lock, const std::shared_ptr<NcclRank>& r) {
  kiln_nccl_result state;
  while ((state = StateOf(r.get())) == kNcclInProgress) {
    lock->unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    lock->lock();
  }
  return state;
}

kiln_nccl_result Begun(NcclLock* lock, const std::shared_ptr<NcclRank>& r) {
  return r->blocking ? Await(lock, r) : kNcclInProgress;
}

std::shared_ptr<NcclRank> Join(const std::shared_ptr<NcclWorld>& w, int rank, int device, bool blocking) {
  auto r = std::make_shared<NcclRank>();
  r->world = w;
  r->rank = rank;
  r->device = device;
  r->blocking = blocking;
  w->ranks[static_cast<size_t>(rank)] = r;
  ++w->joined;
  All().live[r.get()] = r;
  return r;
}

kiln_nccl_result CheckConfig(const kiln_nccl_config* config, bool* blocking) {
  *blocking = !config || config->blocking != 0;
  if (!config) return kNcclSuccess;
  if (config->magic != KILN_NCCL_MAGIC || config->size < sizeof *config || config->version < 21400)
    return kNcclInvalidArgument;
  if (config->blocking != KILN_NCCL_UNDEFINED && config->blocking != 0 && config->blocking != 1)
    return kNcclInvalidArgument;
  return kNcclSuccess;
}

// All have asked: those of one color become a communicator, by their keys.
void Perform(NcclWorld* parent, const NcclSplit& split) {
  std::map<int, std::vector<int>> groups;
  for (int r = 0; r < parent->size; ++r) {
    const int color = split.color[static_cast<size_t>(r)];
    if (color == kNcclNoColor)
      *split.out[static_cast<size_t>(r)] = nullptr;
    else
      groups[color].push_back(r);
  }
  for (auto& [color, members] : groups) {
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
      return split.key[static_cast<size_t>(a)] < split.key[static_cast<size_t>(b)];
    });
    auto w = std::make_shared<NcclWorld>();
    w->size = static_cast<int>(members.size());
    w->ranks.resize(members.size());
    for (int k = 0; k < w->size; ++k) {
      const auto at = static_cast<size_t>(members[static_cast<size_t>(k)]);
      const NcclRank& from = *parent->ranks[at];
      *split.out[at] = reinterpret_cast<kiln_nccl_comm>(Join(w, k, from.device, from.blocking).get());
    }
  }
}

kiln_nccl_result UniqueId(kiln_nccl_id* id) {
  const NcclLock lock(All().lock);
  if (const kiln_nccl_result code = BeginNccl("GetUniqueId")) return code;
  if (!id) return kNcclInvalidArgument;
  *id = {};
  const uint64_t number = ++All().ids;
  std::memcpy(id->bytes, &number, sizeof number);
  return kNcclSuccess;
}

kiln_nccl_result Init(kiln_nccl_comm* comm, int size, kiln_nccl_id id, int rank, kiln_nccl_config* config) {
  NcclState& s = All();
  const int device = s.streams.current_device();
  const bool recorded = device < 0 || s.streams.device_recorded(device);
  NcclLock lock(s.lock);
  if (const kiln_nccl_result code = BeginNccl("CommInitRankConfig")) return code;
  bool blocking = true;
  if (!comm || size < 1 || rank < 0 || rank >= size) return kNcclInvalidArgument;
  if (const kiln_nccl_result code = CheckConfig(config, &blocking)) return code;
  if (recorded) return kNcclUnhandledCudaError;
  const std::string key(id.bytes, sizeof id.bytes);
  std::shared_ptr<NcclWorld> w = s.worlds[key].lock();
  if (!w) {
    w = std::make_shared<NcclWorld>();
    w->size = size;
    w->ranks.resize(static_cast<size_t>(size));
    s.worlds[key] = w;
  }
  if (w->size != size || w->ranks[static_cast<size_t>(rank)]) return kNcclInvalidUsage;
  for (const auto& other : w->ranks)
    if (other && other->device == device) return kNcclInvalidUsage;  // two ranks on one device
  const auto r = Join(w, rank, device, blocking);
  *comm = reinterpret_cast<kiln_nccl_comm>(r.get());
  return Begun(&lock, r);
}

kiln_nccl_result Split(kiln_nccl_comm comm, int color, int key, kiln_nccl_comm* out, kiln_nccl_config* config) {
  NcclState& s = All();
  const int device = s.streams.current_device();
  const bool recorded = device < 0 || s.streams.device_recorded(device);
  NcclLock lock(s.lock);
  if (const kiln_nccl_result code = BeginNccl("CommSplit")) return code;
  const auto r = FindNccl(comm);
  bool blocking = true;
  if (const kiln_nccl_result code = Usable(r.get())) return code;
  if (!out || color < kNcclNoColor) return kNcclInvalidArgument;
  if (const kiln_nccl_result code = CheckConfig(config, &blocking)) return code;
  if (recorded || device != r->device) return kNcclUnhandledCudaError;
  NcclWorld& w = *r->world;
  const int64_t number = s.splits[r.get()]++;
  NcclSplit& split = w.splits[number];
  const auto size = static_cast<size_t>(w.size), at = static_cast<size_t>(r->rank);
  split.color.resize(size);
  split.key.resize(size);
  split.out.resize(size);
  split.here.resize(size);
  split.color[at] = color;
  split.key[at] = key;
  split.out[at] = out;
  split.here[at] = true;
  if (++split.arrived == w.size) {
    Perform(&w, split);
    w.splits.erase(number);
  }
  return Begun(&lock, r);
}

kiln_nccl_result Finalize(kiln_nccl_comm comm) {
  NcclLock lock(All().lock);
  if (const kiln_nccl_result code = BeginNccl("CommFinalize")) return code;
  const auto r = FindNccl(comm);
  if (!r) return kNcclInvalidArgument;
  if (const kiln_nccl_result code = Usable(r.get())) return code;
  if (r->recorded.use_count() > 1)
    return Refused(r.get(), kNcclInvalidUsage, "graphs hold calls of the communicator: NCCL would wait for their end");
  r->finalized = true;
  ++r->world->left;
  return Begun(&lock, r);
}

kiln_nccl_result Destroy(kiln_nccl_comm comm) {
  const NcclLock lock(All().lock);
  if (const kiln_nccl_result code = BeginNccl("CommDestroy")) return code;
  const auto r = FindNccl(comm);
  if (!r) return kNcclInvalidArgument;
  All().splits.erase(r.get());
  All().live.erase(r.get());
  return kNcclSuccess;
}

// The others hear of it.
kiln_nccl_result Abort(kiln_nccl_comm comm) {
  const NcclLock lock(All().lock);
  if (const kiln_nccl_result code = BeginNccl("CommAbort")) return code;
  const auto r = FindNccl(comm);
  if (!r) return kNcclInvalidArgument;
  r->aborted = true;
  NcclWorld& w = *r->world;
  if (w.failure == kNcclSuccess) {
    w.failure = kNcclRemoteError;
    w.why = "rank " + std::to_string(r->rank) + " aborted";
  }
  All().splits.erase(r.get());
  All().live.erase(r.get());
  return kNcclSuccess;
}

kiln_nccl_result AsyncError(kiln_nccl_comm comm, kiln_nccl_result* out) {
  const NcclLock lock(All().lock);
  if (const kiln_nccl_result code = BeginNccl("CommGetAsyncError")) return code;
  const auto r = FindNccl(comm);
  if (!r || !out) return kNcclInvalidArgument;
  *out = StateOf(r.get());
  return kNcclSuccess;
}

}  // namespace

NcclState& All() {
  static auto* s = new NcclState;
  return *s;
}

kiln_nccl_result BeginNccl(const char* name) {
  NcclState& s = All();
  ++s.calls[name];
  const auto it = s.failures.find(name);
  if (it == s.failures.end() || it->second.first-- > 0) return kNcclSuccess;
  const kiln_nccl_result result = it->second.second;
  s.failures.erase(it);
  return result;
}

std::shared_ptr<NcclRank> FindNccl(kiln_nccl_comm comm) {
  const auto it = All().live.find(reinterpret_cast<NcclRank*>(comm));
  return it == All().live.end() ? nullptr : it->second;
}

kiln_nccl_result Refused(NcclRank* rank, kiln_nccl_result result, const std::string& why) {
  if (rank) rank->last_error = why;
  return result;
}

kiln_nccl_result Usable(NcclRank* r) {
  if (!r) return kNcclInvalidArgument;
  NcclWorld& w = *r->world;
  if (w.failure != kNcclSuccess) return Refused(r, w.failure, w.why);
  if (r->finalized) return Refused(r, kNcclInvalidArgument, "the communicator was finalized");
  if (!Complete(w) || r->unsettled > 0)
    return Refused(r, kNcclInvalidArgument,
                   "Attempt to use communicator before the previous operation returned ncclSuccess");
  return kNcclSuccess;
}

void FillCommunicators(kiln_nccl_library* out) {
  out->GetUniqueId = UniqueId;
  out->CommInitRankConfig = Init;
  out->CommSplit = Split;
  out->CommFinalize = Finalize;
  out->CommDestroy = Destroy;
  out->CommAbort = Abort;
  out->CommGetAsyncError = AsyncError;
}

}  // namespace kiln
