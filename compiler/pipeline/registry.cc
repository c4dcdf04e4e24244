#include "compiler/pipeline/registry.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace kiln {

const std::vector<PassInfo>& AllPasses() {
  static const auto* passes = new std::vector<PassInfo>{
#define PASS(name, fn, summary, needs, gives, breaks) {name, fn, summary, needs, gives, breaks},
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

// What both targets repeat before they choose their forms.
std::vector<std::string> Simplification() {
  return {"tuple-simplifier",
          "algsimp",
          "simplify-sorts",
          "while-loop-invariant-code-motion",
          "while-loop-constant-sinking",
          "simplify-while-loops",
          "reshape-mover",
          "constant-folding",
          "conditional-simplifier",
          "call-inliner",
          "cse",
          "dce"};
}

}  // namespace

Pipeline CpuPipeline() {
  Pipeline p("cpu", FindPass);
  p.Add("defuser")
      .Add("manual-sharding-expander")
      .Add("sharding-remover")
      .Add("custom-call-decomposer")
      .Add("custom-call-layouts")
      .Add("layout-normalization")
      .Add("convert-async-collectives-to-sync")
      .Add("call-inliner")
      .Add("dynamic-padder")
      .Add("scan-expander")
      .Add("collective-expander")
      .Add("ragged-dot-rewriter")
      .Add("scaled-dot-rewriter")
      .Add("stochastic-convert-decomposer")
      .Add("rng-expander")
      .Add("bitcast-dtypes-expander")
      .Add("cholesky-expander")
      .Add("triangular-solve-expander")
      .Add("call-inliner")
      .Add("map-inline")
      .Add("call-inliner")
      .Add("zero-sized-hlo-elimination")
      .Add("dynamic-index-splitter");
  p.Add("batchnorm-expander");
  p.FixedPoint(Simplification());
  p.Add("topk-rewriter").Add("while-loop-trip-count-annotator");
  p.Add("transpose-folding").Add("dce").Add("convolution-canonicalization").Add("dot-decomposer");
  p.FixedPoint({"algsimp", "cse", "dce"});
  p.Add("optimization-barrier-expander")
      .Add("tuple-simplifier")
      .Add("flatten-call-graph")
      .Add("layout-assignment")
      .Add("optimize-input-output-buffer-alias")
      .Add("reshape-decomposer");
  p.FixedPoint({"algsimp", "cse", "dce"});
  p.Add("cpu-instruction-fusion").Add("fusion-wrapper").Add("cse").Add("cpu-multi-output-fusion").Add("dce");
  return p;
}

Pipeline GpuPipeline(bool deterministic) {
  Pipeline p("gpu", FindPass);
  p.Add("defuser")
      .Add("manual-sharding-expander")
      .Add("sharding-remover")
      .Add("custom-call-decomposer")
      .Add("custom-call-layouts")
      .Add("layout-normalization")
      .Add("convert-async-collectives-to-sync")
      .Add("call-inliner")
      .Add("algorithm-checker")
      .Add("dynamic-padder")
      .Add("scan-expander")
      .Add("collective-expander")
      .Add("ragged-dot-rewriter")
      .Add("scaled-dot-rewriter")
      .Add("stochastic-convert-decomposer")
      .Add("rng-expander")
      .Add("rng-bit-generator-expander")
      .Add("bitcast-dtypes-expander")
      .Add("cholesky-expander")
      .Add("triangular-solve-expander")
      .Add("convolution-pred-expander")
      .Add("select-and-scatter-expander");
  if (deterministic) p.Add("scatter-determinism-expander");
  p.Add("gpu-scatter-expander")
      .Add("call-inliner")
      .Add("map-inline")
      .Add("call-inliner")
      .Add("zero-sized-hlo-elimination")
      .Add("dynamic-index-splitter")
      .Add("batchnorm-expander");
  p.FixedPoint(Simplification());
  p.Add("topk-rewriter").Add("topk-specializer").Add("wide-topk-decomposer").Add("stable-sort-expander");
  p.Add("cumulative-splitter");
  p.FixedPoint({"convert-mover", "algsimp"});
  p.Add("while-loop-trip-count-annotator");
  p.Add("dot-strength-reduction")
      .Add("gemv-rewriter")
      .Add("splitk-rewriter")
      .Add("transpose-folding")
      .Add("dce")
      .Add("convolution-canonicalization")
      .Add("dot-algorithm-rewriter")
      .Add("dot-decomposer")
      .Add("cublas-pad-for-gemms");
  p.FixedPoint({"algsimp", "cse", "dce"});
  p.Add("optimization-barrier-expander")
      .Add("tuple-simplifier")
      .Add("flatten-call-graph")
      .Add("variadic-op-splitter")
      .Add("layout-assignment")
      .Add("optimize-input-output-buffer-alias")
      .Add("reshape-decomposer")
      .Add("cublas-gemm-f8-rewriter")
      .Add("triton-gemm-rewriter")
      .Add("cublas-gemm-rewriter")
      .Add("cublas-gemm-broadcast-folding-rewriter")
      .Add("gemm-fusion")
      .Add("reduction-degenerate-dim-remover")
      .Add("reduction-layout-normalizer")
      .Add("reduction-dimension-grouper");
  p.FixedPoint({"reduction-splitter"});
  p.FixedPoint({"gpu-tree-reduction-rewriter"});
  p.FixedPoint({"algsimp", "cse", "dce"});
  p.Add("triton-softmax-rewriter")
      .Add("gpu-instruction-fusion")
      .Add("fusion-wrapper")
      .Add("cse")
      .Add("fusion-merger")
      .Add("gpu-multi-output-fusion")
      .Add("gpu-horizontal-input-fusion")
      .Add("conv-algorithm-picker")
      .Add("gemm-algorithm-picker")
      .Add("computation-deduplicator")
      .Add("sanitize-constant-names")
      .Add("dce");
  return p;
}

absl::StatusOr<Pipeline> PipelineNamed(absl::string_view name) {
  if (name == "cpu") return CpuPipeline();
  if (name == "gpu") return GpuPipeline();
  return absl::InvalidArgumentError(absl::StrCat("error: pipeline '", name, "' is unknown; there are cpu and gpu"));
}

}  // namespace kiln
