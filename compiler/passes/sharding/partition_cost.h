// What one device's program costs beside another partition of the same program.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// In bytes that a device writes: exchanges count for more, and products for what they compute. Loops count some
// iterations where it is not known how many there are.
double CostOfPartition(const Module& m);

}  // namespace kiln
