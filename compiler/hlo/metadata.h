// Fields of an instruction's metadata, and of the tables that stand before HLO's computations.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace kiln {

// The value of `key` in text such as {op_name="jit(f)/add" source_line=7}: a number, or a string without its quotes and
// escapes; empty if there is none, or the text is not of this form.
std::string MetadataField(absl::string_view text, absl::string_view key);

}  // namespace kiln
