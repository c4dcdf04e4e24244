// Elements of short rows in memory, a row to a lane, that vectors are gathered from or scattered to.
#pragma once

#include "llvm/IR/Function.h"

namespace kiln {

// Reads such rows each with one load, and turns them in registers; writes them likewise. Only where that is less than a
// load or a store for each lane, and nothing but what is under a mask may be read or written besides.
void TurnShortRows(llvm::Function& f);

}  // namespace kiln
