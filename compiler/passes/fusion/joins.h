// Which loops take in arrays that are joined: those that can end wherever one array follows another.
//
// Cost: linear in the instructions of the loop.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// Whether pad `i` puts anything between the elements of rows.
bool LeavesHolesInRows(const Instruction* i);

// Whether the loop of `c` computes nothing but places to read.
bool OnlyMoves(const Instruction* c);

// Whether a loop over what pad `i` gives comes by more often than its operand has elements.
bool LeavesHoles(const Instruction* i);

// Where only extents of 1 differ. A bitcast that says something of another layout stays outside: loops find their
// elements in row-major arrays with less arithmetic.
bool DegenerateBitcast(const Instruction* i);

// Whether the innermost dimension stays innermost.
bool KeepsRows(const Instruction* transpose);

// Places where joined arrays meet along the innermost dimension, each of which ends a loop.
int64_t Meetings(const Instruction* i);

// Joined arrays in several rows.
bool JoinsPieces(const Instruction* p);

// A loop over elements that visits those of its operands as they lie.
bool ReadsInOrder(const Instruction* c);

// Whether `c` gathers from `p` no more than would be joined for it and read again.
bool GathersFew(const Instruction* c, const Instruction* p);

}  // namespace kiln
