// A model on the GPU: its kernels, and the host code that starts them.
#pragma once

#include <string>
#include <vector>

#include "codegen/gpu/kernels.h"
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

// Emits every planned kernel into `ir`'s module.
absl::StatusOr<Program> EmitKernels(Ir& ir, const KernelPlan& plan);

// Emits `symbol` (host/entry.h), whose machine is a kiln_gpu (runtime_min/gpu/abi.h), into a module of the host.
// Returns the number of regions that it has recorded.
absl::StatusOr<int64_t> EmitEntry(Ir& ir, const std::string& symbol, const ThunkSequence& thunks,
                                  const KernelPlan& plan, const Program& program, const EntryOptions& options);

}  // namespace kiln::gpu
