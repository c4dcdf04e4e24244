// How often loops run whose condition is no plain comparison of a counter.
//
// What: computes integers of a loop's state iteration by iteration, where they are made of nothing but constants.
// Guarantees: a count is what every run makes; where anything else decides, there is none.
// Cost: at most 64 scalar operations for each iteration that is followed.
#pragma once

#include <optional>

#include "compiler/hlo/instruction.h"

namespace kiln {

// How often the loop runs, if that is known and at most `most` times.
std::optional<int64_t> CountTrips(const Instruction* loop, int64_t most);

// Whether the loop is known not to run a second time, whatever it starts with.
bool RunsAtMostOnce(const Instruction* loop);

// The one element that the condition reads, if its next value is made of itself and constants alone; -1 otherwise.
int64_t DecidingElement(const Instruction* loop);

}  // namespace kiln
