// From LLVM modules to object files: the kernel library, optimisation, machine code, archives.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/llvm/ir.h"

namespace kiln {

// Instrumentation for a program that is linked with -fsanitize=address or -fsanitize=thread.
enum class Sanitizer { kNone, kAddress, kThread };

// Links what the module, whose triple and layout are set, uses of the kernel library, and makes it internal.
absl::Status LinkKernelLibrary(llvm::Module& module);

// Links what the module uses of the kernel library, makes it internal, optimises for the level and returns an ELF
// object. Deterministic. `ir_text`, if given, receives the optimised IR.
absl::StatusOr<std::string> CompileToObject(llvm::Module& module, const CpuLevel& level, Sanitizer sanitizer,
                                            int64_t* text_bytes, std::string* ir_text = nullptr);

// Parts of the runtime, as object files with the model's names.
enum class RuntimePart {
  kDispatch,  // <name>_run
  kParallel,  // what splits kernels among threads
  kPool,      // <name>_pool_create, <name>_pool_destroy
  kBounds,    // <name>_out_of_bounds
  kWorld,     // <name>_world_create, ...: devices as threads
  // <name>_gpu_*, a file of runtime_min/gpu each; the two of cublas are for programs with products
  kGpuDriver,
  kGpuCreate,
  kGpuImages,
  kGpuTurns,
  kGpuRun,
  kGpuArrays,
  kGpuGraphs,
  kGpuConditions,
  kGpuProducts,
  kGpuCublas,
  kGpuCublasLibrary,
  kTune,      // <name>_tune: measures candidates on a GPU
  kTuneMain,  // main, which calls it
};
// What <name>_run checks (kiln_program of runtime_min/abi.h).
struct CallChecks {
  struct Port {
    int64_t bytes, alignment, alias, low, high;
  };
  std::vector<Port> arguments, results;
  int64_t arena_bytes = 0, slow_arena_bytes = 0, devices = 0;
  bool flush_subnormals = true, overlap = true;
};
struct RuntimeOptions {
  std::vector<std::string> levels;  // that the archive holds
  int64_t device_timeout_ms = 0;
  Sanitizer sanitizer = Sanitizer::kNone;
};
// The parts that a GPU program needs, each with the name of its member.
std::vector<std::pair<RuntimePart, const char*>> GpuRuntimeParts(bool products);
// `checks`: of the program that kDispatch is for.
absl::StatusOr<std::string> CompileRuntime(const std::string& name, RuntimePart part, const RuntimeOptions& options,
                                           const CallChecks& checks = {});

// An object with <name>_run(call), which calls <name>_b<batch>_run as the call's first number says, or returns
// `otherwise` for a size of no variant.
absl::StatusOr<std::string> BatchDispatchObject(const std::string& name, const std::vector<int64_t>& batches,
                                                int32_t otherwise);

// Bytes of a block, zeros between and before them.
struct DataPiece {
  size_t offset;
  absl::string_view bytes;
};

// An ELF object with one hidden read-only symbol of 64-byte alignment. `large`: in a section for large data, which
// linkers place beyond the code's 2 GiB; code loads its address then, from <symbol>_at (AddressObject).
std::string DataObject(const std::string& symbol, const std::vector<DataPiece>& pieces, bool large);

// An object with the hidden constant <symbol>_at, the address of `symbol`.
absl::StatusOr<std::string> AddressObject(const std::string& symbol);

// A static library of named members.
absl::StatusOr<std::string> WriteArchive(const std::vector<std::pair<std::string, std::string>>& members);

}  // namespace kiln
