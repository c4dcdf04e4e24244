// From LLVM modules to PTX.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "codegen/llvm/ir.h"

namespace kiln {

// What an Ir for NVIDIA's GPUs may assume; `cpu` and `features` as LLVM spells them ("sm_80", "+ptx80").
CpuLevel PtxLevel(const std::string& cpu, const std::string& features);

// Links what the module uses of the kernel library, optimises and returns PTX. Deterministic. `ir_text`, if given,
// receives the optimised IR. `flush`: subnormal numbers in f32 count as zero. `libdevice`: the
// CUDA Toolkit's library of functions in f64 that kiln takes from the C library on a host; without it (empty) a module
// that needs them fails and says which.
absl::StatusOr<std::string> CompileToPtx(llvm::Module& module, const CpuLevel& level, bool flush,
                                         const std::string& libdevice, std::string* ir_text = nullptr);

}  // namespace kiln
