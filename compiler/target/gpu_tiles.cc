#include "compiler/target/gpu_tiles.h"

#include <algorithm>

namespace kiln::gpu {
namespace {

int64_t Ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

int64_t Tile::Blocks(int64_t batch, int64_t m, int64_t n) const { return batch * Ceil(m, rows) * Ceil(n, columns); }

int64_t Tile::Nanoseconds(int64_t blocks, int64_t k, int64_t multiprocessors) const {
  return Ceil(k, depth) * depth * std::max(alone, blocks * shared / multiprocessors);
}

const std::vector<Tile>& AllTiles() {
  static const auto* tiles = new std::vector<Tile>{
#define TILE(number, kind, rows, columns, depth, down, across, groups, alone, shared) \
  {Tile::kind, rows, columns, depth, down, across, groups, alone, shared},
#include "compiler/target/gpu_tiles.def"
  };
  return *tiles;
}

}  // namespace kiln::gpu
