// Ranks of the stand-in for NCCL that meet: communicators, and the operations that their ranks put on streams.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "aot/emulator/nccl_stand_in.h"

namespace kiln {

enum class NcclKind { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kMessages };

// One send or receive.
struct NcclMessage {
  bool send;
  void* data;
  size_t bytes;
  int type, peer;
};

// One operation of one rank.
struct NcclOp {
  NcclKind kind = NcclKind::kMessages;
  const void* from = nullptr;
  void* to = nullptr;
  size_t count = 0;
  int type = 0, op = 0, root = 0;
  std::vector<NcclMessage> messages;
};

struct NcclWorld;

// A rank's side of a communicator.
struct NcclRank {
  std::shared_ptr<NcclWorld> world;
  int rank = 0, device = 0;
  bool blocking = true, aborted = false, finalized = false;
  int unsettled = 0;  // answers "in progress" that are left to give
  int64_t begun = 0;  // operations that its stream came to
  std::string last_error;
  std::shared_ptr<int> recorded = std::make_shared<int>(0);  // held by calls in graphs
};

// What all ranks of a communicator put on their streams as their k-th operation.
struct NcclMeeting {
  std::vector<NcclOp> ops;
  std::vector<bool> here;
  int arrived = 0, left = 0;
  bool done = false;
};

// A split that some ranks have asked for.
struct NcclSplit {
  std::vector<int> color, key;
  std::vector<kiln_nccl_comm*> out;
  std::vector<bool> here;
  int arrived = 0;
};

struct NcclWorld {
  int size = 0;
  std::vector<std::shared_ptr<NcclRank>> ranks;
  int joined = 0, left = 0;
  kiln_nccl_result failure = kNcclSuccess;  // what every rank's asynchronous error is
  std::string why;
  std::map<int64_t, NcclMeeting> meetings;
  std::map<int64_t, NcclSplit> splits;
  // Messages by sender and receiver, in order.
  std::map<std::pair<int, int>, std::deque<NcclMessage>> sent, wanted;
};

size_t NcclWidth(int type);
// Computes what the ranks of a meeting gave; 0, or why their operations do not fit.
std::string Perform(const NcclMeeting& meeting);
// Attempts an operation of the rank, which is number `k` among its operations once it has begun, and -1 before and
// behind that. The lock is held.
int AttemptNccl(const std::shared_ptr<NcclRank>& rank, int64_t* k, const NcclOp& op);

// Everything that the stand-in knows. Its lock is taken behind that of whoever has the streams, so streams are asked
// without it.
struct NcclState {
  std::mutex lock;
  StandInStreams streams;
  std::map<NcclRank*, std::shared_ptr<NcclRank>> live;
  std::map<std::string, std::weak_ptr<NcclWorld>> worlds;  // by id
  std::map<NcclRank*, int64_t> splits;                     // that a rank has asked for
  std::map<std::string, int64_t> calls;
  std::map<std::string, std::pair<int64_t, kiln_nccl_result>> failures;  // after so many more calls
  uint64_t ids = 0;
};
NcclState& All();
using NcclLock = std::unique_lock<std::mutex>;

// The lock is held. How a function begins: it counts, and may be one that the test lets fail.
kiln_nccl_result BeginNccl(const char* name);
std::shared_ptr<NcclRank> FindNccl(kiln_nccl_comm comm);
// `result`, of which the rank knows the reason.
kiln_nccl_result Refused(NcclRank* rank, kiln_nccl_result result, const std::string& why);
// Success for a communicator that may be called now.
kiln_nccl_result Usable(NcclRank* rank);

// nccl_comms.cc: puts the functions of communicators into the table.
void FillCommunicators(kiln_nccl_library* out);

}  // namespace kiln
