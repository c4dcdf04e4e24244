// The functions that a StableHLO program offers to be compiled.
//
// What: the names of those that are public, or @main, and that no other public one reaches, in the file's order.
// Guarantees: empty for a file of another form, which has one entry (HLO), and for one that holds operations alone.
// Cost: parses the file.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln {

// `file` is only for messages.
absl::StatusOr<std::vector<std::string>> PublicFunctions(absl::string_view bytes, const std::string& file);

}  // namespace kiln
