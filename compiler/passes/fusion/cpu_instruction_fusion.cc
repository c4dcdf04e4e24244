#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/vertical_fusion.h"

namespace kiln {

absl::StatusOr<bool> CpuInstructionFusion(Module& m, PassContext& ctx) {
  return FuseVertically(m, ctx, {.joins = true, .one_array = true});
}

}  // namespace kiln
