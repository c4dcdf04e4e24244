// Equal computations as one.
#pragma once

#include <functional>

#include "compiler/pass/pass.h"

namespace kiln {

// Of computations for which may(c): the first of each text takes the place of the others. True if any went.
bool UnifyComputations(Module& m, PassContext& ctx, const std::function<bool(const Computation*)>& may);

}  // namespace kiln
