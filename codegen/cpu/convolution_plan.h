// What is decided about a convolution before its kernel is emitted: the algorithm, how the work is split, which part of
// the input is copied and where to.
//
// Arithmetic on shapes and a CPU level only, so that tests can read it; convolution.cc emits what a plan says.
#pragma once

#include "absl/status/statusor.h"
#include "codegen/cpu/matmul_plan.h"
#include "compiler/hlo/instruction.h"

namespace kiln::cpu {

// The result is in the order that convolution-canonicalization leaves: batch, spatial, features. The input may have any
// order; the kernel any in which its spatial dimensions follow one another.
struct ConvolutionShape {
  PrimitiveType a, b, c;             // of input, kernel, result
  int64_t batch, groups, cin, cout;  // features of one group
  Ints in, out;                      // spatial extents
  attr::Win window;
  int64_t image_stride, feature_stride;       // of the input, in elements
  Ints position_stride;                       // of the input, by spatial dimension
  int64_t tap_stride, in_stride, out_stride;  // of the kernel, in elements
  int64_t panel = 0;  // columns of the kernel's panels (analysis/panels.h), which out_stride then is between; 0: none
  int64_t panel_group = 1;
  int64_t spatial() const { return static_cast<int64_t>(in.size()); }
  int64_t in_features() const { return cin * groups; }
  int64_t out_features() const { return cout * groups; }
  int64_t positions() const;  // of the results, over batch and space
  bool FeaturesLast() const;  // the input is in the order batch, spatial, features
};

enum class ConvolutionAlgorithm {
  kDirect,     // for each position each tap adds a row of features: depthwise, and what the product does not take
  kPointwise,  // windows of one element of the input: the product of pixels and features
  kProducts,   // a product for each row of results; the taps are segments of k
};

// Of kProducts. The innermost spatial dimension is the row of the product, the outermost is cut into slabs, those
// between are whole. A slab is the input that the outputs of a piece of the outermost dimension read.
struct SlabPlan {
  bool pack;             // the slab is a copy: padded, dilated, converted, in another order
  bool in_arena;         // it is too large for the stack
  int64_t elements;      // of the copy
  Ints extent;           // of the input with padding and holes that the outputs touch
  Ints stride;           // of A in elements, by spatial dimension: in the copy, or in the input itself
  int64_t window_lines;  // of the outermost dimension, that one output reads
};

struct ConvolutionPlan {
  ConvolutionShape shape;
  ConvolutionAlgorithm algorithm;
  PrimitiveType held;    // what sums are held in (kDirect), or A while it is multiplied
  int64_t units;         // images times pieces times column_parts, or fewer
  int64_t column_parts;  // of a piece's output features, each a product of its own
  MatmulShape product;   // of such a part
  Pieces pieces;         // of the pixels (kPointwise), or of the outermost spatial dimension of the result (kProducts)
  SlabPlan slab;
};

// `epilogue`: something is made of the results while they are in cache. Fails where a position has more features than
// the plain loops hold.
absl::StatusOr<ConvolutionPlan> PlanConvolution(const CpuLevel& level, const Instruction* convolution,
                                                bool epilogue = false);

// Arena bytes that a copy of the input takes if it is too large for the stack, else 0.
int64_t ConvolutionScratchBytes(const Instruction* convolution);

}  // namespace kiln::cpu
