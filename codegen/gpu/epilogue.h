// Elementwise operations behind a kernel's hero, the product or reduction for which it is made.
#pragma once

#include "codegen/elemental/element.h"

namespace kiln::gpu {

// The one reduction of which `root` is an elementwise function, seen through reshapes; null if there is none, or if
// `root` also reads it elsewhere than at its own place.
const Instruction* ReduceBehind(const Instruction* root);

// A value that is a sum of products, or one of them.
struct ProductSum {
  const Instruction* value;
  std::vector<const Instruction*> products;
};
// Those of which `root` is made, each as large as it is; all have their elements in one order.
std::vector<ProductSum> SumsBehind(const Instruction* root);

// Where `root` holds what it makes of the element of `hero` at `at`: it may have other extents, or the dimensions in
// another order.
Index PlaceInRoot(ElementEmitter& elements, const Instruction* root, const Instruction* hero, Index at);

}  // namespace kiln::gpu
