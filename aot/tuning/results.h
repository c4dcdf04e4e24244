// Reads the files of tuning.proto.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/gpu/library_call.h"
#include "compiler/hlo/tuning.h"

namespace kiln {

// The results of all files and of `known` (null: none) together, without what `denylist` (empty: none) names. Errors
// name file and line. `words`, if given, gets what the files say of libraries' algorithms, and `texts` also gets the
// files as they were read.
absl::StatusOr<std::shared_ptr<const TuningResults>> LoadTuning(const std::vector<std::string>& files,
                                                                const std::string& denylist,
                                                                const TuningResults* known = nullptr,
                                                                gpu::LibraryAlgorithms* words = nullptr,
                                                                std::vector<std::string>* texts = nullptr);

}  // namespace kiln
