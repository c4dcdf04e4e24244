// Gives the programs of a compile their tables of operations.
#pragma once

#include <vector>

#include "aot/package/fingerprint.h"
#include "aot/targets/target.h"

namespace kiln {

// For CPU programs, where the options ask for names: fills in their operations, numbered through the library, and the
// texts that belong beside the archive.
void NameOps(std::vector<Planned>* programs, Compilation* c);

// The object with the library's operations, for its runtime.
absl::StatusOr<std::string> OpsMember(const CompiledModel& model);

// What decides the code of such programs beside what every program has.
void AddNamedOps(const std::vector<Planned>& programs, const DebugOptions& options, Fingerprint* fingerprint);

}  // namespace kiln
