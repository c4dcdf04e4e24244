#include "aot/planning.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "aot/canonical_form.h"
#include "codegen/cpu/kernels.h"
#include "codegen/gpu/kernels.h"
#include "compiler/base/text.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/replica_groups.h"
#include "compiler/passes/memory/prepare_for_planning.h"
#include "compiler/pipeline/registry.h"
#include "compiler/plan/written_order.h"
#include "compiler/thunk/check/plan_check.h"
#include "runtime_min/abi.h"

namespace kiln {
namespace {

const char* PlaceName(Slice::Kind kind) {
  static const char* const kNames[] = {"arena", "argument", "result", "constant", "slow arena"};
  return kNames[kind];
}

// Every value that is kiln's own to place: where it lies and from when to when.
std::string BufferTable(const BufferAssignment& buffers) {
  std::string out = absl::StrCat("arena: ", buffers.temp_bytes(), " bytes, slow arena: ", buffers.slow_bytes(),
                                 " bytes, largest sum of live values: ", buffers.peak_bytes(), " bytes\n");
  for (const Allocation& a : buffers.temps())
    absl::StrAppend(&out, PlaceName(a.slice.kind),
                    a.slice.kind == Slice::kResult ? absl::StrCat(" ", a.slice.index) : "", " offset ", a.slice.offset,
                    " size ", a.slice.size, " live ", a.begin, "-", a.end, "  %", a.owner, " ", a.ShapeText(), "\n");
  return out;
}

// The same by size, with the share that each and all before it have of the whole.
std::string MemoryReport(const BufferAssignment& buffers) {
  std::vector<const Allocation*> order;
  int64_t all = 0, sum = 0;
  for (const Allocation& a : buffers.temps()) {
    order.push_back(&a);
    all += a.slice.size;
  }
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->slice.size > b->slice.size; });
  const std::vector<int64_t> use = buffers.ArenaUse();
  const int64_t peak = use.empty() ? 0 : *std::max_element(use.begin(), use.end());
  std::string out = absl::StrCat("arena: ", buffers.temp_bytes(), " bytes, of which ", buffers.temp_bytes() - peak,
                                 " are lost between values\n", OwnersOfPeak(buffers), "\n\n");
  for (const Allocation* a : order) {
    sum += a->slice.size;
    absl::StrAppendFormat(&out, "%12d bytes  %5.1f %%  %5.1f %%  %%%s %s\n", a->slice.size,
                          100.0 * static_cast<double>(a->slice.size) / static_cast<double>(all),
                          100.0 * static_cast<double>(sum) / static_cast<double>(all), a->owner, a->ShapeText());
  }
  return out;
}

}  // namespace

absl::StatusOr<PlannedProgram> PlanProgram(std::unique_ptr<Module> module, const std::string& name,
                                           const CompileOptions& o, ProgramTarget target,
                                           const std::function<void(const std::string&)>& say) {
  PlannedProgram out;
  RETURN_IF_ERROR(SettleDeviceCounts(module.get()));
  RETURN_IF_ERROR(CheckAllGroupSizes(*module));
  module->external_lapack = o.cpu.external_lapack;
  if (!o.pipeline.dump_dir.empty())
    RETURN_IF_ERROR(
        WriteFile(absl::StrCat(o.pipeline.dump_dir, "/", name, ".before_optimizations.txt"), ToText(*module)));
  PutInCanonicalForm(module.get());
  const bool keep_schedule = o.model.keep_schedule && module->is_scheduled;
  const WrittenOrder written = keep_schedule ? WrittenOrderOf(*module) : WrittenOrder();
  say("passes");
  const bool on_gpu = target == ProgramTarget::kGpu;
  PipelineOptions pipeline = o.pipeline;
  pipeline.on_note = [&](const std::string& note) { out.notes.push_back(note); };
  if (on_gpu && !o.gpu.libraries)
    for (const char* pass : {"dot-batcher", "cublas-gemm-rewriter", "cublas-gemm-f8-rewriter"})
      pipeline.disabled.push_back(pass);
  // What a loop carries for an exchange of another iteration is memory too.
  if (o.model.overlap_arena_percent <= 0) pipeline.disabled.push_back("while-loop-exchange-motion");
  pipeline.f8_products = !o.gpu.targets.empty();
  for (const std::string& gpu : o.gpu.targets) {
    ASSIGN_OR_RETURN(const GpuTarget device, FindGpuTarget(gpu));
    pipeline.f8_products = pipeline.f8_products && std::pair(device.major, device.minor) >= std::pair(8, 9);
  }
  if (o.gpu.tuning.level > 0) pipeline.tuning = o.gpu.tuning.results.get();
  ASSIGN_OR_RETURN(const Pipeline passes,
                   Changed(on_gpu ? GpuPipeline(PipelineOf(o.gpu)) : CpuPipeline(), o.pass_changes));
  RETURN_IF_ERROR(passes.Run(*module, pipeline, &out.passes));
  const auto scratch = on_gpu ? gpu::ScratchBytes : cpu::ScratchBytes;
  RETURN_IF_ERROR(CheckFacts(*module, fact::Core | fact::LaidOut | fact::Fused));
  out.cost = CostOf(*module);

  say("planning memory");
  NamedOrder order;
  if (o.model.max_arena_bytes > 0) {
    const RematerializeOptions fit{o.model.max_arena_bytes, o.model.slow_arena_bytes, PrepareForPlanning, scratch, {}};
    ASSIGN_OR_RETURN(RematerializeReport report, Rematerialize(module.get(), fit));
    out.rematerialized = std::move(report.steps);
    if (!out.rematerialized.empty()) order = std::move(report.order);
  }
  RETURN_IF_ERROR(PrepareForPlanning(*module));
  if (keep_schedule) order = Followed(written, *module);
  PlanOptions plan{.scratch = scratch, .like = order.empty() ? nullptr : &order};
  if (!on_gpu && o.model.overlap_arena_percent > 0) plan.flight_bytes = KILN_SMALL_EXCHANGE;
  plan.more_percent = o.model.overlap_arena_percent;
  if (o.model.max_arena_bytes > 0) plan.most_bytes = o.model.max_arena_bytes;
  ASSIGN_OR_RETURN(out.plan, PlanMemory(*module, plan));
  const BufferAssignment& buffers = out.plan.buffers;
  if (o.model.max_arena_bytes > 0 && buffers.temp_bytes() > o.model.max_arena_bytes)
    return ResourceExhausted("error: the arena takes ", buffers.temp_bytes(), " bytes, the config allows ",
                             o.model.max_arena_bytes, " and nothing more can be recomputed, compressed or offloaded",
                             o.model.slow_arena_bytes ? "" : " (slow_arena_bytes would let values wait elsewhere)",
                             "; ", OwnersOfPeak(buffers));
  ASSIGN_OR_RETURN(out.thunks, BuildThunks(*module, out.plan.schedule, buffers));
  RETURN_IF_ERROR(CheckPlan(*module, buffers, out.thunks));
  if (!o.pipeline.dump_dir.empty()) {
    const std::string stem = absl::StrCat(o.pipeline.dump_dir, "/", name),
                      after = stem + (on_gpu ? ".gpu_after_optimizations" : ".cpu_after_optimizations");
    RETURN_IF_ERROR(WriteFile(after + ".txt", ToText(*module)));
    RETURN_IF_ERROR(WriteFile(after + "-buffer-assignment.txt", BufferTable(buffers)));
    RETURN_IF_ERROR(WriteFile(after + "-memory-usage-report.txt", MemoryReport(buffers)));
    RETURN_IF_ERROR(WriteFile(stem + ".thunk_sequence.txt", ToText(out.thunks)));
    RETURN_IF_ERROR(WriteFile(stem + ".config.pbtxt", o.config_text + "\n"));
  }
  out.module = std::move(module);
  return out;
}

}  // namespace kiln
