// Reads HLO text.
//
// What: `HloModule` text in every form XLA prints: layouts with tiling, shardings, metadata, schedules, async sugar,
//   nested tuples, aliasing tables, large constants.
// Guarantees: any input ends in a module or in one InvalidArgument "file:line:col: error: ..."; never a crash; time
//   and memory linear in the input. Attributes that kiln only carries are kept as written, whitespace normalised.
// Not checked here: shapes and graph rules (verify.h).
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

absl::StatusOr<std::unique_ptr<Module>> ParseHlo(absl::string_view text, const std::string& file,
                                                 const Limits& limits = {});
// For tools that print modules and run none: constants printed as `{...}` are read too, hold stand-ins, and are printed
// as `{...}` again.
absl::StatusOr<std::unique_ptr<Module>> ParseHloToLookAt(absl::string_view text, const std::string& file,
                                                         const Limits& limits = {});

// One shape, such as "(f32[2,3]{1,0}, pred[])".
absl::StatusOr<Shape> ParseShape(absl::string_view text);

}  // namespace kiln
