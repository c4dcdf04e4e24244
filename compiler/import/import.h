// Reads a module in any form kiln accepts, recognised by content: HLO text, HLO protos (binary or text), StableHLO
// text, StableHLO's portable bytecode (bare, or as jax.export wraps it).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

// What the user says of a program: its entry, and what settles its unbounded dimensions.
struct ImportOptions {
  // Shapes of the entry's arguments; empty: the program's own.
  std::vector<Shape> argument_shapes;
  // Values of integer arguments that may state extents, by argument.
  absl::flat_hash_map<int64_t, int64_t> argument_values;
  // The extent of every unbounded dimension, and the value of every argument that states one; -1: none.
  int64_t dim = -1;
  // The function to begin with; empty: @main, or the only one that stands alone.
  std::string entry;
  // Of a program for several platforms the number, among these, of the one that it is read for; -1: an argument.
  int64_t platform = -1;
  Limits limits;
};

// `file` is only for messages. The result is parsed, not verified.
absl::StatusOr<std::unique_ptr<Module>> ImportModule(absl::string_view bytes, const std::string& file,
                                                     const ImportOptions& options = {});
// Reads, imports and verifies a file ("-" is standard input).
absl::StatusOr<std::unique_ptr<Module>> LoadModule(const std::string& path, const ImportOptions& options = {});

// The same for modules that are printed or checked, and not compiled: HLO text may have constants whose elements were
// elided, dimensions without a bound, and what kiln has no code for.
absl::StatusOr<std::unique_ptr<Module>> LoadModuleToLookAt(const std::string& path, const ImportOptions& options = {});

// The readers behind it.
absl::StatusOr<std::unique_ptr<Module>> ImportStableHlo(absl::string_view text, const std::string& file,
                                                        const ImportOptions& options = {});
absl::StatusOr<std::unique_ptr<Module>> ImportBytecode(absl::string_view bytes, const std::string& file,
                                                       const ImportOptions& options = {});
absl::StatusOr<std::unique_ptr<Module>> ImportHloProto(absl::string_view bytes, const std::string& file,
                                                       const Limits& limits = {});

}  // namespace kiln
