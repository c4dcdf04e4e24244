// CPU kernels: one LLVM function per distinct computation.
//
// Every kernel has the signature  void(ptr args, i64 begin, i64 end): `args` holds the operands' addresses, then the
// results', then the scratch's; [begin, end) is a part of the kernel's units, so that a pool can split it.
#pragma once

#include <optional>
#include <set>

#include "absl/status/statusor.h"
#include "codegen/cpu/epilogue.h"
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
// Products that differ in B and their results alone: `pick` has the body's arrays be those of one of `count`.
struct Copies {
  int64_t count = 1;
  std::function<void(llvm::Value* copy)> pick;
};
// `stored`: what `epilogue` stores, if there is one.
absl::StatusOr<int64_t> EmitDot(Body& body, std::optional<PrimitiveType> stored = {}, const Epilogue& epilogue = {},
                                const Copies& copies = {});
absl::StatusOr<int64_t> EmitConvolution(Body& body, const Epilogue& epilogue = {});

// The dot or convolution of a fusion of kind kOutput, whose other operations are made of its elements: one for each of
// its results. Empty for any other instruction.
std::vector<const Instruction*> ProductsOf(const Instruction* fusion);

}  // namespace kiln::cpu
