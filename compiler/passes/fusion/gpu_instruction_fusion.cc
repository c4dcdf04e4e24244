// Vertical fusion for GPU kernels: as on the CPU, with a bound on a kernel's parameters.
#include "compiler/passes/fusion/vertical_fusion.h"
#include "compiler/pipeline/registry.h"

namespace kiln {

absl::StatusOr<bool> GpuInstructionFusion(Module& m, PassContext& ctx) {
  FusionLimits limits;
  limits.operands = 96;
  return FuseVertically(m, ctx, limits);
}

}  // namespace kiln
