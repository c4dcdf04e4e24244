// A shared object of models, for programs that load what they were not compiled with (runtime_min/kiln.h).
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace kiln {

// Links libraries that kiln compiled, given by their files, into one shared object that shows `kiln_models`. The file
// is there, whole, or not at all.
absl::Status LinkModels(const std::vector<std::string>& archives, const std::string& path);

}  // namespace kiln
