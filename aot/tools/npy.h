// .npy files, C order, as the command-line contract stores each element type.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/hlo/literal.h"

namespace kiln {

// Reads a file as a value of `shape`. bf16 and f8 come as their bits or as float32; 4-bit integers as int8 or uint8.
absl::StatusOr<Literal> ReadNpy(const std::string& path, const Shape& shape);
absl::Status WriteNpy(const std::string& path, const Literal& value);

}  // namespace kiln
