// The order of a scheduled module, and what is left of it once passes have rewritten the module.
#pragma once

#include "compiler/plan/schedule.h"

namespace kiln {

// Where instructions stand by name, callees in the place of their callers.
using WrittenOrder = absl::flat_hash_map<std::string, int64_t>;
WrittenOrder WrittenOrderOf(const Module& module);

// For ScheduleModule. A fusion stands where the last of what it holds stood.
NamedOrder Followed(const WrittenOrder& written, const Module& module);

}  // namespace kiln
