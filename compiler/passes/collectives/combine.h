// Combining of collectives: several of one kind, key and neighbourhood become one with as many operands.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "compiler/pass/pass.h"

namespace kiln {

// Of each computation, again and again: the first instruction with a key opens a group, later ones of the same key join
// it until one depends on a member or a limit is reached, and a group of two or more becomes one instruction. Modules
// with a layout-constrained collective of the kind are left alone.
absl::StatusOr<bool> CombineCollectives(Module& m, PassContext& ctx, Opcode op, const CombineLimits& limits,
                                        const std::function<std::optional<std::string>(const Instruction*)>& key);

// What every collective's key holds: element type, groups, and how they are numbered.
std::string GroupingKey(const Instruction* collective);
// Opcode of a reducer of two parameters and one operation; nullopt for others.
std::optional<std::string> ReducerKey(const Instruction* collective);

}  // namespace kiln
