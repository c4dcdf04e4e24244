// What a fused kernel makes of a product's results before they leave the cache.
#pragma once

#include <functional>

#include "codegen/llvm/ir.h"

namespace kiln::cpu {

// A block of a product's results as rows of `width`: the extent of the last dimension that is not 1, or 1.
struct ResultBlock {
  int64_t width;
  llvm::Value *row, *rows;
  llvm::Value *column, *columns;
  // Where the block lies, as `tile_type` and in rows `tile_stride` apart; null: in its place in the kernel's result.
  llvm::Value* tile = nullptr;
  int64_t tile_stride = 0;
  PrimitiveType tile_type = PrimitiveType::F32;
};

// Stores what is made of the block's elements in their places. Emitters of products call it once for each block, when
// its sums are whole; empty: the results stay as they are.
using Epilogue = std::function<void(const ResultBlock&)>;

}  // namespace kiln::cpu
