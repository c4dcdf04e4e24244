// A library that stands in for NCCL, for tests: its ranks are threads of one process, its devices' memory is the
// host's.
//
// What: the functions that programs ask NCCL for (runtime_min/gpu/nccl/nccl_abi.h), which do what NCCL's do. Reductions
//   begin at another rank for each block, as those of a ring do.
// Refuses: what NCCL refuses, with the result that it has for it; and what leaves NCCL waiting or undefined: counts,
// types
//   or operations that differ between ranks, arrays that overlap other than in place, calls on a communicator before
//   the previous one was put on its stream, communicators that are made while their device is recorded or given up
//   before the graphs that hold their calls.
// Streams are those of whoever runs the ranks (StandInStreams).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "runtime_min/gpu/nccl/nccl_abi.h"

namespace kiln {

// What an attempt at some work on a stream came to, besides 0, which is done.
enum NcclAttempt { kNcclNotYet = -1, kNcclBroken = -2 };  // other ranks have not come; and will not

struct StandInStreams {
  // The device that the calling thread uses, and that of a stream; -1: it is no stream.
  std::function<int()> current_device;
  std::function<int(void* stream)> device_of;
  // The graph that the stream is recorded in; null: none. And whether streams of a device are.
  std::function<const void*(void* stream)> recording;
  std::function<bool(int device)> device_recorded;
  // Puts work on a stream, or into its recording: it is attempted until it comes to something. Not 0: it cannot be put.
  std::function<int(void* stream, std::function<int()> attempt)> put;
};

// Of the whole process; before the first call.
void SetStandInStreams(StandInStreams streams);

const kiln_nccl_library& NcclStandIn();

// What happened, by function ("AllReduce"), and what shall: a function that returns a result once, after so many more
// calls of it.
std::map<std::string, int64_t> NcclCalls();
void ResetNcclCalls();
void FailNcclCall(const std::string& function, int64_t after, kiln_nccl_result result);
// Communicators that exist.
int64_t LiveNcclComms();

}  // namespace kiln
