// What it takes a GPU to compute a value wherever it is read, beside computing it once and keeping it in memory.
//
// A producer apart costs a launch, its own pass over memory, and its readers the array. Inside its readers it costs its
// work once for each evaluation, and their reads of what it is made of. Figures are of no one device: a decision is the
// same for all GPUs of an archive.
// Cost: linear in the instructions of the readers.
#pragma once

#include <vector>

#include "compiler/hlo/instruction.h"

namespace kiln {

// The most places of an operand that are followed.
inline constexpr size_t kMostPlaces = 128;

// How many elements of operand `p` kernel `c` evaluates; an element that it evaluates for several uses at one place
// counts once. Infinite where the places are too many to follow.
double ElementsEvaluated(const Instruction* c, const Instruction* p);

// Whether the kernels are faster in all if each of `readers`, all that read `p`, computes `x` itself. `x` is `p`, or
// what `p` reshapes.
bool SavesTimeInside(const Instruction* x, const Instruction* p, const std::vector<Instruction*>& readers);

}  // namespace kiln
