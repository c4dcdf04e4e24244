// `mhlo.sharding` of StableHLO programs.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace kiln {

// The sharding that a value of mhlo.sharding states, as HLO text. Programs of 2022 hold a serialized OpSharding in the
// place of text. Empty: it states none.
std::string ShardingOfMhlo(absl::string_view value);

}  // namespace kiln
