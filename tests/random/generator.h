// Random valid HLO modules whose results are exact: small integers in every type, kept small, so that any order of
// evaluation gives the same bits and every difference is a bug.
#pragma once

#include <memory>

#include "compiler/hlo/instruction.h"

namespace kiln {

// The same module for the same seed on every machine.
std::unique_ptr<Module> RandomModule(uint64_t seed);

}  // namespace kiln
