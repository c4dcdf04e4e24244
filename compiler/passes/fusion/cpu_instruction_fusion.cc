#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/vertical_fusion.h"

namespace kiln {

absl::StatusOr<bool> CpuInstructionFusion(Module& m, PassContext& ctx) {
  FusionLimits limits;
  limits.columns = 3;  // codegen/cpu/fusion_reduce.cc
  limits.pooled = 16;  // codegen/cpu/fusion_around_window.cc
  limits.joins = 12;   // codegen/cpu/fusion_joins.cc
  limits.one_array = true;
  limits.alone = 600;
  return FuseVertically(m, ctx, limits);
}

}  // namespace kiln
