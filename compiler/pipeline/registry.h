// The table of passes, and the pipelines that name them: the only place that knows every pass.
#pragma once

#include "compiler/pass/pipeline.h"

namespace kiln {

const std::vector<PassInfo>& AllPasses();
// nullptr if there is none; '-' and '_' are the same.
const PassInfo* FindPass(absl::string_view name);

// Module as imported -> fused module with layouts, ready for copy insertion and scheduling.
Pipeline CpuPipeline();
// The same for a GPU: with library calls, and fusions that its kernels take. `deterministic`: no result depends on the
// order in which threads come.
Pipeline GpuPipeline(bool deterministic = false);

// By the name that users give: "cpu" or "gpu"; fails for any other.
absl::StatusOr<Pipeline> PipelineNamed(absl::string_view name);

// Copy insertion and what it leaves to clear away: the module is ready for PlanMemory.
absl::Status PrepareForPlanning(Module& module);

#define PASS(name, fn, ...) absl::StatusOr<bool> fn(Module& module, PassContext& ctx);
#include "compiler/pipeline/passes.def"

}  // namespace kiln
