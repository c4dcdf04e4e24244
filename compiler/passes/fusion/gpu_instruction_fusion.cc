// Vertical fusion for GPU kernels: as on the CPU, with a bound on a kernel's parameters, with windows up to 8 x 8,
// which one thread reduces wherever they stand, convolutions of few taps (of one feature a group, above all), across
// reshapes and into concatenations: memory costs more than arithmetic on places.
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/vertical_fusion.h"

namespace kiln {

absl::StatusOr<bool> GpuInstructionFusion(Module& m, PassContext& ctx) {
  FusionLimits limits;
  limits.operands = 96;
  limits.window = 64;
  limits.taps = 64;
  limits.repeats = 1 << 23;  // a fraction of a launch, where all of the device takes part
  limits.reshapes = true;
  limits.concatenations = true;
  return FuseVertically(m, ctx, limits);
}

}  // namespace kiln
