// Elementwise operations behind a kernel's hero, the product or reduction for which it is made.
#pragma once

#include "codegen/elemental/element.h"

namespace kiln::gpu {

// The one reduction of which `root` is an elementwise function, seen through reshapes; null if there is none.
const Instruction* ReduceBehind(const Instruction* root);

// Where the root of `f` holds what it makes of the element of `hero` at `at`: it may have other extents, or the
// dimensions in another order.
Index PlaceInRoot(ElementEmitter& elements, const Computation& f, const Instruction* hero, Index at);

}  // namespace kiln::gpu
