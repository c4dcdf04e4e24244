// What kiln does with a file of a user, up to the plan of the program.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "tests/fuzz/mutate/inputs.h"

namespace kiln::mutate {

// Modules are read, verified, printed and read again, and planned by both pipelines, with the module verified after
// each pass and the plan checked; configurations and tuning files are read and a small program is planned with what
// they say; arrays are read as values of several types. Of two mutants of a StableHLO program one has its unbounded
// dimensions settled, by `number`. Internal, or no text: kiln is wrong.
absl::Status Check(Kind kind, const std::string& path, uint64_t number);

// Whether the message of an error begins with `path`, line and column; of a proto, which has no lines, with `path`.
bool HasPlace(Kind kind, absl::string_view message, const std::string& path);

}  // namespace kiln::mutate
