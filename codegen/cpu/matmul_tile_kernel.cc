// The register tiles of tile products (AMX): eight tile registers, each of 16 rows of 64 bytes.
#include <algorithm>
#include <array>

#include "codegen/cpu/matmul_micro.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace kiln::cpu {
namespace {

namespace Intr = llvm::Intrinsic;

// Registers: up to 2 x 2 tiles of sums, then two of A, then two of B.
constexpr int64_t kFirstOfA = 4, kFirstOfB = 6;

// Tiles that `extent` rows or columns take.
int64_t TilesOf(int64_t extent) { return (extent + kTileExtent - 1) / kTileExtent; }
// What tile `k` of them has.
int64_t OfTile(int64_t extent, int64_t k) { return std::clamp<int64_t>(extent - k * kTileExtent, 0, kTileExtent); }

class TileKernel {
 public:
  TileKernel(Ir& ir, const MatmulShape& shape, const MicroTile& tile, llvm::Function* f)
      : ir_(ir),
        b_(ir.b),
        s_(shape),
        t_(tile),
        f_(f),
        byte_(ir.b.getInt8Ty()),
        width_(ByteWidth(shape.compute)),
        row_tiles_(TilesOf(tile.rows)),
        column_tiles_(TilesOf(tile.columns)) {}

  void Emit() {
    b_.SetInsertPoint(llvm::BasicBlock::Create(ir_.ctx, "entry", f_));
    Begin();
    Segments(0, f_->getArg(0), f_->getArg(1));
    s_.c_type == SumType(s_.compute) ? ForSums(Intr::x86_tilestored64) : Convert();
    b_.CreateRetVoid();
  }

 private:
  llvm::Value* Register(int64_t k) { return b_.getInt8(static_cast<uint8_t>(k)); }
  int64_t SumAt(int64_t x, int64_t y) const { return x * column_tiles_ + y; }
  llvm::Value* At(llvm::Value* p, int64_t bytes) { return b_.CreateInBoundsGEP(byte_, p, ir_.I64(bytes)); }

  template <typename Body>
  void ForTiles(const Body& body) {
    for (int64_t x = 0; x < row_tiles_; ++x)
      for (int64_t y = 0; y < column_tiles_; ++y) body(x, y);
  }

  // Loads or stores the sums.
  void ForSums(Intr::ID move) {
    ForTiles([&](int64_t x, int64_t y) {
      const int64_t at = kTileSumBytes * kTileExtent * (x * s_.c_stride + y);
      b_.CreateIntrinsic(move, {},
                         {Register(SumAt(x, y)), At(f_->getArg(2), at), ir_.I64(kTileSumBytes * s_.c_stride)});
    });
  }

  void Zero() {
    ForTiles([&](int64_t x, int64_t y) { b_.CreateIntrinsic(Intr::x86_tilezero, {}, {Register(SumAt(x, y))}); });
  }

  void Begin() {
    if (t_.sum == Sum::kNew) return Zero();
    if (t_.sum == Sum::kAdded) return ForSums(Intr::x86_tileloadd64);
    auto* fresh = llvm::BasicBlock::Create(ir_.ctx, "new", f_);
    auto* added = llvm::BasicBlock::Create(ir_.ctx, "added", f_);
    auto* begun = llvm::BasicBlock::Create(ir_.ctx, "begun", f_);
    b_.CreateCondBr(f_->getArg(3), fresh, added);
    b_.SetInsertPoint(fresh);
    Zero();
    b_.CreateBr(begun);
    b_.SetInsertPoint(added);
    ForSums(Intr::x86_tileloadd64);
    b_.CreateBr(begun);
    b_.SetInsertPoint(begun);
  }

  // `count` steps, `a_step` and `b_step` bytes apart.
  template <typename Body>
  void Loop(int64_t count, int64_t a_step, int64_t b_step, llvm::Value* a, llvm::Value* b, const Body& body) {
    if (count == 1) return body(a, b);
    ir_.Loop(ir_.I64(0), ir_.I64(count), 1, [&](llvm::Value* k) {
      body(b_.CreateInBoundsGEP(byte_, a, ir_.Mul(k, a_step)), b_.CreateInBoundsGEP(byte_, b, ir_.Mul(k, b_step)));
    });
  }

  // The loops over segments from `depth` on, and over the run inside the last of them.
  void Segments(size_t depth, llvm::Value* a, llvm::Value* b) {
    if (depth == t_.segments.size()) {
      const int64_t steps = std::max<int64_t>(1, t_.run * width_ / kTileRowBytes);
      return Loop(steps, kTileRowBytes, kTileExtent * t_.b_stride * kTileSumBytes, a, b,
                  [&](llvm::Value* x, llvm::Value* y) { Multiply(x, y); });
    }
    int64_t inner = t_.b_run;
    for (size_t k = depth + 1; k < t_.segments.size(); ++k) inner *= t_.segments[k].count;
    const Segment& q = t_.segments[depth];
    Loop(q.count, q.a_stride * width_, inner * t_.b_stride * kTileSumBytes, a, b,
         [&](llvm::Value* x, llvm::Value* y) { Segments(depth + 1, x, y); });
  }

  Intr::ID Product() const {
    if (s_.compute == PrimitiveType::BF16) return Intr::x86_tdpbf16ps;
    const bool b_signed = IsSigned(s_.b_type);
    if (IsSigned(s_.compute)) return b_signed ? Intr::x86_tdpbssd : Intr::x86_tdpbsud;
    return b_signed ? Intr::x86_tdpbusd : Intr::x86_tdpbuud;
  }

  void Multiply(llvm::Value* a, llvm::Value* b) {
    const auto load = [&](int64_t tile, llvm::Value* from, int64_t at, int64_t stride) {
      b_.CreateIntrinsic(Intr::x86_tileloadd64, {}, {Register(tile), At(from, at), ir_.I64(stride)});
    };
    // Each load stands just before what needs it: products go on while the next one arrives.
    for (int64_t x = 0; x < row_tiles_; ++x) {
      load(kFirstOfA + x, a, kTileExtent * x * s_.a_stride * width_, s_.a_stride * width_);
      for (int64_t y = 0; y < column_tiles_; ++y) {
        if (x == 0) load(kFirstOfB + y, b, kTileRowBytes * y, t_.b_stride * kTileSumBytes);
        b_.CreateIntrinsic(Product(), {}, {Register(SumAt(x, y)), Register(kFirstOfA + x), Register(kFirstOfB + y)});
      }
    }
  }

  // Stores the sums as the result's type, by way of the stack.
  void Convert() {
    const int64_t stride = column_tiles_ * kTileRowBytes;
    llvm::Value* sums = ir_.Alloca(byte_, row_tiles_ * kTileExtent * stride);
    ForTiles([&](int64_t x, int64_t y) {
      llvm::Value* to = At(sums, x * kTileExtent * stride + y * kTileRowBytes);
      b_.CreateIntrinsic(Intr::x86_tilestored64, {}, {Register(SumAt(x, y)), to, ir_.I64(stride)});
    });
    llvm::Type* c_element = ir_.MemType(s_.c_type);
    auto* line = llvm::FixedVectorType::get(b_.getFloatTy(), static_cast<unsigned>(kTileExtent));
    ir_.Loop(ir_.I64(0), ir_.I64(t_.rows), 1, [&](llvm::Value* m) {
      llvm::Value* row = b_.CreateInBoundsGEP(byte_, sums, ir_.Mul(m, stride));
      llvm::Value* to = b_.CreateInBoundsGEP(c_element, f_->getArg(2), ir_.Mul(m, s_.c_stride));
      const auto sum = [&](int64_t y) -> llvm::Value* {
        return b_.CreateAlignedLoad(line, At(row, y * kTileRowBytes), llvm::Align(kTileRowBytes));
      };
      if (t_.columns == kTilePair) {  // a whole line; sums of tiles are never subnormal, which this would flush
        llvm::Value* pair = b_.CreateIntrinsic(Intr::x86_avx512bf16_cvtne2ps2bf16_512, {}, {sum(1), sum(0)});
        b_.CreateAlignedStore(pair, to, llvm::Align(2));
        return;
      }
      for (int64_t y = 0; y < column_tiles_; ++y)
        StoreLine(RoundedToBf16(ir_, sum(y)), b_.CreateInBoundsGEP(c_element, to, ir_.I64(kTileExtent * y)),
                  OfTile(t_.columns, y));
    });
  }

  // The first `live` elements of a tile's row.
  void StoreLine(llvm::Value* line, llvm::Value* to, int64_t live) {
    const llvm::Align align(static_cast<uint64_t>(ByteWidth(s_.c_type)));
    if (live == kTileExtent) {
      b_.CreateAlignedStore(line, to, align);
      return;
    }
    std::vector<llvm::Constant*> mask;
    for (int64_t k = 0; k < kTileExtent; ++k) mask.push_back(b_.getInt1(k < live));
    b_.CreateMaskedStore(line, to, align, llvm::ConstantVector::get(mask));
  }

  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const MatmulShape& s_;
  const MicroTile& t_;
  llvm::Function* const f_;
  llvm::Type* const byte_;
  const int64_t width_;  // bytes of an element
  const int64_t row_tiles_, column_tiles_;
};

}  // namespace

void EmitTileKernel(Ir& ir, const MatmulShape& shape, const MicroTile& tile, llvm::Function* f) {
  TileKernel(ir, shape, tile, f).Emit();
}

void ConfigureTiles(Ir& ir, const MatmulShape& shape, int64_t rows, int64_t columns, int64_t run) {
  // Palette 1, and for each tile the bytes of a row (from byte 16) and the rows (from byte 48).
  constexpr size_t kBytes = 64, kRowBytesAt = 16, kRowsAt = 48;
  std::array<uint8_t, kBytes> config = {1};
  const auto tile = [&](int64_t k, int64_t tile_rows, int64_t row_bytes) {
    config[kRowBytesAt + 2 * static_cast<size_t>(k)] = static_cast<uint8_t>(row_bytes);
    config[kRowsAt + static_cast<size_t>(k)] = static_cast<uint8_t>(tile_rows);
  };
  const int64_t depth = run * ByteWidth(shape.compute);
  for (int64_t x = 0; x < TilesOf(rows); ++x) {
    tile(kFirstOfA + x, OfTile(rows, x), depth);
    for (int64_t y = 0; y < TilesOf(columns); ++y)
      tile(x * TilesOf(columns) + y, OfTile(rows, x), kTileSumBytes * OfTile(columns, y));
  }
  for (int64_t y = 0; y < TilesOf(columns); ++y)
    tile(kFirstOfB + y, depth / kTileSumBytes, kTileSumBytes * OfTile(columns, y));
  llvm::Constant* init = llvm::ConstantDataArray::get(ir.ctx, config);
  auto* global = new llvm::GlobalVariable(ir.module, init->getType(), true, llvm::GlobalValue::PrivateLinkage, init,
                                          "tile_config");
  global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  global->setAlignment(llvm::Align(kBytes));
  ir.b.CreateIntrinsic(Intr::x86_ldtilecfg, {}, {global});
}

void ReleaseTiles(Ir& ir) { ir.b.CreateIntrinsic(Intr::x86_tilerelease, {}, {}); }

}  // namespace kiln::cpu
