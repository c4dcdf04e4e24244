// A model on the GPU: its kernels, and the host code that starts them.
#pragma once

#include <string>
#include <vector>

#include "codegen/gpu/kernels.h"
#include "codegen/gpu/library_call.h"
#include "codegen/host/entry.h"
#include "codegen/host/kernel_plan.h"

namespace kiln::gpu {

// The kernels of one plan, in the order of the library's table, and what starts each item of the plan.
struct Program {
  struct Kernel {
    std::string symbol;
    const Instruction* instruction;
    std::vector<int64_t> buffer_bytes;  // of each array it is given
  };
  std::vector<Kernel> kernels;
  struct Start {
    size_t kernel;
    Launch launch;
  };
  std::vector<std::vector<Start>> starts;  // by place in the plan
};

// Emits every planned kernel for `target` into `ir`'s module.
absl::StatusOr<Program> EmitKernels(Ir& ir, const KernelPlan& plan, const GpuTarget& target);

// Whether EmitKernels gives the same for both.
bool SameKernels(const KernelPlan& plan, const GpuTarget& a, const GpuTarget& b);

// The code that a library has for some devices: how its kernels are started, and what tuning chose for the target.
struct Image {
  const Program* program;
  std::string target;
};

// What an entry asks for besides kernels.
struct EntryUse {
  int64_t regions = 0;                 // that it has recorded
  int64_t steps = 0;                   // launches, library calls, copies and fills it asks for; those of a loop once
  std::vector<llvm::Constant*> calls;  // of library routines: a kiln_gpu_call each
  llvm::Constant* groups = nullptr;    // of NCCL's communicators: a kiln_gpu_groups; a null constant: it needs none
};

// Emits `symbol` (host/entry.h), which serves every image and whose machine is a kiln_gpu (runtime_min/gpu/abi.h), into
// a module of the host. `algorithms`: of the library calls; null: none are known.
absl::StatusOr<EntryUse> EmitEntry(Ir& ir, const std::string& symbol, const ThunkSequence& thunks,
                                   const KernelPlan& plan, const std::vector<Image>& images,
                                   const LibraryAlgorithms* algorithms, const EntryOptions& options);

}  // namespace kiln::gpu
