// Which tile (compiler/target/gpu_tiles.h) a product of kiln's own gets.
#pragma once

#include <optional>
#include <vector>

#include "compiler/hlo/instruction.h"
#include "compiler/target/gpu_target.h"
#include "compiler/target/gpu_tiles.h"

namespace kiln::gpu {

// A product, as dot-decomposer leaves it: [batch, m, k] by [batch, k, n]. Convolutions are products too: of the windows
// around every output (m) by the kernel (n features), batched by feature groups.
struct ProductShape {
  int64_t batch, m, n, k;
  PrimitiveType a, b, out;
  bool precise = false;  // the program asks for more than the default precision, of any product of the kernel
};

// The dots or the convolution that `i` is, or that it is a fusion around: of a group of products (a fusion with several
// results) one for each result, in their order. Empty if there is none.
std::vector<const Instruction*> HeroesOf(const Instruction* i);
// The products that `i` is computed as: a dot, a convolution with enough features for it, or a fusion around one or
// several. None for anything else; fails for a dot that is not of two batched matrices with one contracting dimension
// each.
absl::StatusOr<std::vector<ProductShape>> ProductsOf(const Instruction* i);

// How many blocks compute `p`.
int64_t BlocksOf(const ProductShape& p, const Tile& t);

// The numbers of the tiles that can compute `p`, the plainest first. Its types alone decide.
std::vector<int64_t> TilesFor(const ProductShape& p, const GpuTarget& target);
// The one that `i` gets for its products, which are of the same types: what tuning chose (backend_config), else the one
// that is fastest by the times of gpu_tiles.def, on tensor cores where they serve.
absl::StatusOr<Tile> TileOf(const Instruction* i, const std::vector<ProductShape>& products, const GpuTarget& target);

}  // namespace kiln::gpu
