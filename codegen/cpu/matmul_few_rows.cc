// Products of few rows with a B whose lines lie along k, as weights of [features out, features in] do: lanes run along
// k on both sides. Panels of such a B would be made for few rows that read them.
#include "codegen/cpu/matmul.h"
#include "codegen/cpu/matmul_along_k.h"
#include "codegen/cpu/matmul_pack.h"

namespace kiln::cpu {
namespace {

class FewRows {
 public:
  FewRows(Ir& ir, const MatmulShape& shape, int64_t rows, llvm::Value* b_array, const RowRange& range)
      : ir_(ir),
        b_(ir.b),
        s_(shape),
        rows_(rows),
        lanes_(Lanes(ir.level, shape.compute)),
        element_(ir.RegType(shape.compute)),
        vector_(llvm::FixedVectorType::get(element_, static_cast<unsigned>(lanes_))),
        b_array_(b_array),
        range_(range) {}

  void Emit() {
    const int64_t together = ColumnsTogether(ir_.level, rows_), whole = s_.n / together * together;
    ir_.Loop(ir_.I64(0), ir_.I64(whole), together, [&](llvm::Value* n) { Columns(n, together); });
    if (whole < s_.n) Columns(ir_.I64(whole), s_.n - whole);
  }

 private:
  void Columns(llvm::Value* n, int64_t columns) {
    sums_.clear();
    for (int64_t k = 0; k < rows_ * columns; ++k) {
      sums_.push_back(ir_.Alloca(vector_, 1));
      b_.CreateStore(llvm::Constant::getNullValue(vector_), sums_.back());
    }
    const int64_t whole = s_.run / lanes_ * lanes_;
    ir_.Loop(ir_.I64(0), ir_.I64(whole), lanes_, [&](llvm::Value* k) { Products(n, columns, k, lanes_); });
    if (whole < s_.run) Products(n, columns, ir_.I64(whole), s_.run - whole);
    for (int64_t row = 0; row < rows_; ++row)
      for (int64_t j = 0; j < columns; ++j) {
        llvm::Value* at = ir_.Add(ir_.I64(row * s_.c_stride), ir_.Add(n, ir_.I64(j)));
        StoreSumOfLanes(ir_, s_, b_.CreateLoad(vector_, Sum(row, j, columns)), range_.c, at);
      }
  }

  llvm::Value* Sum(int64_t row, int64_t column, int64_t columns) const {
    return sums_[static_cast<size_t>(row * columns + column)];
  }

  // `live` elements of the line that begins at element `line` of `array`, from `k` on.
  llvm::Value* Line(PrimitiveType type, llvm::Value* array, llvm::Value* line, llvm::Value* k, int64_t live) {
    llvm::Type* memory = ir_.MemType(type);
    auto* many = llvm::FixedVectorType::get(memory, static_cast<unsigned>(lanes_));
    const llvm::Align align(static_cast<uint64_t>(ByteWidth(type)));
    llvm::Value* from = b_.CreateInBoundsGEP(memory, array, ir_.Add(line, k));
    llvm::Value* v = live == lanes_ ? static_cast<llvm::Value*>(b_.CreateAlignedLoad(many, from, align))
                                    : b_.CreateMaskedLoad(many, from, align, FirstLanes(ir_, lanes_, live),
                                                          llvm::Constant::getNullValue(many));
    return AsComputed(ir_, type, s_.compute, v);
  }

  // A vector of k of each row times that of each column.
  void Products(llvm::Value* n, int64_t columns, llvm::Value* k, int64_t live) {
    std::vector<llvm::Value*> lines;
    for (int64_t j = 0; j < columns; ++j)
      lines.push_back(Line(s_.b_type, b_array_, ir_.Mul(ir_.Add(n, ir_.I64(j)), s_.b_n_stride), k, live));
    for (int64_t row = 0; row < rows_; ++row) {
      llvm::Value* x = Line(s_.compute, range_.a, ir_.I64(row * s_.a_stride), k, live);
      for (int64_t j = 0; j < columns; ++j) {
        llvm::Value* sum = Sum(row, j, columns);
        b_.CreateStore(MultiplyAddLanes(ir_, x, lines[static_cast<size_t>(j)], b_.CreateLoad(vector_, sum)), sum);
      }
    }
  }

  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const MatmulShape& s_;
  const int64_t rows_, lanes_;
  llvm::Type* const element_;
  llvm::FixedVectorType* const vector_;
  llvm::Value* const b_array_;
  const RowRange range_;
  std::vector<llvm::Value*> sums_;  // by row and column
};

}  // namespace

void EmitFewRows(Ir& ir, const MatmulShape& shape, int64_t rows, llvm::Value* b, const RowRange& range) {
  FewRows(ir, shape, rows, b, range).Emit();
}

}  // namespace kiln::cpu
