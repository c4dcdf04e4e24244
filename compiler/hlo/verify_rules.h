// The verifier's groups of rules (verify.h); for verify*.cc alone. Each returns the first that is broken.
#pragma once

#include "compiler/hlo/verify.h"

namespace kiln::verify {

absl::Status CheckStructure(const Module& m);        // verify_structure.cc: operands, cycles, calls
absl::Status CheckAttributes(const Instruction& i);  // verify_attributes.cc: which an opcode takes, and their ranges
// verify_collectives.cc. `as_written`: counts of devices and groups are still the front end's.
absl::Status CheckCollective(const Instruction* i, bool as_written);
absl::Status CheckChannels(const Module& m);
absl::Status CheckSharding(const Instruction* i);  // verify_shardings.cc
absl::Status CheckHeader(const Module& m);         // verify_header.cc: the HloModule line

}  // namespace kiln::verify
