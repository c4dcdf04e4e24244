// How kiln's own products on GPUs are divided among blocks and threads, and what that takes (gpu_tiles.def).
//
// What: the tiles that code generation can emit, with times that were measured of each. Passes ask what a product takes
//   as a kernel of kiln's, code generation which tile it gets.
#pragma once

#include <cstdint>
#include <vector>

namespace kiln::gpu {

struct Tile {
  enum Kind { kThreads, kTensor } kind;
  int64_t rows, columns, depth;
  int64_t down, across;   // threads or warps
  int64_t groups;         // of threads or warps, each with a part of the depth
  int64_t alone, shared;  // nanoseconds that an element of depth takes
  bool operator==(const Tile&) const = default;

  // How many blocks compute `batch` results of m x n.
  int64_t Blocks(int64_t batch, int64_t m, int64_t n) const;
  // Nanoseconds that `blocks` with sums over k take, on a device with so many multiprocessors like an H100's.
  int64_t Nanoseconds(int64_t blocks, int64_t k, int64_t multiprocessors) const;
};

// By number (gpu_tiles.def).
const std::vector<Tile>& AllTiles();

}  // namespace kiln::gpu
