// How kiln's own products are divided among blocks and threads, and which division a product gets.
#pragma once

#include <vector>

#include "compiler/hlo/instruction.h"
#include "compiler/target/gpu_target.h"

namespace kiln::gpu {

struct Tile {
  enum Kind { kThreads, kTensor } kind;
  int64_t rows, columns, depth;
  int64_t down, across;  // threads or warps
  bool operator==(const Tile&) const = default;
};

// A product as dot-decomposer leaves it.
struct ProductShape {
  int64_t batch, m, n, k;
  PrimitiveType a, b, out;
};

// The product inside `i`, which is a dot or a fusion around one; null if there is none.
const Instruction* ProductIn(const Instruction* i);
// The shape of a dot of two batched matrices with one contracting dimension each; fails for others.
absl::StatusOr<ProductShape> ProductShapeOf(const Instruction* dot);

// By number (tiles.def).
const std::vector<Tile>& AllTiles();
// The numbers of the tiles that can compute `p`, the plainest first.
std::vector<int64_t> TilesFor(const ProductShape& p, const GpuTarget& target);
// The one that `i` gets: what tuning chose (backend_config), else the largest whose blocks occupy every multiprocessor,
// on tensor cores where they serve.
absl::StatusOr<Tile> TileOf(const Instruction* i, const GpuTarget& target);

}  // namespace kiln::gpu
