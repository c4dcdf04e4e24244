// What a compile gives: the interface of a model, the files of the product, and what there is to say of them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aot/debug/program_op.h"
#include "aot/package/port_path.h"
#include "aot/weight_constants.h"
#include "compiler/hlo/custom_call.h"
#include "compiler/hlo/instruction.h"
#include "compiler/pass/pipeline.h"
#include "compiler/plan/rematerialize.h"

namespace kiln {

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

struct ModelPorts {
  std::vector<Port> arguments, results;  // of the largest batch, if there are several
  std::vector<BatchPorts> batches;       // by size; empty unless the config names sizes
  std::vector<Port> weights;             // what a set of weights gives to all entries, each once
};

// The product.
struct ModelCode {
  std::string archive, header, c_header, manifest;
  std::vector<WeightConstant> weight_constants;  // for the file beside the archive
  // Texts to lie beside the archive, by file name: the optimised programs that its line tables name.
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<std::string> cpu_levels;   // that the archive holds, best last
  std::vector<std::string> gpu_targets;  // that it holds machine code for
  std::vector<ProgramOp> ops;            // of all CPU programs, if the debug options name them
  int64_t ops_begin = 0, ops_end = 0;    // of an entry: its part of the library's `ops`
};

// A product or convolution whose algorithm is a guess on a GPU of the library.
struct UntunedKernel {
  std::string target, name, key, text;
};

// A product or convolution that a CPU level computes as was measured (kiln tune).
struct TunedKernel {
  std::string target, name, key;
  int64_t choice = 0;
};

// An exchange between devices; one in a loop counts once.
struct CollectiveUse {
  std::string name;
  std::string kind;        // the opcode
  int64_t bytes = 0;       // of one device: the larger of what it gives and what it takes
  int64_t group_size = 0;  // devices that meet
  int64_t groups = 0;      // of so many, or fewer
  std::string transport;   // "nccl", "host" (a GPU's, through a kiln_comm), or "kiln_comm"
  std::string algorithm;   // what the transport is asked for
};

// Figures for headers, manifests and people.
struct ModelReport {
  int64_t temp_bytes = 0, constant_bytes = 0, code_bytes = 0, argument_bytes = 0, output_bytes = 0;
  int64_t slow_bytes = 0;  // of the slow arena
  int64_t kernels = 0, thunks = 0, fusions = 0, bytes_accessed = 0, flops = 0;
  int64_t gpu_temp_bytes = 0;  // of the arena of the GPU program
  int64_t gpu_host_bytes = 0;  // of its arena in the host's memory
  int64_t gpu_steps = 0;       // launches, library calls, copies and fills of a run; a loop's once
  int64_t gpu_flops = 0;
  std::vector<CollectiveUse> collectives;         // of the first program, in the order of its thunks
  std::vector<std::string> notes;                 // what the user should know
  std::vector<UntunedKernel> untuned;             // by GPU, then in order
  std::vector<TunedKernel> tuned;                 // by CPU level, then in order
  std::vector<RematerializeStep> rematerialized;  // to meet max_arena_bytes
  std::vector<PassRecord> passes;
  double compile_ms = 0;
};

// How devices of the GPU program exchange arrays.
enum class GpuTransport { kNone, kNccl, kHost };

struct CompiledModel {
  std::string name;
  std::string symbols;  // what every symbol of the archive begins with: the name and a hash of interface and code
  // Of a library with several entries: the interface of each, as a model called <library>_<entry>. What they share is
  // the library's, whose arguments and results are then empty; its figures are of the largest, or of all together.
  std::vector<CompiledModel> entries;
  std::string library, entry;  // of an entry: whose it is, and what it is called there
  int64_t devices = 1;         // replicas times partitions
  bool communicates = false;   // with other devices, or through the host program's queues
  GpuTransport gpu_transport = GpuTransport::kNone;
  std::vector<CustomCallSignature> custom_calls;  // functions that the host program provides
  bool on_cpu = true;                             // the library has a CPU program
  // As the options have them.
  int threads = 0;
  bool flush_subnormals = true;
  Algebra algebra = Algebra::kXla;
  bool keeps_excess = true;  // of BF16 and F16 inside kernels
  bool sums_in_f16 = true;   // short ones, of products of F16, where the CPU has its arithmetic
  std::vector<std::string> pass_changes;
  DebugOptions debug;

  ModelPorts ports;
  ModelCode code;
  ModelReport report;
};

// The symbol of one of a library's functions, which headers call <name>_<function>.
std::string SymbolOf(const CompiledModel& model, absl::string_view function);
// The same of what entries of a library share.
std::string SharedSymbolOf(const CompiledModel& model, absl::string_view function);

// Whether code of the model adds products of F16 as F16.
bool HasSumsInF16(const CompiledModel& model);

// What runs: the entries of a library, or else itself.
std::vector<const CompiledModel*> ProgramsOf(const CompiledModel& library);
// "prefill, decode"
std::string EntryList(const CompiledModel& library);

}  // namespace kiln
