// Safetensors files: what a library takes its weights from.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "aot/weight_constants.h"

namespace kiln {

// The pieces of a file with these arrays, whose types must be safetensors' own: `header` becomes the first, the arrays'
// bytes, which are not copied, follow. Each is aligned to its elements.
std::vector<absl::string_view> SafetensorsPieces(const std::vector<WeightConstant>& arrays, std::string* header);

}  // namespace kiln
