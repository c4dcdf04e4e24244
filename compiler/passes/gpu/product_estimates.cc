// What products take on a GPU, as one kernel of kiln's and as calls of a library: for passes that choose between them.
// The figures are a server's GPU's (target/gpus/sm_90.txt), whatever the program is for.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/passes/gpu/product_fusion.h"
#include "compiler/target/gpu_tiles.h"

namespace kiln {
namespace {

// What a kernel takes beside its work.
constexpr int kMultiprocessors = 132;
// Extents of tiles: what reaches the speeds below, and what occupies more of the device but is slower.
constexpr double kTile = 64, kSmallTile = 32, kSlowdown = 1.5;

// Flops per microsecond of products that occupy the device; 0 where no figure is known.
struct Speeds {
  double own = 0, library = 0;
};
Speeds SpeedsOf(const Instruction* dot) {
  switch (dot->operand(0)->shape().type()) {
    case PrimitiveType::F32:
      return {42e6, 50e6};
    case PrimitiveType::F16:
    case PrimitiveType::BF16:
      return {250e6, 500e6};
    default:
      return {};
  }
}

int64_t Depth(const Instruction* dot) { return dot->operand(0)->shape().dim((*dot->attrs().lhs_contracting_dims)[0]); }

double Tiles(const Instruction* dot, double tile) {
  const auto tiles = [tile](int64_t extent) { return std::ceil(static_cast<double>(extent) / tile); };
  const Shape& s = dot->shape();
  return static_cast<double>(s.dim(0)) * tiles(s.dim(1)) * tiles(s.dim(2));
}

// The time of `flops` of which `tiles` are computed at once.
double Us(double flops, double tiles, double speed) {
  if (speed == 0) return std::numeric_limits<double>::infinity();
  return kKernelUs + flops / speed * std::max(1.0, kMultiprocessors / tiles);
}

}  // namespace

double ProductFlops(const Instruction* dot) {
  return 2.0 * static_cast<double>(dot->shape().ElementCount()) * static_cast<double>(Depth(dot));
}

bool IsForLibrary(const Instruction* dot) {
  const PrimitiveType t = dot->operand(0)->shape().type();
  return !dot->attrs().algorithm && t == dot->operand(1)->shape().type() && BitWidth(t) >= 8;
}

bool IsFastAsOwn(const Instruction* dot) {
  // On an H100, with operands from memory: 4 x 384 x 128 takes kiln 4.5 us and cuBLASLt 8.2, 200 x 768 x 192 takes 8.3
  // and 9.3, 32 x 512 x 784 takes 13.4 and 11.2. In TF32 both take less, and kiln wins a little longer.
  constexpr double kLibraryUs = 6.8;
  constexpr auto kF32 = PrimitiveType::F32;
  const Shape& s = dot->shape();
  if (!IsForLibrary(dot) || dot->attrs().backend_config || s.type() != kF32 || dot->operand(0)->shape().type() != kF32)
    return false;
  double best = std::numeric_limits<double>::infinity();
  for (const gpu::Tile& t : gpu::AllTiles())
    if (t.kind == gpu::Tile::kThreads) {
      const int64_t blocks = t.Blocks(s.dim(0), s.dim(1), s.dim(2));
      best = std::min(best, 1e-3 * static_cast<double>(t.Nanoseconds(blocks, Depth(dot), kMultiprocessors)));
    }
  return kKernelUs + best <= kLibraryUs;
}

double LibraryProductUs(const Instruction* dot) {
  // It cuts long sums into parts that run at once.
  constexpr double kPart = 256, kMostParts = 4;
  const double parts = std::clamp(static_cast<double>(Depth(dot)) / kPart, 1.0, kMostParts);
  const double speed = SpeedsOf(dot).library;
  return speed == 0 ? 0 : Us(ProductFlops(dot), Tiles(dot, kTile) * parts, speed);
}

double OwnProductsUs(const std::vector<const Instruction*>& dots, bool in_one_place) {
  double flops = 0, tiles = 0, small_tiles = 0;
  for (const Instruction* dot : dots) {
    flops += ProductFlops(dot);
    tiles = Tiles(dot, kTile) + (in_one_place ? 0 : tiles);
    small_tiles = Tiles(dot, kSmallTile) + (in_one_place ? 0 : small_tiles);
  }
  const double speed = SpeedsOf(dots[0]).own;
  return std::min(Us(flops, tiles, speed), Us(flops, small_tiles, speed / kSlowdown));
}

}  // namespace kiln
