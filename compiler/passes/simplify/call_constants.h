// Constants that every caller of a function passes.
#pragma once

#include "compiler/pass/pass.h"

namespace kiln {

// Where all calls of a function pass equal constants for a parameter, the function reads the constant instead; the
// parameter stays, without users. True if any did.
bool FoldCallArguments(Module& m, PassContext& ctx);

}  // namespace kiln
