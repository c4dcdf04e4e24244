// Constants that leave the program for a file of weights.
//
// What: large constants of the entry become its last arguments, called constants[0], constants[1], ...; their values go
//   to the file that kiln writes beside the archive. Programs of one library share it, and values that are equal.
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

// Takes constants of at least `bytes` bytes out of the module, in the entry's order, and gives their names. Values that
// are not yet in `file` are added to it.
absl::StatusOr<std::vector<std::string>> TakeWeightConstants(int64_t bytes, std::vector<WeightConstant>* file,
                                                             Module* module);

}  // namespace kiln
