#include "aot/planning.h"

#include "codegen/cpu/kernels.h"
#include "compiler/base/text.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/replica_groups.h"
#include "compiler/pipeline/registry.h"

namespace kiln {

absl::StatusOr<PlannedProgram> PlanProgram(std::unique_ptr<Module> module, const std::string& name,
                                           const CompileOptions& o,
                                           const std::function<void(const std::string&)>& say) {
  PlannedProgram out;
  RETURN_IF_ERROR(SettleDeviceCounts(module.get()));
  module->external_lapack = o.external_lapack;
  say("passes");
  RETURN_IF_ERROR(CpuPipeline().Run(*module, o.pipeline, &out.passes));
  RETURN_IF_ERROR(CheckFacts(*module, fact::Core | fact::LaidOut | fact::Fused));
  out.cost = CostOf(*module);

  say("planning memory");
  NamedOrder order;
  if (o.max_arena_bytes > 0) {
    const RematerializeOptions fit{o.max_arena_bytes, o.slow_arena_bytes, PrepareForPlanning, cpu::ScratchBytes, {}};
    ASSIGN_OR_RETURN(RematerializeReport report, Rematerialize(module.get(), fit));
    out.rematerialized = std::move(report.steps);
    if (!out.rematerialized.empty()) order = std::move(report.order);
  }
  RETURN_IF_ERROR(PrepareForPlanning(*module));
  ASSIGN_OR_RETURN(out.plan, PlanMemory(*module, cpu::ScratchBytes, order.empty() ? nullptr : &order));
  const BufferAssignment& buffers = out.plan.buffers;
  if (o.max_arena_bytes > 0 && buffers.temp_bytes() > o.max_arena_bytes)
    return ResourceExhausted("error: the arena takes ", buffers.temp_bytes(), " bytes, the config allows ",
                             o.max_arena_bytes, " and nothing more can be recomputed, compressed",
                             o.slow_arena_bytes ? "" : " (slow_arena_bytes would let values wait elsewhere)",
                             " or offloaded; ", OwnersOfPeak(buffers));
  ASSIGN_OR_RETURN(out.thunks, BuildThunks(*module, out.plan.schedule, buffers));
  if (!o.pipeline.dump_dir.empty()) {
    const std::string stem = absl::StrCat(o.pipeline.dump_dir, "/", name);
    RETURN_IF_ERROR(WriteFile(absl::StrCat(stem, ".cpu_after_optimizations.txt"), ToText(*module)));
    RETURN_IF_ERROR(WriteFile(absl::StrCat(stem, ".thunk_sequence.txt"), ToText(out.thunks)));
  }
  out.module = std::move(module);
  return out;
}

}  // namespace kiln
