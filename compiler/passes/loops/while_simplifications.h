// The parts of simplify-while-loops. Each edits one loop, says whether it did, and asks for nothing.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// A state of nested tuples becomes one flat tuple: the new loop; null if it is flat already.
Instruction* FlattenState(Instruction* loop);

// Of loops that own their bodies:
// Elements that start equal and go on equal: readers of the later one read the first.
bool UnifyDuplicates(Instruction* loop);
// Body and condition read numbers that start as constants and stay as they are from constants of their own.
bool ReadConstantsInside(Instruction* loop);
// Elements that start as a constant which every iteration gives again are that constant wherever they are read.
bool ForwardConstants(Instruction* loop);
// Integers that grow by constants are computed from one of them that starts at a constant.
bool MergeInductions(Instruction* loop);

}  // namespace kiln
