#include "aot/emulator/nccl_stand_in.h"

#include "aot/emulator/nccl_world.h"

namespace kiln {
namespace {

constexpr int kTypesOfNccl = 10, kOpsOfNccl = 4;

struct Pending {
  std::shared_ptr<NcclRank> rank;
  void* stream;
  const void* recording;  // of the stream
  NcclOp op;
};
thread_local int group_depth = 0;
thread_local std::vector<Pending> group;
thread_local kiln_nccl_result group_error = kNcclSuccess;

bool Overlap(const void* a, size_t na, const void* b, size_t nb) {
  const auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return x < y + nb && y < x + na;
}

kiln_nccl_result CheckArrays(NcclRank* r, const NcclOp& op) {
  const size_t width = NcclWidth(op.type), bytes = op.count * width, all = bytes * static_cast<size_t>(r->world->size);
  const auto at = static_cast<size_t>(r->rank) * bytes;
  size_t given = bytes, taken = bytes;
  const char *from = static_cast<const char*>(op.from), *to = static_cast<const char*>(op.to);
  if (op.count > 0 && (!from || !to)) return Refused(r, kNcclInvalidArgument, "a null pointer");
  bool in_place = from == to;
  if (op.kind == NcclKind::kAllGather) {
    taken = all;
    in_place = from == to + at;
  } else if (op.kind == NcclKind::kReduceScatter) {
    given = all;
    in_place = to == from + at;
  }
  if (op.count > 0 && !in_place && Overlap(from, given, to, taken))
    return Refused(r, kNcclInvalidUsage, "the arrays overlap other than in place");
  return kNcclSuccess;
}

kiln_nccl_result Check(NcclRank* r, int device, const NcclOp& op) {
  if (const kiln_nccl_result code = Usable(r)) return code;
  if (op.kind != NcclKind::kMessages) {
    if (op.type < 0 || op.type >= kTypesOfNccl) return Refused(r, kNcclInvalidArgument, "an invalid type");
    if (op.op < 0 || op.op >= kOpsOfNccl) return Refused(r, kNcclInvalidArgument, "an invalid operation");
    if (op.root < 0 || op.root >= r->world->size) return Refused(r, kNcclInvalidArgument, "an invalid root");
    if (const kiln_nccl_result code = CheckArrays(r, op)) return code;
  }
  for (const NcclMessage& m : op.messages) {
    if (m.type < 0 || m.type >= kTypesOfNccl) return Refused(r, kNcclInvalidArgument, "an invalid type");
    if (m.peer < 0 || m.peer >= r->world->size) return Refused(r, kNcclInvalidArgument, "an invalid peer");
    if (m.bytes > 0 && !m.data) return Refused(r, kNcclInvalidArgument, "a null pointer");
  }
  if (device != r->device) return Refused(r, kNcclUnhandledCudaError, "the stream is of another device");
  return kNcclSuccess;
}

// What a group's messages must have among themselves.
kiln_nccl_result CheckMessages(NcclRank* r, const NcclOp& op) {
  int to_self = 0;
  for (const NcclMessage& m : op.messages) {
    if (m.peer == r->rank) to_self += m.send ? 1 : -1;
    for (const NcclMessage& other : op.messages)
      if (!m.send && &m != &other && Overlap(m.data, m.bytes, other.data, other.bytes))
        return Refused(r, kNcclInvalidUsage, "a receive overlaps another message of its group");
  }
  return to_self == 0 ? kNcclSuccess
                      : Refused(r, kNcclInvalidUsage, "a message to itself without its other side in the group");
}

// Streams of one communicator are all recorded in one graph, or none is.
kiln_nccl_result CheckRecordings(const std::vector<Pending>& all) {
  for (const Pending& a : all)
    for (const Pending& b : all)
      if (a.rank == b.rank && a.recording != b.recording)
        return Refused(a.rank.get(), kNcclInvalidUsage,
                       "streams of a group must be all uncaptured or all captured by the same graph");
  return kNcclSuccess;
}

// The messages of a group on one communicator go together.
std::vector<Pending> Joined(std::vector<Pending> all) {
  std::vector<Pending> out;
  std::map<NcclRank*, size_t> messages;
  for (Pending& p : all) {
    const auto it = messages.find(p.rank.get());
    if (p.op.kind != NcclKind::kMessages || it == messages.end()) {
      if (p.op.kind == NcclKind::kMessages) messages[p.rank.get()] = out.size();
      out.push_back(std::move(p));
      continue;
    }
    auto& first = out[it->second].op.messages;
    first.insert(first.end(), p.op.messages.begin(), p.op.messages.end());
  }
  return out;
}

kiln_nccl_result Put(NcclLock* lock, const Pending& p) {
  if (p.op.kind == NcclKind::kMessages)
    if (const kiln_nccl_result code = CheckMessages(p.rank.get(), p.op)) return code;
  const auto attempt = [rank = p.rank, op = p.op, k = std::make_shared<int64_t>(-1),
                        held = p.recording ? p.rank->recorded : nullptr] {
    const NcclLock held_lock(All().lock);
    return AttemptNccl(rank, k.get(), op);
  };
  if (!p.rank->blocking) ++p.rank->unsettled;
  lock->unlock();
  const int code = All().streams.put(p.stream, attempt);
  lock->lock();
  if (code) return Refused(p.rank.get(), kNcclUnhandledCudaError, "the stream takes no work");
  return p.rank->blocking ? kNcclSuccess : kNcclInProgress;
}

kiln_nccl_result PutAll(NcclLock* lock, std::vector<Pending> all) {
  if (const kiln_nccl_result code = CheckRecordings(all)) return code;
  kiln_nccl_result out = kNcclSuccess;
  for (const Pending& p : Joined(std::move(all))) {
    const kiln_nccl_result code = Put(lock, p);
    if (code != kNcclSuccess && code != kNcclInProgress) return code;
    if (code == kNcclInProgress) out = code;
  }
  return out;
}

kiln_nccl_result Call(const char* name, kiln_nccl_comm comm, void* stream, const NcclOp& op) {
  const int device = All().streams.device_of(stream);
  const void* const recording = device < 0 ? nullptr : All().streams.recording(stream);
  NcclLock lock(All().lock);
  const std::shared_ptr<NcclRank> rank = FindNccl(comm);
  kiln_nccl_result code = BeginNccl(name);
  if (code == kNcclSuccess) code = Check(rank.get(), device, op);
  if (code != kNcclSuccess) {
    if (group_depth > 0) group_error = code;
    return code;
  }
  if (group_depth == 0) return PutAll(&lock, {{rank, stream, recording, op}});
  group.push_back({rank, stream, recording, op});
  return kNcclSuccess;
}

const char* ErrorText(kiln_nccl_result code) {
  constexpr const char* kTexts[] = {"no error",
                                    "unhandled cuda error",
                                    "unhandled system error",
                                    "internal error",
                                    "invalid argument",
                                    "invalid usage",
                                    "remote process exited or there was a network error",
                                    "NCCL operation in progress"};
  return code >= 0 && code < 8 ? kTexts[code] : "unknown result code";
}

const char* LastError(kiln_nccl_comm comm) {
  thread_local std::string text;
  const NcclLock lock(All().lock);
  const auto rank = FindNccl(comm);
  text = rank ? rank->last_error : "";
  return text.c_str();
}

kiln_nccl_result StartGroup() {
  const NcclLock lock(All().lock);
  if (const kiln_nccl_result code = BeginNccl("GroupStart")) return code;
  ++group_depth;
  return kNcclSuccess;
}

kiln_nccl_result EndGroup() {
  NcclLock lock(All().lock);
  const kiln_nccl_result code = BeginNccl("GroupEnd");
  if (group_depth == 0) return kNcclInvalidUsage;
  if (--group_depth > 0) return code;
  std::vector<Pending> all;
  all.swap(group);
  const kiln_nccl_result earlier = group_error;
  group_error = kNcclSuccess;
  if (code != kNcclSuccess || earlier != kNcclSuccess) return code != kNcclSuccess ? code : earlier;
  return PutAll(&lock, std::move(all));
}

NcclOp Messages(bool send, void* data, size_t count, int type, int peer) {
  NcclOp op;
  const size_t width = type >= 0 && type < kTypesOfNccl ? NcclWidth(type) : 0;
  op.messages.push_back({send, data, count * width, type, peer});
  return op;
}

kiln_nccl_library MakeLibrary() {
  kiln_nccl_library out = {};
  out.GetVersion = [](int* version) -> kiln_nccl_result {
    const NcclLock lock(All().lock);
    *version = 22602;
    return BeginNccl("GetVersion");
  };
  out.GetErrorString = ErrorText;
  out.GetLastError = LastError;
  FillCommunicators(&out);
  out.GroupStart = StartGroup;
  out.GroupEnd = EndGroup;
  out.AllReduce = [](const void* from, void* to, size_t n, int type, int op, kiln_nccl_comm comm, void* stream) {
    return Call("AllReduce", comm, stream, {NcclKind::kAllReduce, from, to, n, type, op, 0, {}});
  };
  out.ReduceScatter = [](const void* from, void* to, size_t n, int type, int op, kiln_nccl_comm comm, void* stream) {
    return Call("ReduceScatter", comm, stream, {NcclKind::kReduceScatter, from, to, n, type, op, 0, {}});
  };
  out.AllGather = [](const void* from, void* to, size_t n, int type, kiln_nccl_comm comm, void* stream) {
    return Call("AllGather", comm, stream, {NcclKind::kAllGather, from, to, n, type, 0, 0, {}});
  };
  out.Broadcast = [](const void* from, void* to, size_t n, int type, int root, kiln_nccl_comm comm, void* stream) {
    return Call("Broadcast", comm, stream, {NcclKind::kBroadcast, from, to, n, type, 0, root, {}});
  };
  out.Send = [](const void* from, size_t n, int type, int peer, kiln_nccl_comm comm, void* stream) {
    return Call("Send", comm, stream, Messages(true, const_cast<void*>(from), n, type, peer));
  };
  out.Recv = [](void* to, size_t n, int type, int peer, kiln_nccl_comm comm, void* stream) {
    return Call("Recv", comm, stream, Messages(false, to, n, type, peer));
  };
  return out;
}

}  // namespace

void SetStandInStreams(StandInStreams streams) {
  const NcclLock lock(All().lock);
  All().streams = std::move(streams);
}

const kiln_nccl_library& NcclStandIn() {
  static const auto* library = new kiln_nccl_library(MakeLibrary());
  return *library;
}

std::map<std::string, int64_t> NcclCalls() {
  const NcclLock lock(All().lock);
  return All().calls;
}

void ResetNcclCalls() {
  const NcclLock lock(All().lock);
  All().calls.clear();
  All().failures.clear();
}

void FailNcclCall(const std::string& function, int64_t after, kiln_nccl_result result) {
  const NcclLock lock(All().lock);
  All().failures[function] = {after, result};
}

int64_t LiveNcclComms() {
  const NcclLock lock(All().lock);
  return static_cast<int64_t>(All().live.size());
}

}  // namespace kiln
