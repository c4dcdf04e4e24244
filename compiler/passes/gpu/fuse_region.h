// A part of a computation as one fusion, with as many results as are read outside.
#pragma once

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

// A fusion of kind kCustom with copies of `members`, which gives `outputs`; these are members. Members that nobody
// needs any more go. Whoever calls makes sure that no reader of an output is needed by a member.
Instruction* FuseRegion(const std::vector<Instruction*>& outputs,
                        const absl::flat_hash_set<const Instruction*>& members);

}  // namespace kiln
