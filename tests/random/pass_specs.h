// What must hold of a pass, by name, on one random module: the specs of docs/architecture.md's stages and the promises
// of compiler/pass/pass.h.
#pragma once

#include <functional>
#include <string>

#include "compiler/pass/pass.h"

namespace kiln {

// Told of each violation: which spec, and what is wrong with the modules before and after.
using OnViolation = std::function<void(const std::string& spec, const std::string& what)>;

// Runs `pass` alone on the module of `seed`. Modules with a number of certain remainders carry layouts, control edges
// or shardings.
void CheckPassAlone(const PassInfo& pass, uint64_t seed, const OnViolation& tell);

// Runs both pipelines and the planner on the module of `seed` and checks the specs behind every pass that changed it.
void CheckPassesInPlace(uint64_t seed, const OnViolation& tell);

}  // namespace kiln
