// StableHLO's portable artifacts: MLIR bytecode of the versioned dialect, as jax.export and its peers serialize it.
//
// What: the same tree that the reader of text builds, so that one importer serves both.
// Guarantees: reads MLIR bytecode 0 to 6 and every VHLO version that it carries; bytes that are no such artifact give
//   one error, whose column is the byte (counted from one).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/import/mlir.h"

namespace kiln {

inline constexpr absl::string_view kBytecodeMagic = "ML\xefR";

// The artifact inside what jax.export's Exported.serialize writes; empty if `bytes` is nothing of that kind.
absl::string_view ArtifactOfExported(absl::string_view bytes);
// The platforms that it was exported for, in its order.
std::vector<std::string> PlatformsOfExported(absl::string_view bytes);
absl::StatusOr<mlir::Program> ParseBytecode(absl::string_view bytes, const std::string& file);

}  // namespace kiln
