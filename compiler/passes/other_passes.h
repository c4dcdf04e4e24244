// Passes that other passes run as a part of theirs. The table of all is compiler/pipeline/passes.def.
#pragma once

#include "compiler/pass/pass.h"

namespace kiln {

absl::StatusOr<bool> Bf16MixedPrecisionRemoval(Module& module, PassContext& ctx);
absl::StatusOr<bool> ControlDepRemover(Module& module, PassContext& ctx);
absl::StatusOr<bool> CopyInsertion(Module& module, PassContext& ctx);
absl::StatusOr<bool> CpuMultiOutputFusion(Module& module, PassContext& ctx);
absl::StatusOr<bool> Dce(Module& module, PassContext& ctx);
absl::StatusOr<bool> Defuser(Module& module, PassContext& ctx);
absl::StatusOr<bool> HloDescheduler(Module& module, PassContext& ctx);
absl::StatusOr<bool> LayoutAssignment(Module& module, PassContext& ctx);
absl::StatusOr<bool> SimplifyWhileLoops(Module& module, PassContext& ctx);
absl::StatusOr<bool> SpmdPartitioner(Module& module, PassContext& ctx);
absl::StatusOr<bool> TupleSimplifier(Module& module, PassContext& ctx);

}  // namespace kiln
