// The whole compile: a module and options in, the files of the product out.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "aot/debug/program_op.h"
#include "aot/package/port_path.h"
#include "aot/weight_constants.h"
#include "codegen/gpu/library_call.h"
#include "codegen/llvm/object.h"
#include "compiler/hlo/custom_call.h"
#include "compiler/hlo/instruction.h"
#include "compiler/hlo/tuning.h"
#include "compiler/pass/pipeline.h"
#include "compiler/plan/rematerialize.h"

namespace kiln {

struct CompileOptions {
  std::string name = "model";
  std::vector<std::string> cpu_levels = DefaultCpuLevels();
  std::vector<std::string> argument_names, result_names;
  // The functions to compile, where a module has several; none: all public ones.
  std::vector<std::string> entries;
  // What the arena may take; 0: no limit. Values are recomputed, compressed or offloaded until it holds.
  int64_t max_arena_bytes = 0;
  // What may wait in a slow arena, which the caller gives; 0: there is none.
  int64_t slow_arena_bytes = 0;
  // Arguments that come from files of weights: what their paths or names match.
  std::vector<std::string> weight_arguments;
  // Constants of at least so many bytes become such arguments too, and their values a file; 0: none.
  int64_t weight_constant_bytes = 0;
  // Overwrites every arena slice with a pattern as soon as nothing may read it any more (for tests).
  bool poison_freed = false;
  // The plan is checked against the HLO (compiler/thunk/check) before code is made of it.
  bool check_plan = false;
  // Subnormal numbers count as zero while the model runs, as XLA:CPU has it.
  bool flush_subnormals = true;
  // The most threads that one run uses; 0: as many as its pool has, 1: no code for threads.
  int threads = 0;
  // Calls of LAPACK go to the LAPACK that the program is linked with (//aot/lapack), not to kiln's own kernels.
  bool external_lapack = false;
  // Weights of more bytes lie in a section for large data and are reached by 64-bit addresses.
  int64_t large_weights_bytes = int64_t{64} << 20;
  // How long a device waits for the others, or for the host program's queues; 0: for ever.
  int64_t device_timeout_ms = 60000;
  // Instrumentation of the generated code, for tests: the program is linked with the sanitizer.
  Sanitizer sanitizer = Sanitizer::kNone;
  // Every element that a kernel reads or writes one by one is checked against its array; an overrun names both and
  // aborts.
  bool bounds_check = false;
  // Sizes that a program's unbounded dimensions take, ascending: one variant each, behind one entry. Empty: none.
  std::vector<int64_t> batch_sizes;
  // GPUs that the archive holds machine code for ("sm_90"); none: no GPU program.
  std::vector<std::string> gpu_targets;
  // Whether the GPU program calls NVIDIA's libraries.
  bool gpu_libraries = true;
  // Whether it has kernels of kiln's own for what it asks libraries for, for machines where these are missing or
  // refuse.
  bool gpu_fallback_kernels = true;
  // Whether every run of the GPU program gives the same bits.
  bool gpu_deterministic = false;
  // The assembler of the CUDA Toolkit; empty: found by PATH.
  std::string ptxas;
  // What was measured on GPUs (kiln tune). Level 0 takes no notice of it; a strict compile fails where a product or
  // convolution has no result for a GPU of the library.
  std::shared_ptr<const TuningResults> tuning;
  gpu::LibraryAlgorithms library_algorithms;  // of these results
  std::vector<std::string> tuning_texts;      // the files that they come from, denylists included
  int tuning_level = 4;
  bool strict_tuning = false;
  // For tests: the GPU program alone, lowered for an emulator (aot/emulator); with its accesses watched.
  enum class Emulation { kNone, kPlain, kChecked } emulation = Emulation::kNone;
  DebugOptions debug;
  PipelineOptions pipeline;
  Limits limits;            // of what is loaded
  std::string config_text;  // recorded in the manifest
  // Told, from any thread, how many of the objects of generated code are made.
  std::function<void(size_t done, size_t all)> on_object;
};

// Reads and checks a text proto; unknown fields, unknown levels and contradictions are refused.
absl::StatusOr<CompileOptions> ParseConfig(absl::string_view text, const std::string& file);

// What a partitioned program's array is a part of.
struct PortTiling {
  Shape whole;
  Ints tiles;              // along each dimension; all 1: every device holds all of it
  Ints tile_of_partition;  // in row-major order of tiles
  bool IsCut() const { return Product(tiles) > 1; }
};

// One argument or result leaf as the caller sees it.
struct Port {
  std::string name;  // a C identifier, unique
  std::string path;  // what the front end calls it ("params['layers'][0]['w']"), or else its name
  PortPath steps;    // of the path
  Shape shape;
  int64_t alias = -1;  // results: the argument whose memory holds it; arguments: the result it becomes
  int64_t alignment = 1;
  bool weight = false;  // an argument that a set of weights gives
  // Of an argument that states the size of a dimension: what it may be. low > high: it states none.
  int64_t low = 1, high = 0;
  std::optional<PortTiling> tiling;  // of every array of a partitioned program
};

// What one batch size takes and gives.
struct BatchPorts {
  int64_t batch;
  std::vector<Port> arguments, results;
  int64_t temp_bytes;
};

// A product or convolution whose algorithm is a guess on a GPU of the library.
struct UntunedKernel {
  std::string target, name, key, text;
};

// An exchange between devices; one in a loop counts once.
struct CollectiveUse {
  std::string kind;        // the opcode
  int64_t bytes = 0;       // of one device: the larger of what it gives and what it takes
  int64_t group_size = 0;  // devices that meet
};

struct CompiledModel {
  std::string name;
  std::string symbols;  // what every symbol of the archive begins with: the name and a hash of interface and code
  // Of a library with several entries: the interface of each, as a model called <library>_<entry>. What they share is
  // the library's, whose arguments and results are then empty; its figures are of the largest, or of all together.
  std::vector<CompiledModel> entries;
  std::string library, entry;          // of an entry: whose it is, and what it is called there
  int64_t ops_begin = 0, ops_end = 0;  // of an entry: its part of the library's `ops`
  std::string archive, header, c_header, manifest;
  std::vector<WeightConstant> weight_constants;  // for the file beside the archive
  // Texts to lie beside the archive, by file name: the optimised programs that its line tables name.
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<Port> arguments, results;           // of the largest batch, if there are several
  std::vector<BatchPorts> batches;                // by size; empty unless the config names sizes
  std::vector<Port> weights;                      // what a set of weights gives to all entries, each once
  int threads = 0;                                // as the options have it
  int64_t devices = 1;                            // replicas times partitions
  std::vector<CustomCallSignature> custom_calls;  // functions that the host program provides
  bool communicates = false;                      // with other devices, or through the host program's queues
  std::vector<CollectiveUse> collectives;         // of the first program, in the order of its thunks
  int64_t temp_bytes = 0, constant_bytes = 0, code_bytes = 0, argument_bytes = 0, output_bytes = 0;
  int64_t kernels = 0, thunks = 0, fusions = 0, bytes_accessed = 0, flops = 0;
  double compile_ms = 0;
  bool flush_subnormals = true;          // as the options have it
  Algebra algebra = Algebra::kXla;       // as the options have it
  bool on_cpu = true;                    // the library has a CPU program
  DebugOptions debug;                    // as the options have it
  std::vector<ProgramOp> ops;            // of all CPU programs, if `debug` names them
  std::vector<std::string> cpu_levels;   // that the archive holds, best last
  std::vector<std::string> gpu_targets;  // that the archive holds machine code for
  int64_t gpu_temp_bytes = 0;            // of the arena of the GPU program
  int64_t gpu_steps = 0;                 // launches, library calls, copies and fills of a run; a loop's once
  int64_t gpu_flops = 0;
  std::vector<std::string> notes;                 // what the user should know
  std::vector<UntunedKernel> untuned;             // by GPU, then in order
  int64_t slow_bytes = 0;                         // of the slow arena
  std::vector<RematerializeStep> rematerialized;  // to meet max_arena_bytes
  std::vector<PassRecord> passes;
};

// The symbol of one of a library's functions, which headers call <name>_<function>.
std::string SymbolOf(const CompiledModel& model, absl::string_view function);
// The same of what entries of a library share.
std::string SharedSymbolOf(const CompiledModel& model, absl::string_view function);

// What runs: the entries of a library, or else itself.
std::vector<const CompiledModel*> ProgramsOf(const CompiledModel& library);
// "prefill, decode"
std::string EntryList(const CompiledModel& library);

// The program for one batch size; 0: the only one.
struct BatchVariant {
  int64_t batch;
  std::unique_ptr<Module> module;
};

// A function of a library: its variants, under a name that is empty if it is the only one.
struct EntryPrograms {
  std::string name;
  std::vector<BatchVariant> variants;
};

// `progress` is told each stage. Entries and variants share equal weights, threads and the header.
absl::StatusOr<CompiledModel> Compile(std::vector<EntryPrograms> entries, const CompileOptions& options,
                                      const std::function<void(const std::string&)>& progress = nullptr);
absl::StatusOr<CompiledModel> Compile(std::vector<BatchVariant> variants, const CompileOptions& options,
                                      const std::function<void(const std::string&)>& progress = nullptr);
absl::StatusOr<CompiledModel> Compile(std::unique_ptr<Module> module, const CompileOptions& options,
                                      const std::function<void(const std::string&)>& progress = nullptr);

}  // namespace kiln
