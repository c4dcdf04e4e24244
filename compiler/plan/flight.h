// Exchanges between devices that take place while the devices compute.
//
// What: an order of a computation in which such an exchange begins one exchange ahead of its use, and its results are
//   used one exchange later; how long what it reads has to stay for that; and an order in which results of small
//   exchanges, which are copied when they begin, are used late.
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

// What reads results of smaller exchanges, and touches fewer bytes itself, waits until something needs it: no device
// waits for another only to scale a loss.
Order SmallResultsLate(const Order& order, int64_t small_bytes);

Flights FlightsOf(const Schedule& schedule, int64_t least_bytes);

}  // namespace kiln
