// Constants that leave the program for a file of weights.
//
// What: large constants of the entry become its last arguments, called constants[0], constants[1], ...; their values go
//   to the file that kiln writes beside the archive.
// Guarantees: the program computes the same for these values. Constants inside loops and branches stay.
// Cost: such a constant is not folded into others, and not packed for products, when the program is compiled.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

struct WeightConstant {
  std::string name;  // in the file
  Literal value;
};

// Of constants of at least `bytes` bytes, in the entry's order.
absl::StatusOr<std::vector<WeightConstant>> TakeWeightConstants(int64_t bytes, Module* module);

// Whether both lists say the same: variants of a program share a file.
bool SameConstants(const std::vector<WeightConstant>& a, const std::vector<WeightConstant>& b);

}  // namespace kiln
