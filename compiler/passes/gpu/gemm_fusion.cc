// Products that no library took, convolutions among them, take along what follows them: bias, activation, residual. For
// kiln's own kernels, behind the passes that make library calls.
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/gpu/product_fusion.h"

namespace kiln {

absl::StatusOr<bool> GemmFusion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m)) {
    std::vector<Instruction*> products;
    for (Instruction* i : c->PostOrder())
      if (IsCanonicalProduct(i) || IsConvolutionAsProduct(i)) products.push_back(i);
    for (Instruction* i : products) changed |= FuseAroundProduct(i, ctx) != nullptr;
  }
  return changed;
}

}  // namespace kiln
