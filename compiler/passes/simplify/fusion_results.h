// Results and parameters of loop fusions that nobody reads.
#pragma once

#include "compiler/pass/pass.h"

namespace kiln {

// Takes unread results, and what only they were computed from, out of loop fusions; then the parameters that these
// alone read. A fusion that is left with one result gives it without a tuple. True if any was changed.
bool DropUnreadFusionResults(Module& m, PassContext& ctx);

}  // namespace kiln
