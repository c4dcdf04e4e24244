// What conditionals give and take without need. Each function edits one conditional, or asks for nothing.
//
// Guarantees: branches that other instructions call stay as they are; an edited branch is a copy.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// Results that every branch makes of the same value: readers of the later one read the first.
bool UnifyEqualResults(Instruction* conditional);
// Results that nobody reads leave the tuple: the new conditional, in place of the old one; null if all are read.
Instruction* WithoutUnreadResults(Instruction* conditional);
// Elements of their tuple that branches do not read are not handed to them.
bool DropUnreadOperands(Instruction* conditional);

}  // namespace kiln
