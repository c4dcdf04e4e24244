// Fusions around products of kiln's own kernels: what the passes that make them share.
#pragma once

#include <functional>

#include "compiler/hlo/instruction.h"
#include "compiler/pass/pass.h"

namespace kiln {

// A dot as dot-decomposer leaves it: two batched matrices, one contracting dimension each.
bool IsCanonicalProduct(const Instruction* i);
// A convolution that is computed as a product (tuning.h), in row-major layouts.
bool IsConvolutionAsProduct(const Instruction* i);

// What the kernel of a product, or of several, is named by in the configuration of its fusion.
inline constexpr char kProductFusionConfig[] = "{\"fusion_backend_config\":{\"kind\":\"__triton_gemm\"}}";
bool IsProductFusion(const Instruction* i);

// One fusion of kind __triton_gemm around `product`, if there is something to take along: what follows it element by
// element, with the broadcasts that this reads, and what its operands are made of if that widens them from integers of
// at most 8 bits, or if the product is so small that another kernel would take longer. Null if there is nothing.
struct ProductFusionOptions {
  // Nothing is done unless operands are widened, the product is small or it is faster than the library's.
  bool only_own = false;
  // Whether what follows the product may read this besides; null: whatever it reads.
  std::function<bool(const Instruction*)> may_read;
};
Instruction* FuseAroundProduct(Instruction* product, PassContext& ctx, const ProductFusionOptions& options = {});

// Estimates of products, in microseconds (product_estimates.cc). No figure is known for some types: kiln's kernels then
// seem to take for ever, and a library no time.
inline constexpr double kKernelUs = 2.5;  // what a kernel takes beside its work
double ProductFlops(const Instruction* dot);
// Whether a library would compute it, if it is left alone.
bool IsForLibrary(const Instruction* dot);
double LibraryProductUs(const Instruction* dot);
// Whether its kernel ends before the library's would: small products of f32, for which cuBLASLt often starts two
// kernels.
bool IsFastAsOwn(const Instruction* dot);
// Of all as one kernel: side by side, or each block adding up one place of all.
double OwnProductsUs(const std::vector<const Instruction*>& dots, bool in_one_place = false);

}  // namespace kiln
