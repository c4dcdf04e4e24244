// Unrolling of whole loops, which two passes choose by different rules.
#pragma once

#include <functional>

#include "compiler/pass/pass.h"

namespace kiln {

// Loops of a known number of iterations, at least one, that wanted(loop, iterations) become their bodies, one behind
// the other; inner loops first. Loops with side effects or control edges, and those whose state does not start as a
// tuple, stay. True if any was unrolled.
bool UnrollLoops(Module& m, PassContext& ctx,
                 const std::function<bool(const Instruction* loop, int64_t iterations)>& wanted);

}  // namespace kiln
