// The kernel of one product: where the elements of its operands come from and where its results go is the caller's.
#pragma once

#include <functional>

#include "codegen/gpu/kernels.h"
#include "codegen/gpu/tiles.h"

namespace kiln::gpu {

// Where an element of an operand lies in its array, and whether it is there at all (null: always); zero if not.
struct Place {
  llvm::Value* offset;
  llvm::Value* inside = nullptr;
};

// An operand as lines of m or n by a depth of k.
struct Source {
  PrimitiveType type;
  bool depth_first;  // its lines, not its depth, are the minor dimension
  int64_t run;       // elements along the minor dimension, from a multiple of it, that lie side by side
  // If it is an array as it is.
  llvm::Value* array = nullptr;
  std::function<Place(llvm::Value* batch, llvm::Value* line, llvm::Value* depth)> place;
  // If it is computed.
  std::function<absl::StatusOr<Val>(llvm::Value* batch, llvm::Value* line, llvm::Value* depth)> element;
};

// Operands that are multiplied over `depth`, and to which of a block's sums that is added.
struct Term {
  Source a, b;
  int64_t depth;
  size_t sum = 0;
};

// Products of one shape: where their operands' elements come from and where what is made of their sums goes.
struct Product {
  ProductShape shape;
  std::vector<Term> terms;
  size_t sums;
  std::function<absl::Status(llvm::Value* batch, llvm::Value* row, llvm::Value* column, const std::vector<Val>& sums)>
      store;
};

// Where a block keeps its part of each operand, and the sums that its groups give to each other: products of one kernel
// that are divided alike share it.
struct SharedTiles {
  llvm::Value *a = nullptr, *b = nullptr, *sums = nullptr;  // null: made when first needed
};

// Emits the product, divided as `tile` says; `body` then has its blocks and threads.
absl::Status EmitProduct(Body& body, const Product& p, const Tile& tile, SharedTiles* shared);

// A product of a fusion, and the fusion's result that is made of it.
struct FusedProduct {
  const Instruction *root, *hero;
  ProductShape shape;
};
// Emits it as above, its result at the first of `body`'s.
absl::Status EmitProductResult(Body& body, const FusedProduct& p, const Tile& tile, SharedTiles* shared);

}  // namespace kiln::gpu
