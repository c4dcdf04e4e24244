// One form for programs that mean the same: whatever its file lists first, and whether it states what goes without
// saying.
//
// Why: StableHLO lists operations as they were traced, HLO as its printer walked them, with a layout on every array.
//   Passes and the scheduler break ties by position, and some wait for layouts to be decided, so equal programs would
//   become archives of different bytes, some of them slower.
// Guarantees: parameters by number, then operands before users, the root's first and each from left to right; callees
//   before callers; no row-major layouts. Names, locations and attributes stay. A module with a schedule stays as it
//   is.
// Cost: linear in the module.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

void PutInCanonicalForm(Module* module);

}  // namespace kiln
