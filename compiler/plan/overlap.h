// Moves sends to where their data is ready, and receives to where something needs theirs: what stands between runs
// while messages are under way, on this device and on the one that waits for them.
//
// Guarantees: the peak does not grow, and whatever communicates keeps its order, so that devices that do not wait for
// one
//   another in the given order do not in the new one.
#pragma once

#include <functional>
#include <vector>

#include "compiler/hlo/instruction.h"

namespace kiln {

using Order = std::vector<Instruction*>;

// Whether it, or something that it calls, has to do with other devices or with the host program.
bool Communicates(const Instruction* i);

// `peak` says what an order takes.
Order Overlapped(Order order, const std::function<int64_t(const Order&)>& peak);

}  // namespace kiln
