// The tables of passes (passes.def) and of the pipelines that run them (pipelines.def). Only registry.cc expands them,
// so that a new row recompiles one file.
#pragma once

#include "compiler/pass/pipeline.h"

namespace kiln {

const std::vector<PassInfo>& AllPasses();
// nullptr if there is none; '-' and '_' are the same.
const PassInfo* FindPass(absl::string_view name);

// Module as imported -> fused module with layouts, ready for copy insertion and scheduling.
Pipeline CpuPipeline();
// The same for a GPU: with library calls, and fusions that its kernels take.
struct GpuPipelineOptions {
  bool deterministic = false;  // no result depends on the order in which threads or devices come
  bool nccl = true;            // devices exchange arrays by NCCL, else by the host
};
Pipeline GpuPipeline(const GpuPipelineOptions& options = {});

// By the name that users give: "cpu" or "gpu"; fails for any other.
absl::StatusOr<Pipeline> PipelineNamed(absl::string_view name);

}  // namespace kiln
