// Memory scheduler: an order for every computation that runs, with the smallest peak of live bytes it finds.
//
// Three orders are tried per computation: the list order (greedy: what frees most), depth first, and the post-order of
// the text. Then a search over all orders looks for a better one: the state with the smallest peak so far is extended
// first, so that the first complete order is optimal. It gives up after a fixed number of states, which small graphs
// and long narrow ones never reach. At last sends and receives move apart within the same peak (overlap.h).
// Callees are planned first, so that a loop counts the memory of its body.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

using Schedule = absl::flat_hash_map<const Computation*, std::vector<Instruction*>>;

// What the entry's results count for. In loops and branches results are free: they lie in the caller's values.
enum class ResultMemory {
  kFree,     // they are the caller's memory
  kBorrowed  // that memory serves others until they are written, so that writing them takes it away
};

// An order by names, for a module that is to run much like one that was planned before.
using NamedOrder = absl::flat_hash_map<std::string, std::vector<std::string>>;  // by computation

// Orders of the entry and of every loop body, condition and branch. With `like`, its computations keep that order as
// far as they can; what it does not name runs as late as it may.
Schedule ScheduleModule(const Module& module, ResultMemory results = ResultMemory::kFree,
                        const NamedOrder* like = nullptr);
NamedOrder NamesOf(const Schedule& schedule);

// The largest sum of bytes that the scheduler counts as live while `order` runs; callees count nothing.
int64_t ScheduledPeak(const Computation* c, const std::vector<Instruction*>& order);

}  // namespace kiln
