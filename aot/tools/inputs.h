// Arrays that a command is given as files.
#pragma once

#include <string>
#include <vector>

#include "compiler/hlo/literal.h"
#include "compiler/import/import.h"

namespace kiln {

// A row for each of several replicas.
Shape Stacked(const Shape& row, int64_t rows);

// What inputs settle of what a program leaves open: extents, and the values of integer scalars.
absl::StatusOr<ImportOptions> SettleFromInputs(const std::vector<std::string>& files);

// One array for each flattened argument of `module`, whose dimensions are static (MakeStatic). Sizes that no file gives
// are those of full arrays. `rows`: every file holds a row for each replica.
absl::StatusOr<std::vector<Literal>> ReadInputs(const std::vector<std::string>& files, const Module& module,
                                                bool rows = false);

}  // namespace kiln
