// Files that belong together, written so that a failure leaves the old ones.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace kiln {

struct OutputFile {
  std::string path;
  std::vector<absl::string_view> pieces;  // of its contents, in order
};

// Writes all under other names beside their paths, then gives them their names. Nothing of a file that cannot be
// written is left, and only a name that the system refuses then leaves files of two products side by side; these do not
// link.
absl::Status WriteFiles(const std::vector<OutputFile>& files);

}  // namespace kiln
