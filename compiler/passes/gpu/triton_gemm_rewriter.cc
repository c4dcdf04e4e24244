// Products that no library takes as they are, because an operand is widened from a type that it lacks beside the
// other's (8-bit or 4-bit integers into floats), become one fusion that is computed tile by tile: the array is read in
// its narrow form. So do small products with what their operands are made of and what is made of the result, where a
// call would leave kernels before and behind it, and products that kiln's kernel computes sooner than the library.
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/gpu/product_fusion.h"

namespace kiln {

absl::StatusOr<bool> TritonGemmRewriter(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m)) {
    // Nothing but these stays while others are fused.
    std::vector<Instruction*> products;
    for (Instruction* i : c->PostOrder())
      if (IsCanonicalProduct(i)) products.push_back(i);
    for (Instruction* i : products) changed |= FuseAroundProduct(i, ctx, {.only_own = true}) != nullptr;
  }
  return changed;
}

}  // namespace kiln
