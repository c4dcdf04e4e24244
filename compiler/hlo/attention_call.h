// Calls of cuDNN's attention, as JAX writes them (jax.nn.dot_product_attention with implementation="cudnn").
//
//   __cudnn$fmha[ScaleBias]Softmax(q, k, v [, bias] [, q lengths, k lengths]) -> (o [, statistics], workspace)
//   __cudnn$fmha[ScaleBias]SoftmaxBackward(q, k, v, statistics, gradient of o [, bias], o [, lengths])
//       -> (gradients of q, k, v [, of the bias], workspace)
//
// q, k and v are [batch, heads, length, width] or [batch, length, heads, width], as the configuration's products say;
// results are [batch, heads, length, width], statistics the logarithms of the softmaxes' sums, [batch, heads, length].
// Heads of k and v may be fewer: each serves as many neighbours of q. Not served: dropout, segments, pages, 8-bit
// floats.
#pragma once

#include <vector>

#include "compiler/hlo/instruction.h"

namespace kiln {

// Whether `i` is such a call, with operands that fit.
bool IsAttentionCall(const Instruction* i);

// What it computes from `operands`, which are in `c`, in ordinary operations. Scores are f32.
Instruction* AttentionOf(const Instruction* call, Computation* c, const std::vector<Instruction*>& operands);

}  // namespace kiln
