// Products of few rows with a large B whose lines lie along its columns, as weights of [features in, features out] do:
// multiples of its lines are added up, eight lines at a time, in a strip of the result that stays in the first cache.
//
// Register tiles of few rows walk down B's columns, where each step is in another page and no machine foresees it. Here
// B is read in long pieces of lines, and those of the next eight lines are asked for meanwhile.
#include "absl/strings/str_cat.h"
#include "codegen/cpu/matmul.h"
#include "codegen/cpu/matmul_along_k.h"
#include "codegen/cpu/matmul_pack.h"

namespace kiln::cpu {
namespace {

constexpr int64_t kLinesTogether = 8;

class FewLines {
 public:
  FewLines(Ir& ir, const MatmulShape& shape, int64_t rows)
      : ir_(ir),
        b_(ir.b),
        s_(shape),
        rows_(rows),
        lanes_(Lanes(ir.level, shape.compute)),
        element_(ir.RegType(shape.compute)),
        vector_(llvm::FixedVectorType::get(element_, static_cast<unsigned>(lanes_))) {}

  void Emit(llvm::Value* b_array, const RowRange& range) {
    constexpr int64_t kStripBytes = 16 << 10;
    const int64_t fits = kStripBytes / (rows_ * ByteWidth(s_.compute)) / lanes_ * lanes_;
    const int64_t whole = s_.run / kLinesTogether * kLinesTogether;
    ir_.Loop(ir_.I64(0), ir_.I64(s_.n), fits, [&](llvm::Value* first) {
      llvm::Value* columns =
          b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.I64(fits), b_.CreateSub(ir_.I64(s_.n), first));
      llvm::Value* c = b_.CreateInBoundsGEP(element_, range.c, first);
      if (!s_.accumulate) Clear(c, columns);
      const auto add = [&](llvm::Value* k, int64_t lines) {
        llvm::Value* from = ir_.Add(ir_.Mul(k, s_.b_k_stride), first);
        b_.CreateCall(Step(lines), {b_.CreateInBoundsGEP(element_, range.a, k),
                                    b_.CreateInBoundsGEP(ir_.MemType(s_.b_type), b_array, from), c, columns});
      };
      ir_.Loop(ir_.I64(0), ir_.I64(whole), kLinesTogether, [&](llvm::Value* k) { add(k, kLinesTogether); });
      ir_.Loop(ir_.I64(whole), ir_.I64(s_.run), 1, [&](llvm::Value* k) { add(k, 1); });
    });
  }

 private:
  void Clear(llvm::Value* c, llvm::Value* columns) {
    for (int64_t row = 0; row < rows_; ++row)
      b_.CreateMemSet(b_.CreateInBoundsGEP(element_, c, ir_.I64(row * s_.c_stride)), b_.getInt8(0),
                      ir_.Mul(columns, ByteWidth(s_.compute)), Alignment(s_.compute));
  }

  llvm::Align Alignment(PrimitiveType t) const { return llvm::Align(static_cast<uint64_t>(ByteWidth(t))); }

  // The function  void(ptr a, ptr b, ptr c, i64 columns)  that adds the multiples of `lines` lines of B.
  llvm::Function* Step(int64_t lines) {
    const std::string name = absl::StrCat("ukl.", TextOf(s_.compute), TextOf(s_.b_type), ".", rows_, "x", lines, ".",
                                          s_.a_stride, ".", s_.b_k_stride, ".", s_.c_stride);
    if (llvm::Function* known = ir_.module.getFunction(name)) return known;
    llvm::Type* ptr = b_.getPtrTy();
    auto* f = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), {ptr, ptr, ptr, b_.getInt64Ty()}, false),
                                     llvm::Function::InternalLinkage, name, ir_.module);
    f->addFnAttr(llvm::Attribute::NoInline);
    f->addFnAttr(kWrittenAsRun);
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    llvm::MDNode* group = std::exchange(ir_.access_group, nullptr);
    b_.SetInsertPoint(llvm::BasicBlock::Create(ir_.ctx, "entry", f));
    ir_.Loop(ir_.I64(0), f->getArg(3), lanes_,
             [&](llvm::Value* column) { Columns(f->getArg(0), f->getArg(1), f->getArg(2), column, lines); });
    b_.CreateRetVoid();
    ir_.access_group = group;
    return f;
  }

  // A vector of columns of every row.
  void Columns(llvm::Value* a, llvm::Value* b, llvm::Value* c, llvm::Value* column, int64_t lines) {
    llvm::Type* memory = ir_.MemType(s_.b_type);
    std::vector<llvm::Value*> of_b;
    for (int64_t q = 0; q < lines; ++q) {
      const auto line = [&](int64_t k) {
        return b_.CreateInBoundsGEP(memory, b, ir_.Add(column, ir_.I64(k * s_.b_k_stride)));
      };
      ir_.Prefetch(line(q + lines), Ir::Cache::kFirst);
      of_b.push_back(LoadComputed(ir_, s_.b_type, s_.compute, lanes_, line(q)));
    }
    for (int64_t row = 0; row < rows_; ++row) {
      llvm::Value* at = b_.CreateInBoundsGEP(element_, c, ir_.Add(column, ir_.I64(row * s_.c_stride)));
      llvm::Value* sum = b_.CreateAlignedLoad(vector_, at, Alignment(s_.compute));
      for (int64_t q = 0; q < lines; ++q) {
        llvm::Value* x = b_.CreateInBoundsGEP(element_, a, ir_.I64(row * s_.a_stride + q));
        llvm::Value* all = b_.CreateVectorSplat(static_cast<unsigned>(lanes_), b_.CreateLoad(element_, x));
        sum = MultiplyAddLanes(ir_, all, of_b[static_cast<size_t>(q)], sum);
      }
      b_.CreateAlignedStore(sum, at, Alignment(s_.compute));
    }
  }

  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const MatmulShape& s_;
  const int64_t rows_, lanes_;
  llvm::Type* const element_;
  llvm::FixedVectorType* const vector_;
};

}  // namespace

void EmitFewLines(Ir& ir, const MatmulShape& shape, int64_t rows, llvm::Value* b, const RowRange& range) {
  FewLines(ir, shape, rows).Emit(b, range);
}

}  // namespace kiln::cpu
