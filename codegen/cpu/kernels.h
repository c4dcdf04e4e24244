// CPU kernels: one LLVM function per distinct computation.
//
// Every kernel has the signature  void(ptr args, i64 begin, i64 end): `args` holds the operands' addresses, then the
// results', then the scratch's; [begin, end) is a part of the kernel's units, so that a pool can split it.
#pragma once

#include <set>

#include "absl/status/statusor.h"
#include "codegen/elemental/library.h"
#include "codegen/llvm/ir.h"

namespace kiln::cpu {

struct Kernel {
  llvm::Function* function = nullptr;
  int64_t units = 1;
};

// Emits the kernel of `i` under `symbol`, which debuggers call `label`. `shared`: operands whose storage is a result's.
absl::StatusOr<Kernel> EmitKernel(Ir& ir, const std::string& symbol, const std::string& label, const Instruction* i,
                                  const std::set<int64_t>& shared);

// Arena bytes that the kernel of `i` needs while it runs.
int64_t ScratchBytes(const Instruction* i);

// Emitters by family, used by EmitKernel.
absl::StatusOr<int64_t> EmitFusion(Body& body);
absl::StatusOr<int64_t> EmitDot(Body& body);
absl::StatusOr<int64_t> EmitConvolution(Body& body);

}  // namespace kiln::cpu
