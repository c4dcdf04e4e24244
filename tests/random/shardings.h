// Random shardings for a module of one device, whose results they must not change.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// Makes `m` a program of `partitions` and says of some of its arrays how they are cut: along several dimensions or
// none, evenly or not, in several orders of devices, with copies or without. The same for the same seed.
void AddShardings(Module* m, uint64_t seed, int64_t partitions);

}  // namespace kiln
