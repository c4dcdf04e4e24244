// Calls by which XLA and JAX (jax.nn.scaled_matmul) name arithmetic on arrays of few bits that share a scale by blocks.
//
//   __op$quantize(x) -> (values, scales)        a block's largest magnitude, divided by the largest power of two of the
//                                               values' type, is its scale
//   __op$dequantize(values, scales) -> x
//   __op$block_scaled_dot(a, b, scales of a [, scales of b [, factor]])
//                                               contracts the last dimensions; of three, the first is the batch
//
// A block is a stretch of the last dimension. Its length is what the extents say, or the configuration's "block_size":
// then scales may be padded, as those of rows may always.
#pragma once

#include <vector>

#include "compiler/hlo/instruction.h"

namespace kiln {

// Whether `i` is such a call, with operands that fit.
bool IsBlockScaling(const Instruction* i);

// What it computes from `operands`, which are in `c`, in ordinary operations. Operands are scaled in the result's type.
Instruction* BlockScalingOf(const Instruction* call, Computation* c, const std::vector<Instruction*>& operands);

}  // namespace kiln
