#include "codegen/cpu/matmul.h"

#include <algorithm>

#include "codegen/cpu/matmul_micro.h"

namespace kiln::cpu {
namespace {

// Products of vectors, as PlanMatmul says.
class VectorProducts {
 public:
  VectorProducts(Ir& ir, const MatmulShape& shape, const MatmulPlan& plan, int64_t rows, llvm::Value* count,
                 const RowRanges& ranges)
      : ir_(ir), b_(ir.b), s_(shape), plan_(plan), rows_(rows), count_(count), ranges_(ranges) {}

  void Emit(llvm::Value* b_array) {
    b_array_ = b_array;
    const int64_t width = plan_.tile_columns;
    panel_ = plan_.direct ? nullptr : ir_.Alloca(ir_.RegType(s_.compute), plan_.panel_rows * width);
    const int64_t whole = s_.n / width * width;
    ir_.Loop(ir_.I64(0), ir_.I64(whole), width, [&](llvm::Value* column) { Columns(column, width); });
    if (whole < s_.n) Columns(ir_.I64(whole), s_.n - whole);
  }

 private:
  // Where a block begins in a row of A, and which row of B it begins with.
  struct Start {
    llvm::Value *a, *k;
  };

  // All of k for `columns` columns from `column`.
  void Columns(llvm::Value* column, int64_t columns) {
    bool fresh = !s_.accumulate;  // the first block of all still has to write C
    for (const SumBlock& block : plan_.blocks) {
      const int64_t steps = block.pieces * plan_.repeat;
      const Sum sum = !fresh ? Sum::kAdded : steps == 1 ? Sum::kNew : Sum::kEither;
      ir_.Loop(ir_.I64(0), ir_.I64(steps), 1, [&](llvm::Value* step) {
        llvm::Value* is_first = sum == Sum::kEither ? b_.CreateICmpEQ(step, ir_.I64(0)) : b_.getInt1(sum == Sum::kNew);
        Block(block, StartOf(block, step), column, columns, sum, is_first);
      });
      fresh = false;
    }
  }

  // Steps count the pieces of the run fastest, then the peeled segments from the innermost out.
  Start StartOf(const SumBlock& block, llvm::Value* step) {
    llvm::Value* rest = block.pieces == 1 ? step : b_.CreateUDiv(step, ir_.I64(block.pieces));
    llvm::Value* piece = block.pieces == 1 ? ir_.I64(0) : b_.CreateURem(step, ir_.I64(block.pieces));
    llvm::Value* a = ir_.Add(ir_.I64(block.start), ir_.Mul(piece, block.run));
    llvm::Value* k = ir_.Add(a, ir_.Mul(rest, plan_.period));
    for (size_t d = plan_.outer.size(); d-- > 0;) {
      const Segment& q = plan_.outer[d];
      llvm::Value* digit = d == 0 ? rest : b_.CreateURem(rest, ir_.I64(q.count));
      if (d) rest = b_.CreateUDiv(rest, ir_.I64(q.count));
      a = ir_.Add(a, ir_.Mul(digit, q.a_stride));
    }
    return {a, k};
  }

  // One block of k for `columns` columns of all rows.
  void Block(const SumBlock& block, const Start& start, llvm::Value* column, int64_t columns, Sum sum,
             llvm::Value* is_first) {
    llvm::Type *element = ir_.RegType(s_.compute), *c_element = ir_.MemType(s_.c_type);
    const int64_t vectors = (columns + plan_.lanes - 1) / plan_.lanes, packed = vectors * plan_.lanes;
    llvm::Value* source = panel_;
    if (plan_.direct)
      source = b_.CreateInBoundsGEP(element, b_array_, ir_.Add(ir_.Mul(start.k, s_.b_k_stride), column));
    else
      PackPanel(block, start.k, column, columns, packed);
    const int64_t stride = plan_.direct ? s_.b_k_stride : packed;
    ir_.Loop(ir_.I64(0), count_, 1, [&](llvm::Value* r) {
      const RowRange range = ranges_(r);
      llvm::Value* a = b_.CreateInBoundsGEP(element, range.a, start.a);
      llvm::Value* c = b_.CreateInBoundsGEP(c_element, range.c, column);
      auto tile = [&](llvm::Value* m, int64_t rows) {
        b_.CreateCall(MicroKernel(ir_, s_, {rows, vectors, columns, block.segments, block.run, stride, sum}),
                      {b_.CreateInBoundsGEP(element, a, ir_.Mul(m, s_.a_stride)), source,
                       b_.CreateInBoundsGEP(c_element, c, ir_.Mul(m, s_.c_stride)), is_first});
      };
      const int64_t whole = rows_ / plan_.tile_rows * plan_.tile_rows;
      ir_.Loop(ir_.I64(0), ir_.I64(whole), plan_.tile_rows, [&](llvm::Value* m) { tile(m, plan_.tile_rows); });
      if (whole < rows_) tile(ir_.I64(whole), rows_ - whole);
    });
  }

  // Where row `row` of k lies in B.
  llvm::Value* RowOfB(llvm::Value* row) {
    if (!s_.reverse_b) return row;
    // Taps in reverse, the run in order: row = (last tap - tap) * run + r.
    llvm::Value* tap = b_.CreateUDiv(row, ir_.I64(s_.run));
    llvm::Value* r = b_.CreateURem(row, ir_.I64(s_.run));
    return ir_.Add(ir_.Mul(b_.CreateSub(ir_.I64(s_.K() / s_.run - 1), tap), s_.run), r);
  }

  // Copies the block's rows of B from row `k` into the panel, whose rows have `width` elements; zeros past `columns`.
  void PackPanel(const SumBlock& block, llvm::Value* k, llvm::Value* column, int64_t columns, int64_t width) {
    const int64_t depth = ElementsOf(block.segments, block.run);
    auto element = [&](llvm::Value* i, llvm::Value* j) {
      llvm::Value* at =
          ir_.Add(ir_.Mul(RowOfB(ir_.Add(k, i)), s_.b_k_stride), ir_.Mul(ir_.Add(column, j), s_.b_n_stride));
      Val v = ir_.Convert(ir_.Load(s_.b_type, b_array_, at), s_.b_type, s_.compute);
      ir_.Store(s_.compute, v, panel_, ir_.Add(ir_.Mul(i, width), j));
    };
    auto zeros = [&](llvm::Value* i) {
      for (int64_t j = columns; j < width; ++j)
        ir_.Store(s_.compute, ir_.Constant(s_.compute, Element{}), panel_, ir_.Add(ir_.Mul(i, width), ir_.I64(j)));
    };
    if (s_.b_n_stride == 1 || s_.b_k_stride != 1) {
      ir_.Loop(ir_.I64(0), ir_.I64(depth), 1, [&](llvm::Value* i) {
        ir_.Loop(
            ir_.I64(0), ir_.I64(columns), 1, [&](llvm::Value* j) { element(i, j); }, true);
        zeros(i);
      });
      return;
    }
    // Columns of B are contiguous in k: short runs of k per column keep both sides in cache.
    constexpr int64_t kShortRun = 16;
    const int64_t whole = depth / kShortRun * kShortRun;
    auto rows = [&](llvm::Value* i0, int64_t n) {
      ir_.Loop(ir_.I64(0), ir_.I64(columns), 1, [&](llvm::Value* j) {
        ir_.Loop(
            ir_.I64(0), ir_.I64(n), 1, [&](llvm::Value* i) { element(ir_.Add(i0, i), j); }, true);
      });
    };
    ir_.Loop(ir_.I64(0), ir_.I64(whole), kShortRun, [&](llvm::Value* i0) { rows(i0, kShortRun); });
    if (whole < depth) rows(ir_.I64(whole), depth - whole);
    if (columns < width) ir_.Loop(ir_.I64(0), ir_.I64(depth), 1, zeros);
  }

  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const MatmulShape& s_;
  const MatmulPlan& plan_;
  const int64_t rows_;
  llvm::Value* const count_;
  const RowRanges& ranges_;
  llvm::Value *b_array_ = nullptr, *panel_ = nullptr;
};

}  // namespace

void EmitMatmul(Ir& ir, const MatmulShape& shape, int64_t rows, llvm::Value* b, llvm::Value* count,
                const RowRanges& ranges) {
  if (shape.compute != PrimitiveType::F32 && shape.compute != PrimitiveType::F64)
    return EmitTileProducts(ir, shape, rows, b, count, ranges);
  std::optional<int64_t> known;
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(count)) known = constant->getSExtValue();
  const MatmulPlan plan = PlanMatmul(ir.level, shape, rows, known);
  VectorProducts(ir, shape, plan, rows, count, ranges).Emit(b);
}

}  // namespace kiln::cpu
