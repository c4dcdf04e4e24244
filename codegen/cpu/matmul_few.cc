// Products with few columns: lanes run along k, where A lies in a row, and each sum is added up across its vector at
// the end. A broadcast of every element of A would serve a vector that is mostly empty.
#include "codegen/cpu/matmul.h"
#include "codegen/cpu/matmul_along_k.h"
#include "codegen/cpu/matmul_micro.h"
#include "codegen/cpu/matmul_pack.h"

namespace kiln::cpu {
namespace {

class FewColumns {
 public:
  FewColumns(Ir& ir, const MatmulShape& shape)
      : ir_(ir),
        b_(ir.b),
        s_(shape),
        lanes_(Lanes(ir.level, shape.compute)),
        padded_((shape.run + lanes_ - 1) / lanes_ * lanes_),
        outer_(ElementsOf(shape.segments, 1)),
        element_(ir.RegType(shape.compute)),
        vector_(llvm::FixedVectorType::get(element_, static_cast<unsigned>(lanes_))),
        align_(static_cast<uint64_t>(ByteWidth(shape.compute))) {}

  void Emit(int64_t rows, llvm::Value* b_array, llvm::Value* count, const RowRanges& ranges) {
    Pack(b_array);
    const int64_t together = RowsTogether(), whole = rows / together * together;
    ir_.Loop(ir_.I64(0), count, 1, [&](llvm::Value* r) {
      const RowRange range = ranges(r);
      ir_.Loop(ir_.I64(0), ir_.I64(whole), together, [&](llvm::Value* m) { Rows(range, m, together); });
      ir_.Loop(ir_.I64(whole), ir_.I64(rows), 1, [&](llvm::Value* m) { Rows(range, m, 1); });
    });
  }

 private:
  // Rows whose sums, one a column, stay in registers.
  int64_t RowsTogether() const {
    constexpr int64_t kFewColumns = 4;
    const bool many = ir_.level.vector_registers == 32;
    const int64_t sums = s_.n <= kFewColumns ? (many ? 16 : 8) : many ? 24 : 12;
    return std::min<int64_t>(8, sums / s_.n);
  }

  // Each column of B by its runs, which end with zeros where a vector is not full.
  void Pack(llvm::Value* b_array) {
    panel_ = PanelStack(ir_, s_.n * outer_ * padded_ * ByteWidth(s_.compute));
    ir_.Loop(ir_.I64(0), ir_.I64(s_.n), 1, [&](llvm::Value* j) {
      ir_.Loop(ir_.I64(0), ir_.I64(outer_), 1, [&](llvm::Value* o) {
        llvm::Value* to = ir_.Mul(ir_.Add(ir_.Mul(j, outer_), o), padded_);
        ir_.Loop(ir_.I64(0), ir_.I64(s_.run), 1, [&](llvm::Value* e) {
          llvm::Value* row = OffsetOfRow(ir_, s_, ir_.Add(ir_.Mul(o, s_.run), e));
          const Val x = ir_.Load(s_.b_type, b_array, ir_.Add(row, ir_.Mul(j, s_.b_n_stride)));
          ir_.Store(s_.compute, ir_.Convert(x, s_.b_type, s_.compute), panel_, ir_.Add(to, e));
        });
        for (int64_t e = s_.run; e < padded_; ++e)
          ir_.Store(s_.compute, ir_.Constant(s_.compute, Element{}), panel_, ir_.Add(to, ir_.I64(e)));
      });
    });
  }

  void Rows(const RowRange& range, llvm::Value* m, int64_t rows) {
    sums_.clear();
    for (int64_t k = 0; k < rows * s_.n; ++k) {
      sums_.push_back(ir_.Alloca(vector_, 1));
      b_.CreateStore(llvm::Constant::getNullValue(vector_), sums_.back());
    }
    Segments(0, b_.CreateInBoundsGEP(element_, range.a, ir_.Mul(m, s_.a_stride)), ir_.I64(0), rows);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t j = 0; j < s_.n; ++j) {
        llvm::Value* at = ir_.Add(ir_.Mul(ir_.Add(m, ir_.I64(row)), s_.c_stride), ir_.I64(j));
        StoreSumOfLanes(ir_, s_, b_.CreateLoad(vector_, sums_[row * s_.n + j]), range.c, at);
      }
  }

  // The segments of k from `depth` on, and the run inside them; `o` counts runs.
  void Segments(size_t depth, llvm::Value* a, llvm::Value* o, int64_t rows) {
    if (depth == s_.segments.size()) {
      llvm::Value* at = ir_.Mul(o, padded_);
      const int64_t whole = s_.run / lanes_ * lanes_;
      ir_.Loop(ir_.I64(0), ir_.I64(whole), lanes_,
               [&](llvm::Value* e) { Products(b_.CreateInBoundsGEP(element_, a, e), ir_.Add(at, e), rows, lanes_); });
      if (whole < s_.run)
        Products(b_.CreateInBoundsGEP(element_, a, ir_.I64(whole)), ir_.Add(at, ir_.I64(whole)), rows, s_.run - whole);
      return;
    }
    const Segment& q = s_.segments[depth];
    ir_.Loop(ir_.I64(0), ir_.I64(q.count), 1, [&](llvm::Value* i) {
      Segments(depth + 1, b_.CreateInBoundsGEP(element_, a, ir_.Mul(i, q.a_stride)), ir_.Add(ir_.Mul(o, q.count), i),
               rows);
    });
  }

  // A vector of k of each row times that of each column; `live` elements of A.
  void Products(llvm::Value* a, llvm::Value* at, int64_t rows, int64_t live) {
    std::vector<llvm::Value*> columns;
    for (int64_t j = 0; j < s_.n; ++j)
      columns.push_back(b_.CreateAlignedLoad(
          vector_, b_.CreateInBoundsGEP(element_, panel_, ir_.Add(at, ir_.I64(j * outer_ * padded_))), align_));
    for (int64_t row = 0; row < rows; ++row) {
      llvm::Value* from = b_.CreateInBoundsGEP(element_, a, ir_.I64(row * s_.a_stride));
      llvm::Value* x = live == lanes_ ? static_cast<llvm::Value*>(b_.CreateAlignedLoad(vector_, from, align_))
                                      : b_.CreateMaskedLoad(vector_, from, align_, FirstLanes(ir_, lanes_, live),
                                                            llvm::Constant::getNullValue(vector_));
      for (int64_t j = 0; j < s_.n; ++j) {
        llvm::Value* sum = sums_[row * s_.n + j];
        b_.CreateStore(MultiplyAddLanes(ir_, x, columns[j], b_.CreateLoad(vector_, sum)), sum);
      }
    }
  }

  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const MatmulShape& s_;
  const int64_t lanes_, padded_, outer_;  // of a vector; of a run with its zeros; runs
  llvm::Type* const element_;
  llvm::FixedVectorType* const vector_;
  const llvm::Align align_;
  llvm::Value* panel_ = nullptr;
  std::vector<llvm::Value*> sums_;  // by row and column
};

}  // namespace

void EmitFewColumns(Ir& ir, const MatmulShape& shape, int64_t rows, llvm::Value* b, llvm::Value* count,
                    const RowRanges& ranges) {
  FewColumns(ir, shape).Emit(rows, b, count, ranges);
}

}  // namespace kiln::cpu
