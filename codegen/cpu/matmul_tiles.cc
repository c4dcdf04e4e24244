// The matrix product by AMX: eight tile registers, each of 16 rows of 64 bytes.
#include "codegen/cpu/matmul.h"
#include "codegen/cpu/matmul_micro.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace kiln::cpu {
namespace {

namespace Intr = llvm::Intrinsic;

constexpr int kTiles = 8;
constexpr int64_t kRowBytes = 64;
constexpr int64_t kWordBytes = 4;  // of a sum, and of the products that are added to it at once
// Registers: up to 2 x 2 tiles of sums, then two of A, then two of B.
constexpr int64_t kFirstOfA = 4, kFirstOfB = 6;

class TileProducts {
 public:
  TileProducts(Ir& ir, const MatmulShape& shape, int64_t rows, llvm::Value* count, const RowRanges& ranges)
      : ir_(ir),
        b_(ir.b),
        s_(shape),
        rows_(rows),
        count_(count),
        ranges_(ranges),
        byte_(ir.b.getInt8Ty()),
        width_(ByteWidth(shape.compute)),
        group_(kWordBytes / width_) {}

  void Emit(llvm::Value* b_array) {
    Configure();
    if (s_.panel_columns) {
      Panels(b_array);
      b_.CreateIntrinsic(Intr::x86_tilerelease, {}, {});
      return;
    }
    panel_ = ir_.Alloca(byte_, s_.K() / group_ * 2 * kRowBytes);
    const int64_t pairs = s_.n / kTilePair * kTilePair;
    ir_.Loop(ir_.I64(0), ir_.I64(pairs), kTilePair, [&](llvm::Value* column) { Columns(b_array, column, 2); });
    if (s_.n - pairs >= kTileExtent) Columns(b_array, ir_.I64(pairs), 1);
    if (s_.n % kTileExtent) Columns(b_array, ir_.I64(s_.n - kTileExtent), 1);
    b_.CreateIntrinsic(Intr::x86_tilerelease, {}, {});
  }

 private:
  // B lies as panels, whose rows are groups: tiles are read from them.
  void Panels(llvm::Value* b_array) {
    panel_row_ = kWordBytes * s_.panel_columns;
    const auto columns_of = [&](llvm::Value* first, int64_t columns) {
      llvm::Value* panel = b_.CreateInBoundsGEP(byte_, b_array, ir_.Mul(first, s_.b_n_stride * width_));
      const auto columns_from = [&](llvm::Value* j, int64_t tiles) {
        panel_ = b_.CreateInBoundsGEP(byte_, panel, ir_.Mul(j, kWordBytes));
        Blocks(ir_.Add(first, j), tiles);
      };
      const int64_t pairs = columns / kTilePair * kTilePair;
      ir_.Loop(ir_.I64(0), ir_.I64(pairs), kTilePair, [&](llvm::Value* j) { columns_from(j, 2); });
      if (pairs < columns) columns_from(ir_.I64(pairs), 1);
    };
    const int64_t whole = s_.n / s_.panel_columns * s_.panel_columns;
    ir_.Loop(ir_.I64(0), ir_.I64(whole), s_.panel_columns,
             [&](llvm::Value* first) { columns_of(first, s_.panel_columns); });
    if (whole < s_.n) columns_of(ir_.I64(whole), s_.n - whole);
  }

  llvm::Value* Register(int64_t k) { return b_.getInt8(static_cast<uint8_t>(k)); }

  // Palette 1, and for each tile the bytes of a row (from byte 16) and the rows (from byte 48).
  void Configure() {
    llvm::Value* config = ir_.Alloca(byte_, 64);
    b_.CreateMemSet(config, b_.getInt8(0), 64, llvm::Align(64));
    b_.CreateStore(b_.getInt8(1), config);
    for (int k = 0; k < kTiles; ++k) {
      b_.CreateStore(b_.getInt16(kRowBytes), b_.CreateInBoundsGEP(byte_, config, ir_.I64(16 + 2 * k)));
      b_.CreateStore(b_.getInt8(kTileExtent), b_.CreateInBoundsGEP(byte_, config, ir_.I64(48 + k)));
    }
    b_.CreateIntrinsic(Intr::x86_ldtilecfg, {}, {config});
  }

  Intr::ID Product() const {
    if (s_.compute == PrimitiveType::BF16) return Intr::x86_tdpbf16ps;
    const bool b_signed = IsSigned(s_.b_type);
    if (IsSigned(s_.compute)) return b_signed ? Intr::x86_tdpbssd : Intr::x86_tdpbsud;
    return b_signed ? Intr::x86_tdpbusd : Intr::x86_tdpbuud;
  }

  // All of k for `tiles` tiles of columns from `column`.
  void Columns(llvm::Value* b_array, llvm::Value* column, int64_t tiles) {
    Pack(b_array, column, kTileExtent * tiles);
    panel_row_ = kRowBytes * tiles;
    Blocks(column, tiles);
  }

  // The same by the panel that is there.
  void Blocks(llvm::Value* column, int64_t tiles) {
    ir_.Loop(ir_.I64(0), count_, 1, [&](llvm::Value* r) {
      const RowRange range = ranges_(r);
      const int64_t pairs = rows_ / kTilePair * kTilePair;
      ir_.Loop(ir_.I64(0), ir_.I64(pairs), kTilePair, [&](llvm::Value* m) { Block(range, m, 2, column, tiles); });
      if (rows_ - pairs >= kTileExtent) Block(range, ir_.I64(pairs), 1, column, tiles);
      if (rows_ % kTileExtent) Block(range, ir_.I64(rows_ - kTileExtent), 1, column, tiles);
    });
  }

  // Groups of consecutive k lie together, column by column.
  void Pack(llvm::Value* b_array, llvm::Value* column, int64_t columns) {
    ir_.Loop(ir_.I64(0), ir_.I64(s_.K() / group_), 1, [&](llvm::Value* q) {
      ir_.Loop(
          ir_.I64(0), ir_.I64(columns), 1,
          [&](llvm::Value* j) {
            for (int64_t e = 0; e < group_; ++e) {
              llvm::Value* k = ir_.Add(ir_.Mul(q, group_), ir_.I64(e));
              llvm::Value* at = ir_.Add(OffsetOfRow(ir_, s_, k), ir_.Mul(ir_.Add(column, j), s_.b_n_stride));
              llvm::Type* el = ir_.MemType(s_.b_type);
              llvm::Value* v = b_.CreateAlignedLoad(el, b_.CreateInBoundsGEP(el, b_array, at), llvm::Align(1));
              b_.CreateAlignedStore(
                  v,
                  b_.CreateInBoundsGEP(el, panel_,
                                       ir_.Add(ir_.Mul(ir_.Add(ir_.Mul(q, columns), j), group_), ir_.I64(e))),
                  llvm::Align(1));
            }
          },
          true);
    });
  }

  // The sums of `row_tiles` by `tiles` tiles from row `m` and `column`.
  void Block(const RowRange& range, llvm::Value* m, int64_t row_tiles, llvm::Value* column, int64_t tiles) {
    for (int64_t x = 0; x < row_tiles * tiles; ++x) b_.CreateIntrinsic(Intr::x86_tilezero, {}, {Register(x)});
    Walk(0, ir_.I64(0), ir_.I64(0),
         [&](llvm::Value* a, llvm::Value* k, llvm::Value* q) { Multiply(range, m, row_tiles, tiles, a, k, q); });
    for (int64_t x = 0; x < row_tiles; ++x)
      for (int64_t y = 0; y < tiles; ++y) {
        llvm::Value* c = ir_.Add(ir_.Mul(ir_.Add(m, ir_.I64(kTileExtent * x)), s_.c_stride),
                                 ir_.Add(column, ir_.I64(kTileExtent * y)));
        b_.CreateIntrinsic(Intr::x86_tilestored64, {},
                           {Register(x * tiles + y), b_.CreateInBoundsGEP(b_.getInt32Ty(), range.c, c),
                            ir_.I64(kWordBytes * s_.c_stride)});
      }
  }

  // Calls `step(a, k, q)` for each tile of k: the segments' place in a row of A and in k, and the place in the run.
  template <typename Step>
  void Walk(size_t depth, llvm::Value* a, llvm::Value* k, const Step& step) {
    if (depth == s_.segments.size()) {
      ir_.Loop(ir_.I64(0), ir_.I64(s_.run), kRowBytes / width_, [&](llvm::Value* q) { step(a, k, q); });
      return;
    }
    int64_t inner = s_.run;
    for (size_t q = depth + 1; q < s_.segments.size(); ++q) inner *= s_.segments[q].count;
    ir_.Loop(ir_.I64(0), ir_.I64(s_.segments[depth].count), 1, [&](llvm::Value* q) {
      Walk(depth + 1, ir_.Add(a, ir_.Mul(q, s_.segments[depth].a_stride)), ir_.Add(k, ir_.Mul(q, inner)), step);
    });
  }

  void Multiply(const RowRange& range, llvm::Value* m, int64_t row_tiles, int64_t tiles, llvm::Value* a, llvm::Value* k,
                llvm::Value* q) {
    auto a_at = [&](llvm::Value* off, int64_t x) {
      return b_.CreateInBoundsGEP(
          byte_, range.a,
          ir_.Mul(ir_.Add(ir_.Add(off, ir_.Mul(m, s_.a_stride)), ir_.I64(kTileExtent * x * s_.a_stride)), width_));
    };
    for (int64_t x = 0; x < row_tiles; ++x)
      b_.CreateIntrinsic(Intr::x86_tileloadd64, {},
                         {Register(kFirstOfA + x), a_at(ir_.Add(a, q), x), ir_.I64(s_.a_stride * width_)});
    llvm::Value* row = ir_.Mul(b_.CreateUDiv(ir_.Add(k, q), ir_.I64(group_)), panel_row_);
    for (int64_t y = 0; y < tiles; ++y)
      b_.CreateIntrinsic(
          Intr::x86_tileloadd64, {},
          {Register(kFirstOfB + y), b_.CreateInBoundsGEP(byte_, panel_, ir_.Add(row, ir_.I64(kRowBytes * y))),
           ir_.I64(panel_row_)});
    for (int64_t x = 0; x < row_tiles; ++x)
      for (int64_t y = 0; y < tiles; ++y)
        b_.CreateIntrinsic(Product(), {}, {Register(x * tiles + y), Register(kFirstOfA + x), Register(kFirstOfB + y)});
  }

  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const MatmulShape& s_;
  const int64_t rows_;
  llvm::Value* const count_;
  const RowRanges& ranges_;
  llvm::Type* const byte_;
  const int64_t width_;  // bytes of an element
  const int64_t group_;  // elements of a word
  llvm::Value* panel_ = nullptr;
  int64_t panel_row_ = 0;  // bytes of its rows
};

}  // namespace

void EmitTileProducts(Ir& ir, const MatmulShape& shape, int64_t rows, llvm::Value* b, llvm::Value* count,
                      const RowRanges& ranges) {
  TileProducts(ir, shape, rows, count, ranges).Emit(b);
}

}  // namespace kiln::cpu
