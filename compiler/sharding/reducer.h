// Whether the parts of what is reduced may be reduced apart from each other.
//
// What: proves of a reduction's function that it may be applied in another order, by its values as expressions
//   (exact_number.h) of three operands in every order that what it compares may have, ties among them.
// Guarantees: a function that passes gives the same but for rounding, whatever finite numbers are reduced. One that
//   does not may still be associative.
// Reach: (max, sum of exponentials), (mean, squares, count), complex and matrix products, linear recurrences, the
//   greatest and its index, logaddexp, and their like.
// Cost: the function's operations some hundred times for each number that it compares; a function of more than one
//   operation only.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln {

// Results of stretches of elements that are reduced each from the initial values, and then again from the initial
// values, are the results of all: f(f(i, a), b) and the like for any order of elements where more than one dimension
// goes, else for stretches in their order.
bool IsReducedByParts(const Instruction& reduce);

// Whether a reduction that is made of those of its parts gives the same where the initial values, or what changes
// nothing, stand behind the elements of a part, or are all of it.
bool MayBePadded(const Instruction& reduce);

}  // namespace kiln
