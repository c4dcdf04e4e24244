// Reads a module in any form kiln accepts, recognised by content: HLO text, HLO protos (binary or text), StableHLO
// text.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

// `file` is only for messages. The result is parsed, not verified.
absl::StatusOr<std::unique_ptr<Module>> ImportModule(absl::string_view bytes, const std::string& file);
// Reads, imports and verifies a file ("-" is standard input).
absl::StatusOr<std::unique_ptr<Module>> LoadModule(const std::string& path);

// The readers behind it.
absl::StatusOr<std::unique_ptr<Module>> ImportStableHlo(absl::string_view text, const std::string& file);
absl::StatusOr<std::unique_ptr<Module>> ImportHloProto(absl::string_view bytes, const std::string& file);

}  // namespace kiln
