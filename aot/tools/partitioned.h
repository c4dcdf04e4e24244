// Programs over whole arrays that are partitioned, as commands run them: whole arguments in, whole results out.
#pragma once

#include <vector>

#include "compiler/base/status.h"
#include "compiler/sharding/partitioned_entry.h"

namespace kiln {

// Does what compiling does to a program with shardings, up to the program of one device. Leaves others alone.
absl::Status PartitionProgram(Module* module);

// What device `partition` is given of whole arguments.
std::vector<Literal> PartsOfArguments(const PartitionedEntry& entry, const Module& module,
                                      const std::vector<Literal>& whole, int64_t partition);
// Puts whole results in the place of parts. `parts`: the results of each partition; what is written for each device in
// particular stays.
void JoinResults(const PartitionedEntry& entry, std::vector<std::vector<Literal>>* parts);

}  // namespace kiln
