// Register tiles of products of F16: chains of multiply-adds in F16, whose sums are added to a result in F32.
#include <algorithm>

#include "codegen/cpu/matmul_micro.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::cpu {
namespace {

class F16Kernel {
 public:
  F16Kernel(Ir& ir, const MatmulShape& shape, const MicroTile& tile, llvm::Function* f)
      : ir_(ir),
        b_(ir.b),
        s_(shape),
        t_(tile),
        f_(f),
        part_lanes_(tile.lanes / 2),
        half_(ir.b.getHalfTy()),
        word_(ir.b.getInt32Ty()),
        float_(ir.b.getFloatTy()),
        vector_(Of(half_, tile.lanes)) {}

  void Emit() {
    b_.SetInsertPoint(llvm::BasicBlock::Create(ir_.ctx, "entry", f_));
    sums_ = ir_.Alloca(vector_, t_.rows * t_.vectors, kVectorBytes);
    if (t_.sum == Sum::kNew) Clear();
    if (t_.sum == Sum::kEither) ir_.If(f_->getArg(3), [&] { Clear(); });
    Segments(0, f_->getArg(0), f_->getArg(1));
    b_.CreateRetVoid();
  }

 private:
  static constexpr int64_t kVectorBytes = 64, kGroup = kChainOfF16 * kChainsOfF16;

  static llvm::FixedVectorType* Of(llvm::Type* element, int64_t count) {
    return llvm::FixedVectorType::get(element, static_cast<unsigned>(count));
  }

  // Of the result: `visit` gets the address of a part of a vector, which of the sums it is part of, where it begins in
  // that, and a mask where not all of it are columns.
  template <typename Visit>
  void ForResults(const Visit& visit) {
    for (int64_t m = 0; m < t_.rows; ++m)
      for (int64_t j = 0; j < t_.columns; j += part_lanes_) {
        llvm::Constant* mask = nullptr;
        if (const int64_t live = t_.columns - j; live < part_lanes_) {
          std::vector<llvm::Constant*> bits;
          for (int64_t k = 0; k < part_lanes_; ++k) bits.push_back(b_.getInt1(k < live));
          mask = llvm::ConstantVector::get(bits);
        }
        visit(b_.CreateInBoundsGEP(float_, f_->getArg(2), ir_.I64(m * s_.c_stride + j)), m * t_.vectors + j / t_.lanes,
              j % t_.lanes, mask);
      }
  }

  void StoreResult(llvm::Value* x, llvm::Value* to, llvm::Constant* mask) {
    if (mask)
      b_.CreateMaskedStore(x, to, float_align_, mask);
    else
      b_.CreateAlignedStore(x, to, float_align_);
  }

  void Clear() {
    llvm::Constant* zero = llvm::Constant::getNullValue(Of(float_, part_lanes_));
    ForResults([&](llvm::Value* to, int64_t, int64_t, llvm::Constant* mask) { StoreResult(zero, to, mask); });
  }

  llvm::Value* SumAt(int64_t k, int64_t element = 0) {
    return b_.CreateInBoundsGEP(half_, sums_, ir_.I64(k * t_.lanes + element));
  }

  llvm::Value* OfA(llvm::Value* a, llvm::Value* k) { return b_.CreateInBoundsGEP(word_, a, k); }
  llvm::Value* RowOfB(llvm::Value* b, llvm::Value* k) {
    return b_.CreateInBoundsGEP(half_, b, ir_.Mul(k, t_.b_stride));
  }

  // The loops over segments from `depth` on, and over the run inside the last of them.
  void Segments(size_t depth, llvm::Value* a, llvm::Value* b) {
    if (depth == t_.segments.size()) return Run(a, b);
    int64_t inner = t_.b_run;
    for (size_t k = depth + 1; k < t_.segments.size(); ++k) inner *= t_.segments[k].count;
    const Segment& q = t_.segments[depth];
    ir_.Loop(ir_.I64(0), ir_.I64(q.count), 1, [&](llvm::Value* k) {
      Segments(depth + 1, OfA(a, ir_.Mul(k, q.a_stride)), RowOfB(b, ir_.Mul(k, inner)));
    });
  }

  void Run(llvm::Value* a, llvm::Value* b) {
    const int64_t whole = t_.run / kGroup * kGroup;
    ir_.Loop(ir_.I64(0), ir_.I64(whole), kGroup, [&](llvm::Value* k) { Group(OfA(a, k), RowOfB(b, k), kGroup); });
    if (whole < t_.run) Group(OfA(a, ir_.I64(whole)), RowOfB(b, ir_.I64(whole)), t_.run - whole);
  }

  // Adds `count` products to the results: the sums wait on the stack, from where they are loaded as F32.
  void Group(llvm::Value* a, llvm::Value* b, int64_t count) {
    const int64_t first = std::min(count, kChainOfF16), whole = count / kChainOfF16 * kChainOfF16;
    const auto chain = [&](llvm::Value* k, int64_t length, bool added) {
      Chain(OfA(a, k), RowOfB(b, k), length, added);
    };
    chain(ir_.I64(0), first, false);
    ir_.Loop(ir_.I64(first), ir_.I64(whole), kChainOfF16, [&](llvm::Value* k) { chain(k, kChainOfF16, true); });
    if (first == kChainOfF16 && whole < count) chain(ir_.I64(whole), count - whole, true);
    auto *halves = Of(half_, part_lanes_), *floats = Of(float_, part_lanes_);
    ForResults([&](llvm::Value* to, int64_t sum, int64_t at, llvm::Constant* mask) {
      llvm::Value* part = b_.CreateAlignedLoad(halves, SumAt(sum, at), llvm::Align(2));
      llvm::Value* old = mask
                             ? b_.CreateMaskedLoad(floats, to, float_align_, mask, llvm::Constant::getNullValue(floats))
                             : static_cast<llvm::Value*>(b_.CreateAlignedLoad(floats, to, float_align_));
      StoreResult(b_.CreateFAdd(b_.CreateFPExt(part, floats), old), to, mask);
    });
  }

  // Sums of `count` products to where the sums are, or added to those there.
  void Chain(llvm::Value* a, llvm::Value* b, int64_t count, bool added) {
    std::vector<llvm::Value*> sums(static_cast<size_t>(t_.rows * t_.vectors), llvm::Constant::getNullValue(vector_));
    const int64_t unrolled = count % 2 == 0 ? 2 : 1;
    auto* head = llvm::BasicBlock::Create(ir_.ctx, "k", f_);
    auto* done = llvm::BasicBlock::Create(ir_.ctx, "kdone", f_);
    llvm::BasicBlock* before = b_.GetInsertBlock();
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    llvm::PHINode* k = b_.CreatePHI(b_.getInt64Ty(), 2);
    k->addIncoming(ir_.I64(0), before);
    std::vector<llvm::PHINode*> phis;
    for (llvm::Value*& sum : sums) {
      phis.push_back(b_.CreatePHI(vector_, 2));
      phis.back()->addIncoming(sum, before);
      sum = phis.back();
    }
    for (int64_t u = 0; u < unrolled; ++u)
      Products(OfA(a, ir_.Add(k, ir_.I64(u))), RowOfB(b, ir_.Add(k, ir_.I64(u))), &sums);
    llvm::Value* next = b_.CreateAdd(k, ir_.I64(unrolled), "", true, true);
    k->addIncoming(next, head);
    for (size_t s = 0; s < sums.size(); ++s) phis[s]->addIncoming(sums[s], head);
    b_.CreateCondBr(b_.CreateICmpSLT(next, ir_.I64(count)), head, done);
    b_.SetInsertPoint(done);
    for (size_t s = 0; s < sums.size(); ++s) {
      llvm::Value* at = SumAt(static_cast<int64_t>(s));
      if (added) sums[s] = b_.CreateFAdd(sums[s], b_.CreateAlignedLoad(vector_, at, llvm::Align(kVectorBytes)));
      b_.CreateAlignedStore(sums[s], at, llvm::Align(kVectorBytes));
    }
  }

  // The products of one element of each row of A, which is there twice, and of a row of B.
  void Products(llvm::Value* a, llvm::Value* b, std::vector<llvm::Value*>* sums) {
    std::vector<llvm::Value*> row;
    for (int64_t v = 0; v < t_.vectors; ++v)
      row.push_back(
          b_.CreateAlignedLoad(vector_, b_.CreateInBoundsGEP(half_, b, ir_.I64(v * t_.lanes)), llvm::Align(2)));
    for (int64_t m = 0; m < t_.rows; ++m) {
      llvm::Value* pair = b_.CreateAlignedLoad(word_, OfA(a, ir_.I64(m * s_.a_stride)), llvm::Align(4));
      llvm::Value* x = b_.CreateBitCast(b_.CreateVectorSplat(static_cast<unsigned>(part_lanes_), pair), vector_);
      for (int64_t v = 0; v < t_.vectors; ++v) {
        llvm::Value*& sum = (*sums)[static_cast<size_t>(m * t_.vectors + v)];
        sum = b_.CreateIntrinsic(llvm::Intrinsic::fma, {vector_}, {x, row[static_cast<size_t>(v)], sum});
      }
    }
  }

  const llvm::Align float_align_{4};

  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const MatmulShape& s_;
  const MicroTile& t_;
  llvm::Function* const f_;
  const int64_t part_lanes_;  // of a vector of F32
  llvm::Type *const half_, *const word_, *const float_;
  llvm::FixedVectorType* const vector_;
  llvm::Value* sums_ = nullptr;
};

}  // namespace

void EmitF16Kernel(Ir& ir, const MatmulShape& shape, const MicroTile& tile, llvm::Function* f) {
  F16Kernel(ir, shape, tile, f).Emit();
}

}  // namespace kiln::cpu
