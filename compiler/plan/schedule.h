// Memory scheduler: an order for every computation that runs, with the smallest peak of live bytes it finds.
//
// Three orders are tried per computation: the list order (greedy: what frees most), depth first, and the post-order of
// the text; the one with the smallest simulated peak wins. Callees are planned first, so that a loop counts the
// memory of its body.
#pragma once

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

using Schedule = absl::flat_hash_map<const Computation*, std::vector<Instruction*>>;

// Orders of the entry and of every loop body, condition and branch.
Schedule ScheduleModule(const Module& module);

}  // namespace kiln
