#include "aot/report/explanation.h"

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "aot/collectives.h"
#include "aot/debug/source_map.h"
#include "aot/planning.h"
#include "aot/report/page.h"
#include "codegen/host/kernel_plan.h"
#include "compiler/analysis/cost.h"
#include "compiler/plan/alias.h"
#include "compiler/target/gpu_target.h"

namespace kiln {
namespace {

std::vector<std::string> OperationsOf(const Instruction* i) {
  std::map<std::string, int64_t> count;
  if (i->Is(Opcode::Fusion))
    for (const auto& x : (*i->attrs().calls)->instructions())
      if (!x->Is(Opcode::Parameter) && !x->Is(Opcode::Constant) && !x->Is(Opcode::Tuple))
        ++count[std::string(TextOf(x->opcode()))];
  std::vector<std::string> out;
  for (const auto& [name, n] : count) out.push_back(n == 1 ? name : absl::StrCat(name, " x", n));
  return out;
}

// Follows a value through what only names it to the instructions that make it.
void Makers(const Instruction* i, std::vector<const Instruction*>* out) {
  if (PassesThrough(i)) {
    for (const Instruction* o : i->operands()) Makers(o, out);
    return;
  }
  out->push_back(i);
}

// As while-loop-trip-count-annotator left it; 1 where the count is not known.
int64_t TripsOf(const Instruction* i) {
  if (!i->Is(Opcode::While) || !i->attrs().backend_config) return 1;
  constexpr absl::string_view kKey = "\"known_trip_count\":{\"n\":\"";
  const std::string& config = i->attrs().backend_config->text;
  const size_t at = config.find(kKey.data());
  int64_t n = 1;
  if (at == std::string::npos ||
      !absl::SimpleAtoi(config.substr(at + kKey.size(), config.find('"', at + kKey.size()) - at - kKey.size()), &n))
    return 1;
  return n;
}

class Kernels {
 public:
  Kernels(const Module& m, const CoreModel& device, std::vector<Explanation::Kernel>* out)
      : sources_(m), device_(device), out_(out) {}

  void Add(const ThunkSequence& thunks, int64_t depth, int64_t runs) {
    for (const Thunk& t : thunks) {
      const Instruction* i = t.instruction;
      for (const ThunkSequence& n : t.nested) Add(n, depth + 1, runs * TripsOf(i));
      Explanation::Kernel k;
      k.name = i->name();
      k.opcode = std::string(TextOf(MainOperation(i)->opcode()));
      k.shape = i->shape().ToString(false);
      k.operations = OperationsOf(i);
      k.depth = depth;
      k.line = i->loc().line;
      const SourcePlace place = sources_.Of(i);
      k.op_name = place.op_name;
      k.source = SourceText(place.file, place.line);
      if (t.nested.empty()) {
        const Cost c = CostOfKernel(i);
        k.runs = runs;
        k.flops = c.flops;
        k.bytes = c.bytes_accessed;
        k.estimated_us = static_cast<double>(runs) * EstimatedMicroseconds(c, device_);
      }
      std::vector<const Instruction*> makers;
      for (const Instruction* o : i->operands()) Makers(o, &makers);
      for (const Instruction* m : makers)
        if (auto it = place_.find(m); it != place_.end()) k.reads.push_back(it->second);
      std::sort(k.reads.begin(), k.reads.end());
      k.reads.erase(std::unique(k.reads.begin(), k.reads.end()), k.reads.end());
      place_[i] = out_->size();
      out_->push_back(std::move(k));
    }
  }

 private:
  const SourceMap sources_;
  const CoreModel device_;
  std::vector<Explanation::Kernel>* out_;
  absl::flat_hash_map<const Instruction*, size_t> place_;
};

void CollectSteps(const ThunkSequence& thunks, absl::flat_hash_set<const Instruction*>* out) {
  for (const Thunk& t : thunks) {
    out->insert(t.instruction);
    for (const ThunkSequence& n : t.nested) CollectSteps(n, out);
  }
}

std::vector<Explanation::Weight> WeightsOf(const BufferAssignment& buffers) {
  std::vector<Explanation::Weight> out;
  for (const Instruction* c : buffers.constants())
    out.push_back({c->name(), c->shape().ToString(false), c->shape().ByteSize()});
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return out;
}

// What a GPU can do at best.
CoreModel ModelOf(const GpuTarget& gpu) {
  constexpr double kLaunchMicroseconds = 1.5;  // of a node of a CUDA graph
  constexpr double kPerMicrosecond = 1e-6;
  CoreModel m;
  m.bytes_per_us = static_cast<double>(gpu.bandwidth_bytes_per_second) * kPerMicrosecond;
  m.flops_per_us = static_cast<double>(gpu.multiprocessors * gpu.f32_flops_per_cycle) *
                   static_cast<double>(gpu.clock_hz) * kPerMicrosecond;
  m.launch_us = kLaunchMicroseconds;
  m.cache_bytes = gpu.l2_bytes;
  m.cached_bytes_per_us = 2 * m.bytes_per_us;
  m.bf16_speed = static_cast<double>(gpu.f16_tensor_flops_per_cycle) /
                 static_cast<double>(std::max<int64_t>(1, gpu.f32_flops_per_cycle));
  m.f16_speed = m.bf16_speed;
  m.byte_speed = 2 * m.bf16_speed;
  m.slow_speed = 4;  // units of their own compute functions
  return m;
}

// Fusions that share a computation share a kernel.
int64_t DistinctGpuKernels(const ThunkSequence& thunks) {
  absl::flat_hash_set<const Instruction*> steps;
  CollectSteps(thunks, &steps);
  absl::flat_hash_set<const void*> kernels;
  for (const Instruction* i : steps)
    kernels.insert(i->Is(Opcode::Fusion) ? static_cast<const void*>(*i->attrs().calls) : i);
  return static_cast<int64_t>(kernels.size());
}

}  // namespace

absl::StatusOr<Explanation> Explain(std::unique_ptr<Module> module, const CompileOptions& o) {
  Explanation e;
  e.name = module->name();
  int64_t instructions = module->instruction_count();
  const bool on_gpu = !o.gpu.targets.empty() && o.cpu.levels.empty();
  CoreModel device;
  if (on_gpu) {
    ASSIGN_OR_RETURN(const GpuTarget gpu, FindGpuTarget(o.gpu.targets[0]));
    device = ModelOf(gpu);
    e.device = absl::StrCat(gpu.device, " (", gpu.name, ")");
  }
  ASSIGN_OR_RETURN(PlannedProgram p,
                   PlanProgram(std::move(module), o.model.name, o, on_gpu ? ProgramTarget::kGpu : ProgramTarget::kCpu,
                               [](const std::string&) {}));
  e.pass_changes = PassChanges(o);
  for (const PassRecord& r : p.passes) {
    auto known = std::find_if(e.passes.begin(), e.passes.end(), [&](const auto& x) { return x.name == r.pass; });
    if (known == e.passes.end()) known = e.passes.insert(known, {r.pass, 0, 0, 0, 0, {}});
    ++known->runs;
    known->changed += r.changed;
    known->ms += r.ms;
    for (const auto& [rewrite, times] : r.rewrites) known->rewrites[rewrite] += times;
    known->instructions += r.instructions - instructions;
    instructions = r.instructions;
  }
  const BufferAssignment& buffers = p.plan.buffers;
  e.arguments = static_cast<int64_t>(p.module->entry()->parameters().size());
  for (const Instruction* x : p.module->entry()->parameters()) e.argument_bytes += x->shape().ByteSize();
  const Shape& result = p.module->entry()->root()->shape();
  e.results = result.IsTuple() ? static_cast<int64_t>(result.tuple().size()) : 1;
  e.result_bytes = result.ByteSize();
  e.temp_bytes = buffers.temp_bytes();
  e.slow_bytes = buffers.slow_bytes();
  e.on_gpu = on_gpu;
  e.max_arena_bytes = o.model.max_arena_bytes;
  e.flops = p.cost.flops;
  e.bytes_accessed = p.cost.bytes_accessed;
  e.arena_use = buffers.ArenaUse();
  e.peak_tick = std::max_element(e.arena_use.begin(), e.arena_use.end()) - e.arena_use.begin();
  absl::flat_hash_set<const Instruction*> steps;
  CollectSteps(p.thunks, &steps);
  for (const Instruction* i : buffers.timeline()) {
    e.ticks.push_back(i->name());
    e.works.push_back(steps.contains(i));
  }
  e.weights = WeightsOf(buffers);
  e.distinct_kernels =
      on_gpu ? DistinctGpuKernels(p.thunks) : static_cast<int64_t>(PlanKernels(o.model.name, p.thunks).kernels.size());
  for (const Allocation& a : buffers.temps())
    e.buffers.push_back({a.owner, a.ShapeText(),
                         a.slice.kind == Slice::kTemp ? "arena" : absl::StrCat("result ", a.slice.index),
                         a.slice.offset, a.slice.size, a.begin, a.end});
  Kernels(*p.module, device, &e.kernels).Add(p.thunks, 0, 1);
  ASSIGN_OR_RETURN(const std::vector<CollectiveUse> uses,
                   CollectivesOf(p, on_gpu ? ProgramTarget::kGpu : ProgramTarget::kCpu, o.gpu));
  e.exchanges = ExchangesOf(p.thunks, *p.module, uses, e.kernels);
  e.rematerialized = std::move(p.rematerialized);
  return e;
}

}  // namespace kiln
