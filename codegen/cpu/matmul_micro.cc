#include "codegen/cpu/matmul_micro.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::cpu {
namespace {

std::string NameOf(const MatmulShape& s, const MicroTile& t) {
  std::string name = absl::StrCat("ukr.", TextOf(s.compute), ".", TextOf(s.c_type), ".", t.rows, "x", t.vectors, ".",
                                  t.columns, ".r", t.run, ".b", t.b_stride, ".a", s.a_stride, ".c", s.c_stride,
                                  t.sum == Sum::kNew     ? ".n"
                                  : t.sum == Sum::kAdded ? ".a"
                                                         : "");
  for (const Segment& q : t.segments) absl::StrAppend(&name, ".", q.count, "_", q.a_stride);
  return name;
}

class Emitter {
 public:
  Emitter(Ir& ir, const MatmulShape& shape, const MicroTile& tile)
      : ir_(ir),
        b_(ir.b),
        s_(shape),
        t_(tile),
        fp_(IsFloat(shape.compute)),
        lanes_(Lanes(ir.level, shape.compute)),
        element_(ir.RegType(shape.compute)),
        vector_(llvm::FixedVectorType::get(element_, static_cast<unsigned>(lanes_))),
        zero_(llvm::Constant::getNullValue(vector_)) {}

  void Emit(llvm::Function* f) {
    f_ = f;
    b_.SetInsertPoint(llvm::BasicBlock::Create(ir_.ctx, "entry", f_));
    Sums sums(static_cast<size_t>(t_.rows * t_.vectors), zero_);
    sums = Level(0, f_->getArg(0), f_->getArg(1), std::move(sums));
    if (t_.sum != Sum::kEither) return Store(sums, t_.sum == Sum::kNew);
    auto* fresh = llvm::BasicBlock::Create(ir_.ctx, "new", f_);
    auto* added = llvm::BasicBlock::Create(ir_.ctx, "added", f_);
    b_.CreateCondBr(f_->getArg(3), fresh, added);
    b_.SetInsertPoint(fresh);
    Store(sums, true);
    b_.SetInsertPoint(added);
    Store(sums, false);
  }

 private:
  using Sums = std::vector<llvm::Value*>;

  // One step of a level: the level inside it, or the products of one k.
  Sums Step(size_t depth, llvm::Value* a, llvm::Value* b, Sums sums) {
    if (depth < t_.segments.size()) return Level(depth + 1, a, b, std::move(sums));
    return Products(a, b, std::move(sums));
  }

  Sums Products(llvm::Value* a, llvm::Value* b, Sums sums) {
    const llvm::Align align(static_cast<uint64_t>(ByteWidth(s_.compute)));
    std::vector<llvm::Value*> row;
    for (int64_t v = 0; v < t_.vectors; ++v)
      row.push_back(b_.CreateAlignedLoad(vector_, b_.CreateInBoundsGEP(element_, b, ir_.I64(v * lanes_)), align));
    for (int64_t m = 0; m < t_.rows; ++m) {
      llvm::Value* x = b_.CreateVectorSplat(
          static_cast<unsigned>(lanes_),
          b_.CreateAlignedLoad(element_, b_.CreateInBoundsGEP(element_, a, ir_.I64(m * s_.a_stride)), align));
      for (int64_t v = 0; v < t_.vectors; ++v) {
        llvm::Value*& d = sums[m * t_.vectors + v];
        if (fp_)
          d = ir_.level.fma ? b_.CreateIntrinsic(llvm::Intrinsic::fma, {vector_}, {x, row[v], d})
                            : b_.CreateFAdd(d, b_.CreateFMul(x, row[v]));
        else
          d = b_.CreateAdd(d, b_.CreateMul(x, row[v]));
      }
    }
    return sums;
  }

  // Products between branches: enough of them, since more only cost code.
  int64_t Unroll(bool inner, int64_t count) const {
    constexpr int64_t kShort = 8;       // loops of fewer steps are not unrolled
    constexpr int64_t kLargeTile = 12;  // vectors, of which two steps keep the processor busy
    if (!inner || count < kShort) return 1;
    return t_.rows * t_.vectors >= kLargeTile ? 2 : 4;
  }

  // The loop over a segment, or over the run inside the last of them; sums travel as phis.
  Sums Level(size_t depth, llvm::Value* a, llvm::Value* b, Sums sums) {
    const bool inner = depth == t_.segments.size();
    const int64_t count = inner ? t_.run : t_.segments[depth].count;
    if (count == 1) return Step(depth, a, b, std::move(sums));
    int64_t inner_k = inner ? 1 : t_.run;
    for (size_t k = depth + 1; k < t_.segments.size(); ++k) inner_k *= t_.segments[k].count;
    const int64_t da = inner ? 1 : t_.segments[depth].a_stride, db = inner_k * t_.b_stride;
    const int64_t unroll = Unroll(inner, count), whole = count / unroll * unroll;
    llvm::Type* ptr = b_.getPtrTy();
    auto* head = llvm::BasicBlock::Create(ir_.ctx, "k", f_);
    auto* done = llvm::BasicBlock::Create(ir_.ctx, "kdone", f_);
    llvm::BasicBlock* before = b_.GetInsertBlock();
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    const auto phi = [&](llvm::Type* type, llvm::Value* first) {
      llvm::PHINode* p = b_.CreatePHI(type, 2);
      p->addIncoming(first, before);
      return p;
    };
    llvm::PHINode* i = phi(b_.getInt64Ty(), ir_.I64(0));
    llvm::PHINode* ai = phi(ptr, a);
    llvm::PHINode* bi = phi(ptr, b);
    std::vector<llvm::PHINode*> phis;
    for (llvm::Value* v : sums) phis.push_back(phi(vector_, v));
    Sums now(phis.begin(), phis.end());
    for (int64_t u = 0; u < unroll; ++u)
      now = Step(depth, u ? b_.CreateInBoundsGEP(element_, ai, ir_.I64(u * da)) : ai,
                 u ? b_.CreateInBoundsGEP(element_, bi, ir_.I64(u * db)) : bi, std::move(now));
    llvm::Value* next = b_.CreateAdd(i, ir_.I64(unroll), "", true, true);
    llvm::Value *na = b_.CreateInBoundsGEP(element_, ai, ir_.I64(unroll * da)),
                *nb = b_.CreateInBoundsGEP(element_, bi, ir_.I64(unroll * db));
    llvm::BasicBlock* latch = b_.GetInsertBlock();
    i->addIncoming(next, latch);
    ai->addIncoming(na, latch);
    bi->addIncoming(nb, latch);
    for (size_t k = 0; k < phis.size(); ++k) phis[k]->addIncoming(now[k], latch);
    NotUnrolled(b_.CreateCondBr(b_.CreateICmpSLT(next, ir_.I64(whole)), head, done));
    b_.SetInsertPoint(done);
    for (int64_t u = whole; u < count; ++u) {
      now = Step(depth, na, nb, std::move(now));
      if (u + 1 < count) {
        na = b_.CreateInBoundsGEP(element_, na, ir_.I64(da));
        nb = b_.CreateInBoundsGEP(element_, nb, ir_.I64(db));
      }
    }
    return now;
  }

  void NotUnrolled(llvm::BranchInst* branch) {
    llvm::MDNode* id = llvm::MDNode::getDistinct(
        ir_.ctx, {nullptr, llvm::MDNode::get(ir_.ctx, {llvm::MDString::get(ir_.ctx, "llvm.loop.unroll.disable")})});
    id->replaceOperandWith(0, id);
    branch->setMetadata(llvm::LLVMContext::MD_loop, id);
  }

  // Results: whole vectors, then a masked one; another type goes through a conversion.
  void Store(const Sums& sums, bool first) {
    llvm::Type* c_element = ir_.MemType(s_.c_type);
    for (int64_t m = 0; m < t_.rows; ++m) {
      for (int64_t v = 0; v < t_.vectors; ++v) {
        const int64_t live = std::min(lanes_, t_.columns - v * lanes_);
        if (live <= 0) continue;
        llvm::Value* to = b_.CreateInBoundsGEP(c_element, f_->getArg(2), ir_.I64(m * s_.c_stride + v * lanes_));
        llvm::Value* sum = sums[m * t_.vectors + v];
        if (s_.c_type == s_.compute)
          StoreVector(sum, to, live, first);
        else if (IsIntegral(s_.c_type))
          StoreIntegers(sum, to, live, first);
        else
          StoreConverted(sum, to, live);
      }
    }
    b_.CreateRetVoid();
  }

  llvm::Align ResultAlign() const { return llvm::Align(static_cast<uint64_t>(ByteWidth(s_.c_type))); }

  void StoreVector(llvm::Value* sum, llvm::Value* to, int64_t live, bool first) {
    const llvm::Align align = ResultAlign();
    if (live == lanes_) {
      if (!first)
        sum = fp_ ? b_.CreateFAdd(sum, b_.CreateAlignedLoad(vector_, to, align))
                  : b_.CreateAdd(sum, b_.CreateAlignedLoad(vector_, to, align));
      b_.CreateAlignedStore(sum, to, align);
      return;
    }
    std::vector<llvm::Constant*> bits;
    for (int64_t k = 0; k < lanes_; ++k) bits.push_back(b_.getInt1(k < live));
    llvm::Value* mask = llvm::ConstantVector::get(bits);
    if (!first) {
      llvm::Value* old = b_.CreateMaskedLoad(vector_, to, align, mask, zero_);
      sum = fp_ ? b_.CreateFAdd(sum, old) : b_.CreateAdd(sum, old);
    }
    b_.CreateMaskedStore(sum, to, align, mask);
  }

  // Exact sums in f32, added as integers.
  void StoreIntegers(llvm::Value* sum, llvm::Value* to, int64_t live, bool first) {
    const llvm::Align align = ResultAlign();
    llvm::Type* c_element = ir_.MemType(s_.c_type);
    auto* integers = llvm::FixedVectorType::get(c_element, static_cast<unsigned>(lanes_));
    llvm::Value* x = b_.CreateFPToSI(sum, integers);
    for (int64_t k = 0; k < live; ++k) {
      llvm::Value* place = b_.CreateInBoundsGEP(c_element, to, ir_.I64(k));
      llvm::Value* e = b_.CreateExtractElement(x, ir_.I64(k));
      if (live == lanes_) break;
      if (!first) e = b_.CreateAdd(e, b_.CreateAlignedLoad(c_element, place, align));
      b_.CreateAlignedStore(e, place, align);
    }
    if (live == lanes_) {
      if (!first) x = b_.CreateAdd(x, b_.CreateAlignedLoad(integers, to, align));
      b_.CreateAlignedStore(x, to, align);
    }
  }

  void StoreConverted(llvm::Value* sum, llvm::Value* to, int64_t live) {
    for (int64_t k = 0; k < live; ++k) {
      Val e{b_.CreateExtractElement(sum, ir_.I64(k))};
      ir_.Store(s_.c_type, ir_.Convert(e, s_.compute, s_.c_type), to, ir_.I64(k));
    }
  }

  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const MatmulShape& s_;
  const MicroTile& t_;
  const bool fp_;
  const int64_t lanes_;
  llvm::Type* const element_;
  llvm::FixedVectorType* const vector_;
  llvm::Constant* const zero_;
  llvm::Function* f_ = nullptr;
};

}  // namespace

llvm::Value* OffsetOfRow(Ir& ir, const MatmulShape& s, llvm::Value* row) {
  const int64_t rows = s.b_tap_rows ? s.b_tap_rows : s.run;
  if (!s.b_tap_rows && !s.reverse_b) return ir.Mul(row, s.b_k_stride);
  llvm::Value *tap = ir.b.CreateUDiv(row, ir.I64(rows)), *r = ir.b.CreateURem(row, ir.I64(rows));
  // Backwards: the taps in reverse, the rows of each in order.
  if (s.reverse_b) tap = ir.b.CreateSub(ir.I64(s.K() / rows - 1), tap);
  return ir.Add(ir.Mul(tap, s.b_tap_rows ? s.b_tap_stride : rows * s.b_k_stride), ir.Mul(r, s.b_k_stride));
}

llvm::Function* MicroKernel(Ir& ir, const MatmulShape& shape, const MicroTile& tile) {
  const std::string name = NameOf(shape, tile);
  if (llvm::Function* f = ir.module.getFunction(name)) return f;
  llvm::IRBuilder<>& b = ir.b;
  llvm::Type* ptr = b.getPtrTy();
  auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {ptr, ptr, ptr, b.getInt1Ty()}, false),
                                   llvm::Function::InternalLinkage, name, ir.module);
  f->addFnAttr(llvm::Attribute::NoInline);
  f->addFnAttr(kWrittenAsRun);
  for (unsigned k = 0; k < 3; ++k) f->addParamAttr(k, llvm::Attribute::NoAlias);
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  llvm::MDNode* group = ir.access_group;
  ir.access_group = nullptr;
  Emitter(ir, shape, tile).Emit(f);
  ir.access_group = group;
  return f;
}

}  // namespace kiln::cpu
