// Objects without the section for code that writers of ELF put into each of them.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace kiln {

// The ELF object `object`, without its section .text where that is empty. Cost: a copy.
absl::StatusOr<std::string> WithoutEmptyText(const std::string& object);

}  // namespace kiln
