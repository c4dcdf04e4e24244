// Exchanges of large arrays between devices that take place while the devices compute.
//
// What: an order of a computation in which such an exchange begins one exchange ahead of its use, and its results are
//   used one exchange later; and how long what it reads has to stay for that.
// Guarantees: exchanges move only past work and past other exchanges, by the same rules on every device, so that no
//   device waits for another that waits for it.
// Cost: what is under way at one time, one exchange more than before: PlanMemory decides whether that is worth it.
#pragma once

#include "absl/container/flat_hash_map.h"
#include "compiler/plan/overlap.h"
#include "compiler/plan/schedule.h"

namespace kiln {

// Exchanges that fly, each with the instruction in front of which it lands: the first of its computation that reads its
// results, or null where none does before the computation ends.
using Flights = absl::flat_hash_map<const Instruction*, const Instruction*>;

// Whether it is an exchange of arrays that take `least_bytes` or more together.
bool IsLargeExchange(const Instruction* i, int64_t least_bytes);

struct FlightRule {
  int64_t least_bytes = INT64_MAX;
  bool ahead = false, behind = false;  // begins earlier, ends later
};
Order InFlight(const Order& order, const FlightRule& rule);
Flights FlightsOf(const Schedule& schedule, int64_t least_bytes);

}  // namespace kiln
