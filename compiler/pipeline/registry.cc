#include "compiler/pipeline/registry.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace kiln {

#define PASS(name, fn, ...) absl::StatusOr<bool> fn(Module& module, PassContext& ctx);
#define SHELVED PASS
#include "compiler/passes/shelf/shelf.def"
#include "compiler/pipeline/passes.def"

const std::vector<PassInfo>& AllPasses() {
  static const auto* passes = new std::vector<PassInfo>{
#define PASS(name, fn, summary, needs, gives, breaks) {name, fn, summary, needs, gives, breaks, nullptr},
#define SHELVED(name, fn, summary, needs, gives, breaks, why) {name, fn, summary, needs, gives, breaks, why},
#include "compiler/passes/shelf/shelf.def"
#include "compiler/pipeline/passes.def"
  };
  return *passes;
}

const PassInfo* FindPass(absl::string_view name) {
  const std::string canonical = absl::StrReplaceAll(name, {{"_", "-"}});
  for (const PassInfo& p : AllPasses())
    if (canonical == p.name) return &p;
  return nullptr;
}

namespace {

enum Targets { Cpu = 1, Gpu = 2, Deterministic = 4, Nccl = 8, ByHost = 16, Both = Cpu | Gpu };
constexpr bool Once = false, Repeated = true;

struct Row {
  Pipeline::Stage stage;  // of a row that begins one
  Targets on;
  Pipeline::Step step;
};
const Row kRows[] = {
#define STAGE(name, repeat, holds) {{name, holds, repeat, {}}, Both, {}},
#define RUN(on, pass, why) {{}, on, {pass, why}},
#include "compiler/pipeline/pipelines.def"
};

Pipeline Of(const char* name, int targets) {
  Pipeline p(name, FindPass);
  for (const Row& r : kRows) {
    if (!r.stage.name.empty())
      p.Begin(r.stage);
    else if (r.on & targets)
      p.Add(r.step.pass, r.step.why);
  }
  return p;
}

}  // namespace

Pipeline CpuPipeline() { return Of("cpu", Cpu); }
Pipeline GpuPipeline(const GpuPipelineOptions& o) {
  return Of("gpu", Gpu | (o.deterministic ? Deterministic : 0) | (o.nccl ? Nccl : ByHost));
}

absl::StatusOr<Pipeline> PipelineNamed(absl::string_view name) {
  if (name == "cpu") return CpuPipeline();
  if (name == "gpu") return GpuPipeline();
  return absl::InvalidArgumentError(absl::StrCat("error: pipeline '", name, "' is unknown; there are cpu and gpu"));
}

}  // namespace kiln
