#include "compiler/passes/fusion/vertical_fusion.h"
#include "compiler/pipeline/registry.h"

namespace kiln {

absl::StatusOr<bool> CpuInstructionFusion(Module& m, PassContext& ctx) { return FuseVertically(m, ctx, {}); }

}  // namespace kiln
