// Products by tiles (AMX): B becomes panels of as many columns as two tiles have, for as many columns as the second
// cache holds; then each two tiles of rows of A, which stay in the first cache, take all of them.
#include <algorithm>

#include "codegen/cpu/matmul.h"
#include "codegen/cpu/matmul_micro.h"
#include "codegen/cpu/matmul_pack.h"

namespace kiln::cpu {
namespace {

class TileProducts {
 public:
  TileProducts(Ir& ir, const MatmulShape& shape, const MatmulPlan& plan, int64_t rows, llvm::Value* count,
               const RowRanges& ranges)
      : ir_(ir), b_(ir.b), s_(shape), plan_(plan), rows_(rows), count_(count), ranges_(ranges) {}

  void Emit(llvm::Value* b_array) {
    b_array_ = b_array;
    const int64_t width = PanelColumns(), panels = std::max<int64_t>(1, std::min(plan_.span, s_.n) / width);
    if (!plan_.direct) panels_ = PanelStack(ir_, panels * plan_.panel_rows * width * kTileSumBytes);
    if (OneForm()) Configure(plan_.tile_rows, plan_.tile_columns, plan_.blocks.front());
    const int64_t spans = s_.n / (panels * width) * panels * width, whole = s_.n / width * width;
    ir_.Loop(ir_.I64(0), ir_.I64(spans), panels * width, [&](llvm::Value* first) { Span(first, panels, width); });
    if (spans < whole) Span(ir_.I64(spans), (whole - spans) / width, width);
    if (whole < s_.n) Span(ir_.I64(whole), 1, s_.n - whole);
    ReleaseTiles(ir_);
  }

 private:
  // Columns whose words lie together in a row of a panel.
  int64_t PanelColumns() const { return plan_.direct ? s_.panel_columns : plan_.tile_columns; }

  // What the tiles read of B for a block of k: panels of `width` columns from column `first` on.
  struct Operand {
    llvm::Value *first, *source;
    int64_t panels, width;
    int64_t stride;    // words between rows of a panel
    int64_t distance;  // of panels, in words
  };

  // All of k for `panels` panels of `width` columns from `first`.
  void Span(llvm::Value* first, int64_t panels, int64_t width) {
    ForSumSteps(ir_, s_, plan_, [&](const SumStep& k) {
      const Operand operand = OperandOf(k.block, k.start.k, first, panels, width);
      const int64_t whole = rows_ / plan_.tile_rows, strips = width / plan_.tile_columns * plan_.tile_columns;
      const auto rows = [&](int64_t from, int64_t to, int64_t count) {
        Tiles(k, operand, from, to, count, 0, strips, plan_.tile_columns);
        Tiles(k, operand, from, to, count, strips, width, width - strips);
      };
      rows(0, whole, plan_.tile_rows);
      if (rows_ % plan_.tile_rows) rows(whole, whole + 1, rows_ % plan_.tile_rows);
    });
  }

  // Panels of B where they lie, or made of its rows from `k` on.
  Operand OperandOf(const SumBlock& block, llvm::Value* k, llvm::Value* first, int64_t panels, int64_t width) {
    llvm::Type* element = ir_.MemType(s_.b_type);
    if (plan_.direct) {
      llvm::Value* at = ir_.Add(ir_.Mul(k, s_.b_k_stride), ir_.Mul(first, s_.b_n_stride));
      const int64_t distance = s_.panel_columns * s_.b_n_stride / Group(s_.compute);
      return {first, b_.CreateInBoundsGEP(element, b_array_, at), panels, width, s_.panel_columns, distance};
    }
    const int64_t stride = (width + plan_.lanes - 1) / plan_.lanes * plan_.lanes, distance = plan_.panel_rows * stride;
    PackGroups(ir_, s_, block, b_array_, k, first, panels * width, {panels_, stride, panels == 1 ? 0 : distance});
    return {first, panels_, panels, width, stride, distance};
  }

  // Tiles of `rows` rows, those from `from` to `to` of each range, by the columns of each panel from `begin` to `end`,
  // `columns` at a time.
  void Tiles(const SumStep& k, const Operand& b, int64_t from, int64_t to, int64_t rows, int64_t begin, int64_t end,
             int64_t columns) {
    if (from == to || begin == end) return;
    const SumBlock& block = k.block;
    if (!OneForm()) Configure(rows, columns, block);
    const int64_t vectors = (columns + plan_.lanes - 1) / plan_.lanes;
    const int64_t run = PanelRows(s_, plan_.direct ? s_.run : block.run);
    llvm::Function* kernel =
        MicroKernel(ir_, s_, {rows, vectors, plan_.lanes, columns, block.segments, block.run, b.stride, run, k.sum});
    llvm::Type *a_element = ir_.MemType(s_.compute), *c_element = ir_.MemType(s_.c_type), *word = b_.getInt32Ty();
    ir_.Loop(ir_.I64(0), count_, 1, [&](llvm::Value* r) {
      const RowRange range = ranges_(r);
      ir_.Loop(ir_.I64(from), ir_.I64(to), 1, [&](llvm::Value* t) {
        llvm::Value* m = ir_.Mul(t, plan_.tile_rows);
        llvm::Value* a = b_.CreateInBoundsGEP(a_element, range.a, ir_.Add(k.start.a, ir_.Mul(m, s_.a_stride)));
        llvm::Value* c = b_.CreateInBoundsGEP(c_element, range.c, ir_.Add(b.first, ir_.Mul(m, s_.c_stride)));
        ir_.Loop(ir_.I64(0), ir_.I64(b.panels), 1, [&](llvm::Value* panel) {
          ir_.Loop(ir_.I64(begin), ir_.I64(end), columns, [&](llvm::Value* j) {
            llvm::Value* source = b_.CreateInBoundsGEP(word, b.source, ir_.Add(ir_.Mul(panel, b.distance), j));
            llvm::Value* to_c = b_.CreateInBoundsGEP(c_element, c, ir_.Add(ir_.Mul(panel, b.width), j));
            b_.CreateCall(kernel, {a, source, to_c, k.is_first});
          });
        });
      });
    });
  }

  // Whether all tiles of the product are whole.
  bool OneForm() const {
    return rows_ % plan_.tile_rows == 0 && s_.n % plan_.tile_columns == 0 && PanelColumns() % plan_.tile_columns == 0 &&
           plan_.blocks.back().run % TileDepth(s_) == 0;
  }

  void Configure(int64_t rows, int64_t columns, const SumBlock& block) {
    ConfigureTiles(ir_, s_, rows, columns, std::min(block.run, TileDepth(s_)));
  }

  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const MatmulShape& s_;
  const MatmulPlan& plan_;
  const int64_t rows_;
  llvm::Value* const count_;
  const RowRanges& ranges_;
  llvm::Value *b_array_ = nullptr, *panels_ = nullptr;
};

}  // namespace

void EmitTileProducts(Ir& ir, const MatmulShape& shape, const MatmulPlan& plan, int64_t rows, llvm::Value* b,
                      llvm::Value* count, const RowRanges& ranges) {
  TileProducts(ir, shape, plan, rows, count, ranges).Emit(b);
}

}  // namespace kiln::cpu
