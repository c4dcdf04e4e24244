// Results of a fusion that are computed alike, of other arrays: one piece of code serves them all.
//
// What: groups results whose instructions are the same from their parameters on, and says which parameter of one is
//   which of another.
// Guarantees: shapes, attributes and constants are equal; which arrays are read is all that differs. Results keep their
//   order in a group, and groups that of their first results.
// Cost: linear in the instructions for each group that there is.
#pragma once

#include <vector>

#include "compiler/hlo/instruction.h"

namespace kiln {

// Results by number, and for each of them the parameter's number that stands for each one of the fused computation
// where the first result reads this; its own for what the first does not read.
struct Alike {
  std::vector<size_t> results;
  std::vector<std::vector<size_t>> parameters;
};

std::vector<Alike> GroupAlike(const Computation& f, const std::vector<const Instruction*>& roots);

}  // namespace kiln
