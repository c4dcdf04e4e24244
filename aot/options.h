// What a compile is asked for: the config (aot/config.proto) as values, and what only tools and tests set.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "aot/debug/options.h"
#include "codegen/gpu/library_call.h"
#include "codegen/llvm/cpu_level.h"
#include "compiler/hlo/limits.h"
#include "compiler/hlo/tuning.h"
#include "compiler/pipeline/changes.h"
#include "compiler/pipeline/registry.h"

namespace kiln {

// The model as its caller sees it, on every target.
struct ModelOptions {
  std::string name = "model";
  std::vector<std::string> argument_names, result_names;
  // The functions to compile, where a module has several; none: all public ones.
  std::vector<std::string> entries;
  // Sizes that a program's unbounded dimensions take, ascending: one variant each, behind one entry. Empty: none.
  std::vector<int64_t> batch_sizes;
  // What the arena may take; 0: no limit. Values are recomputed, compressed or offloaded until it holds.
  int64_t max_arena_bytes = 0;
  // Whether values of BF16 and F16 are rounded in every operation, also on their way through a kernel.
  bool round_every_operation = false;
  // Whether scheduled modules keep their order.
  bool keep_schedule = false;
  // What may wait in a slow arena, which the caller gives; 0: there is none.
  int64_t slow_arena_bytes = 0;
  // Arguments that come from files of weights: what their paths or names match.
  std::vector<std::string> weight_arguments;
  // Constants of at least so many bytes become such arguments too, and their values a file; 0: none.
  int64_t weight_constant_bytes = 0;
  // Weights of more bytes lie in a section for large data and are reached by 64-bit addresses.
  int64_t large_weights_bytes = int64_t{64} << 20;
  // How long a device waits for the others, or for the host program's queues; 0: for ever.
  int64_t device_timeout_ms = 60000;
  // What the arena may grow so that exchanges of large arrays take place while the device computes.
  int64_t overlap_arena_percent = 12;
};

// Small arrays travel together: exchanges cost a few microseconds each, and arrays that wait for others live longer.
inline CombinedExchanges SmallExchangesTogether() {
  constexpr int64_t kBytes = 1 << 10;
  CombinedExchanges c;
  c.all_gather.bytes = c.reduce_scatter.bytes = c.permute.bytes = kBytes;
  return c;
}

struct CpuOptions {
  std::vector<std::string> levels = DefaultCpuLevels();  // none: no CPU program
  // The most threads that one run uses; 0: as many as its pool has, 1: no code for threads.
  int threads = 0;
  // Subnormal numbers count as zero while the model runs, as XLA:CPU has it.
  bool flush_subnormals = true;
  // Short sums of products of F16 are F32 too, on CPUs that could add them as F16.
  bool sum_f16_in_f32 = false;
  // Calls of LAPACK go to the LAPACK that the program is linked with (//aot/lapack), not to kiln's own kernels.
  bool external_lapack = false;
  // A run of the best level is refused by no machine: something executes what the machine lacks (aot/emulator/x86).
  bool any_machine = false;
};

// What was measured on GPUs (kiln tune), and how far it counts.
struct TuningOptions {
  std::shared_ptr<const TuningResults> results;
  gpu::LibraryAlgorithms algorithms;  // of these results
  std::vector<std::string> texts;     // the files that they come from, denylists included
  int level = 4;                      // 0 takes no notice of the results
  // The compile fails where a product or convolution has no result for a GPU of the library.
  bool strict = false;
};

struct GpuOptions {
  // GPUs that the archive holds machine code for ("sm_90"); none: no GPU program.
  std::vector<std::string> targets;
  // Whether the program calls NVIDIA's libraries.
  bool libraries = true;
  // Whether it has kernels of kiln's own for what it asks libraries for, for machines where these are missing or
  // refuse.
  bool fallback_kernels = true;
  // Whether every run gives the same bits.
  bool deterministic = false;
  // Whether f32 may be multiplied in TF32 where the program asks for no more than the default precision.
  bool tf32 = false;
  // How devices exchange arrays.
  enum class Transport { kNccl, kHost } transport = Transport::kNccl;
  // The assembler of the CUDA Toolkit; empty: found by PATH.
  std::string ptxas;
  TuningOptions tuning;
  // For tests: the GPU program alone, lowered for an emulator (aot/emulator); with its accesses watched.
  enum class Emulation { kNone, kPlain, kChecked } emulation = Emulation::kNone;
};

// The pipeline that these ask for.
inline GpuPipelineOptions PipelineOf(const GpuOptions& o) {
  return {o.deterministic, o.transport == GpuOptions::Transport::kNccl};
}

struct CompileOptions {
  ModelOptions model;
  CpuOptions cpu;
  GpuOptions gpu;
  DebugOptions debug;
  PipelineOptions pipeline{.combined = SmallExchangesTogether()};
  std::vector<PipelineChange> pass_changes;
  Limits limits;            // of what is loaded
  std::string config_text;  // recorded in the manifest
  // Told, from any thread, how many of the objects of generated code are made.
  std::function<void(size_t done, size_t all)> on_object;
};

// How the passes that run differ from the usual ones, a phrase each.
std::vector<std::string> PassChanges(const CompileOptions& options);

// Reads and checks a text proto; unknown fields, unknown levels and contradictions are refused.
absl::StatusOr<CompileOptions> ParseConfig(absl::string_view text, const std::string& file);

// Whether values of BF16 and F16 keep the digits of an f32 from one operation of a kernel to the next: exact algebra
// rounds them too.
inline bool KeepsExcess(const CompileOptions& o) {
  return !o.model.round_every_operation && o.pipeline.algebra != Algebra::kExact;
}

// Whether short sums of products of F16 are F16 on CPUs that have its arithmetic.
inline bool SumsInF16(const CompileOptions& o) { return KeepsExcess(o) && !o.cpu.sum_f16_in_f32; }

// Takes from `level` the instructions whose results `o` does not admit.
inline void Restrict(CpuLevel* level, const CompileOptions& o) {
  level->dot_bf16 = level->dot_bf16 && o.cpu.flush_subnormals;  // they take subnormals for zeros
  level->fp16 = level->fp16 && SumsInF16(o);
}

}  // namespace kiln
