// What program is running, as text.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace kiln {

// The build ID of this program and of each library that it has loaded, in their order; the SHA-256 of the file for one
// without a build ID. What two programs of one identity compute is the same, whatever versions they say they are.
absl::StatusOr<std::string> BuildIdentity();

}  // namespace kiln
