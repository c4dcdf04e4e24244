// What was decided about a program and why, as data: the source of every report.
//
// Times are in ticks of the schedule (an instruction begins at one and ends at another), sizes in bytes, estimates in
// microseconds of one core (CoreModel) or of a GPU by its description, measured times in microseconds of one run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "aot/compile.h"
#include "compiler/thunk/thunk.h"

namespace kiln {

struct Explanation {
  struct Pass {
    std::string name;
    int64_t runs = 0, changed = 0;
    double ms = 0;
    int64_t instructions = 0;                 // that it added, or removed if negative
    std::map<std::string, int64_t> rewrites;  // how often each that has a name was made
  };
  struct Buffer {
    std::string owner, shape;
    std::string place;  // "arena", or "result N" that it borrows
    int64_t offset = 0, bytes = 0, begin = 0, end = 0;
  };
  struct Kernel {
    std::string name, opcode, shape;
    std::vector<std::string> operations;  // inside a fusion, by count: "multiply x3"
    std::vector<size_t> reads;            // kernels of the same computation whose results it takes
    int64_t depth = 0;                    // loops and branches around it
    int64_t line = 0;                     // of the source; 0 if unknown
    int64_t runs = 0;                     // in one run of the program, where loops are counted
    int64_t flops = 0, bytes = 0;         // of one
    double estimated_us = 0;              // of all
    double measured_us = 0;               // of all, without what is nested; 0 if the program was not run
    std::string op_name, source;          // the user's scopes and line; empty if unknown
  };
  // Between devices.
  struct Exchange {
    std::string name, kind;
    std::string transport, how;  // "nccl", "host" (a GPU's, through a kiln_comm) or "kiln_comm", and what that does
    int64_t bytes = 0;           // of one device: the larger of what it gives and what it gets
    int64_t members = 0, groups = 0;
    int64_t runs = 0;
    // What the device does while it is under way: how many operations, the first and the last of them, and how long
    // they are estimated to take together each time.
    int64_t beside = 0;
    std::string first, last;
    double beside_us = 0;
  };
  struct Weight {
    std::string name, shape;
    int64_t bytes = 0;
  };

  std::string name;
  std::string device = "one core";  // that the estimates are of, or "NVIDIA H100 (sm_90)"
  int64_t arguments = 0, results = 0, temp_bytes = 0, slow_bytes = 0, peak_tick = 0;
  bool on_gpu = false;
  // What the arena of `slow_bytes` is called.
  const char* SlowArena() const { return on_gpu ? "arena in the host's memory" : "slow arena"; }
  int64_t argument_bytes = 0, result_bytes = 0;
  int64_t max_arena_bytes = 0;  // the config's; 0: none
  int64_t flops = 0, bytes_accessed = 0;
  std::vector<int64_t> arena_use;  // by tick
  std::vector<std::string> ticks;  // what runs at each
  std::vector<bool> works;         // whether that is a step of a run, and no name for what is there already
  std::vector<Buffer> buffers;
  std::vector<Kernel> kernels;  // operations in the order of the schedule; equal ones share code
  std::vector<Exchange> exchanges;
  int64_t distinct_kernels = 0;
  std::vector<Weight> weights;            // constants that the archive holds, largest first
  std::vector<Pass> passes;               // in the order of first use
  std::vector<std::string> pass_changes;  // of the config
  std::vector<RematerializeStep> rematerialized;
  double measured_us = 0;  // of a whole run; 0 if it was not run
};

// `uses`: the same exchanges, in the order of the thunks.
std::vector<Explanation::Exchange> ExchangesOf(const ThunkSequence& thunks, const Module& m,
                                               const std::vector<CollectiveUse>& uses,
                                               const std::vector<Explanation::Kernel>& kernels);

// The program for the CPU, or if the options name no level for one, for the first GPU that they name.
absl::StatusOr<Explanation> Explain(std::unique_ptr<Module> module, const CompileOptions& options);

std::string ExplainInText(const Explanation& e);
// One line: all but the arena's use over time.
std::string ExplainInJson(const Explanation& e);
// One self-contained page: nothing fetched, and complete without its script, which sorts tables.
std::string ExplainInHtml(const Explanation& e);

}  // namespace kiln
