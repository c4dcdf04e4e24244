#include "codegen/cpu/matmul_micro.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "codegen/cpu/cache_plan.h"
#include "codegen/cpu/matmul_pack.h"
#include "codegen/cpu/past_caches.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace kiln::cpu {
namespace {

// Panels of the program hold B as it is, whatever products need; those that are made here have its offset.
bool OwesOffset(const MatmulShape& s) { return s.panel_columns && OffsetOfB(s); }

// What makes two tiles one function.
std::string FormOf(const MatmulShape& s, const MicroTile& t) {
  std::string form = absl::StrCat(TextOf(s.b_type), ".", TextOf(s.c_type), ".", t.lanes, ".", t.columns, ".r", t.run,
                                  ".b", t.b_stride, ".a", s.a_stride, ".c", s.c_stride,
                                  t.sum == Sum::kNew     ? ".n"
                                  : t.sum == Sum::kAdded ? ".a"
                                                         : "");
  if (t.ahead) absl::StrAppend(&form, ".p", t.ahead, "_", t.sharing);
  if (t.fetchers) absl::StrAppend(&form, ".f", t.fetchers);
  if (t.copies) absl::StrAppend(&form, ".k", t.b_stride, "_", t.copies);
  if (t.far_result) form += ".c";
  if (t.far_rows) form += ".d";
  if (OwesOffset(s)) form += ".o";
  if (s.past_caches) form += ".s";
  if (s.tiles) absl::StrAppend(&form, ".t", t.b_run);
  for (const Segment& q : t.segments) absl::StrAppend(&form, ".", q.count, "_", q.a_stride);
  return form;
}

BlockStart StartOf(Ir& ir, const MatmulPlan& plan, const SumBlock& block, llvm::Value* step) {
  llvm::Value* rest = block.pieces == 1 ? step : ir.b.CreateUDiv(step, ir.I64(block.pieces));
  llvm::Value* piece = block.pieces == 1 ? ir.I64(0) : ir.b.CreateURem(step, ir.I64(block.pieces));
  llvm::Value* a = ir.Add(ir.I64(block.start), ir.Mul(piece, block.run));
  llvm::Value* k = ir.Add(a, ir.Mul(rest, plan.period));
  for (size_t d = plan.outer.size(); d-- > 0;) {
    const Segment& q = plan.outer[d];
    llvm::Value* digit = d == 0 ? rest : ir.b.CreateURem(rest, ir.I64(q.count));
    if (d) rest = ir.b.CreateUDiv(rest, ir.I64(q.count));
    a = ir.Add(a, ir.Mul(digit, q.a_stride));
  }
  return {a, k};
}

class Emitter {
 public:
  Emitter(Ir& ir, const MatmulShape& shape, const MicroTile& tile)
      : ir_(ir),
        b_(ir.b),
        s_(shape),
        t_(tile),
        sum_(SumType(shape.compute)),
        fp_(IsFloat(sum_)),
        group_(Group(shape.compute)),
        lanes_(tile.lanes),
        element_(ir.MemType(shape.compute)),
        word_(group_ == 1 ? element_ : ir.b.getInt32Ty()),
        b_word_(tile.copies ? ir.MemType(shape.b_type) : word_),
        vector_(VectorOf(ir.RegType(sum_))),
        zero_(llvm::Constant::getNullValue(vector_)) {}

  void Emit(llvm::Function* f) {
    f_ = f;
    b_.SetInsertPoint(llvm::BasicBlock::Create(ir_.ctx, "entry", f_));
    if (t_.far_result) FetchResult();
    Sums sums = Level(0, {f_->getArg(0), f_->getArg(1), t_.copies ? f_->getArg(4) : nullptr}, First());
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
  // What a step reads of A and of B, and where it copies the latter to, if it does.
  struct Places {
    llvm::Value *a, *b, *copy;
  };

  llvm::FixedVectorType* VectorOf(llvm::Type* element) const {
    return llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes_));
  }

  llvm::Value* Splat(llvm::Value* x) { return b_.CreateVectorSplat(static_cast<unsigned>(lanes_), x); }

  // The lines of the result, which the sums are added to at the end.
  void FetchResult() {
    llvm::Type* c_element = ir_.MemType(s_.c_type);
    for (int64_t m = 0; m < t_.rows; ++m)
      for (int64_t j = 0; j < t_.columns; j += kCacheLine / ByteWidth(s_.c_type))
        ir_.Prefetch(b_.CreateInBoundsGEP(c_element, f_->getArg(2), ir_.I64(m * s_.c_stride + j)), Ir::Cache::kSecond);
  }

  // What sums begin with: what a row's elements are owed for B's offset.
  Sums First() {
    Sums sums(static_cast<size_t>(t_.rows * t_.vectors), zero_);
    if (!OffsetOfB(s_)) return sums;
    for (int64_t m = 0; m < t_.rows; ++m) {
      llvm::Value* x = Splat(b_.CreateLoad(word_, b_.CreateInBoundsGEP(word_, f_->getArg(4), ir_.I64(m))));
      for (int64_t v = 0; v < t_.vectors; ++v) sums[m * t_.vectors + v] = x;
    }
    return sums;
  }

  // The word at `a`: `live` elements, then zeros.
  llvm::Value* WordOfA(llvm::Value* a, int64_t live) {
    const llvm::Align align(static_cast<uint64_t>(ByteWidth(s_.compute)));
    if (live == group_) return b_.CreateAlignedLoad(word_, a, align);
    llvm::Value* word = nullptr;
    for (int64_t e = 0; e < live; ++e) {
      llvm::Value* x = b_.CreateAlignedLoad(element_, b_.CreateInBoundsGEP(element_, a, ir_.I64(e)), align);
      x = b_.CreateShl(b_.CreateZExt(x, word_), static_cast<uint64_t>(e * 8 * ByteWidth(s_.compute)));
      word = word ? b_.CreateOr(word, x) : x;
    }
    return word;
  }

  // sum + x * y in each lane, x of A and y of B.
  llvm::Value* MultiplyAdd(llvm::Value* sum, llvm::Value* x, llvm::Value* y) {
    if (group_ == 1 && !fp_) return b_.CreateAdd(sum, b_.CreateMul(x, y));
    if (group_ == 1)
      return ir_.level.fma ? b_.CreateIntrinsic(llvm::Intrinsic::fma, {vector_}, {x, y, sum})
                           : b_.CreateFAdd(sum, b_.CreateFMul(x, y));
    if (fp_) {
      auto* pairs = llvm::FixedVectorType::get(b_.getBFloatTy(), static_cast<unsigned>(2 * lanes_));
      return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512, {},
                                {sum, b_.CreateBitCast(x, pairs), b_.CreateBitCast(y, pairs)});
    }
    if (IsSigned(s_.compute)) std::swap(x, y);  // the unsigned operand comes first
    return b_.CreateIntrinsic(ir_.level.vector_bytes == 64 ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
                                                           : llvm::Intrinsic::x86_avx512_vpdpbusd_256,
                              {}, {sum, x, y});
  }

  // Products of `live` elements of each row of A and as many rows of B.
  Sums Products(const Places& at, Sums sums, int64_t live) {
    const llvm::Align align(static_cast<uint64_t>(ByteWidth(sum_)));
    std::vector<llvm::Value*> row;
    for (int64_t v = 0; v < t_.vectors; ++v) {
      llvm::Value* from = b_.CreateInBoundsGEP(b_word_, at.b, ir_.I64(v * lanes_));
      row.push_back(at.copy ? LoadComputed(ir_, s_.b_type, s_.compute, lanes_, from)
                            : b_.CreateAlignedLoad(VectorOf(word_), from, align));
      if (at.copy) b_.CreateAlignedStore(row[v], b_.CreateInBoundsGEP(word_, at.copy, ir_.I64(v * lanes_)), align);
      if (OwesOffset(s_)) row[v] = b_.CreateXor(row[v], llvm::ConstantInt::get(VectorOf(word_), kOffsetOfBytes));
    }
    for (int64_t m = 0; m < t_.rows; ++m) {
      llvm::Value* x = Splat(WordOfA(b_.CreateInBoundsGEP(element_, at.a, ir_.I64(m * s_.a_stride)), live));
      for (int64_t v = 0; v < t_.vectors; ++v) {
        llvm::Value*& d = sums[m * t_.vectors + v];
        d = MultiplyAdd(d, x, row[v]);
      }
    }
    return sums;
  }

  // The loops over segments from `depth` on, and over the run inside the last of them.
  Sums Level(size_t depth, const Places& at, Sums sums) {
    if (depth == t_.segments.size()) return Run(at, std::move(sums));
    int64_t inner = t_.b_run;
    for (size_t k = depth + 1; k < t_.segments.size(); ++k) inner *= t_.segments[k].count;
    const Segment& q = t_.segments[depth];
    return Loop({q.count, 1, q.a_stride, inner * t_.b_stride, inner * t_.copies}, at, std::move(sums),
                [&](const Places& p, Sums now) { return Level(depth + 1, p, std::move(now)); });
  }

  Sums Run(const Places& at, Sums sums) {
    const int64_t whole = t_.run / group_, tail = t_.run % group_;
    if (whole)
      sums = Loop({whole, Unroll(whole), group_, t_.b_stride, t_.copies, true}, at, std::move(sums),
                  [&](const Places& p, Sums now) { return Products(p, std::move(now), group_); });
    if (!tail) return sums;
    return Products(Behind(at, whole, {whole, 1, group_, t_.b_stride, t_.copies}), std::move(sums), tail);
  }

  // Steps between branches of the innermost loop: enough of them, since more only cost code.
  int64_t Unroll(int64_t count) const {
    constexpr int64_t kShort = 8;  // loops of fewer steps are not unrolled
    // Vectors, of which two steps keep the processor busy; four where addresses of what is fetched are computed too.
    constexpr int64_t kLargeTile = 12;
    if (count < kShort) return 1;
    return t_.rows * t_.vectors >= kLargeTile && !t_.far_rows ? 2 : 4;
  }

  struct Steps {
    int64_t count, unroll;
    int64_t a, b, copy;    // distances of steps in elements of A, and in words of B and of the copy
    bool fetches = false;  // what the tile fetches for later
  };

  // Where things are `n` steps further.
  Places Behind(const Places& at, int64_t n, const Steps& steps) {
    if (n == 0) return at;
    return {b_.CreateInBoundsGEP(element_, at.a, ir_.I64(n * steps.a)),
            b_.CreateInBoundsGEP(b_word_, at.b, ir_.I64(n * steps.b)),
            at.copy ? b_.CreateInBoundsGEP(word_, at.copy, ir_.I64(n * steps.copy)) : nullptr};
  }

  // Sums travel as phis.
  template <typename Body>
  Sums Loop(const Steps& steps, const Places& begin, Sums sums, const Body& body) {
    if (steps.count == 1) return body(begin, std::move(sums));
    const int64_t whole = steps.count / steps.unroll * steps.unroll;
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
    llvm::PHINode *ai = phi(ptr, begin.a), *bi = phi(ptr, begin.b), *ci = begin.copy ? phi(ptr, begin.copy) : nullptr;
    const Places here = {ai, bi, ci};
    std::vector<llvm::PHINode*> phis;
    for (llvm::Value* v : sums) phis.push_back(phi(vector_, v));
    Sums now(phis.begin(), phis.end());
    for (int64_t u = 0; u < steps.unroll; ++u) now = body(Behind(here, u, steps), std::move(now));
    if (steps.fetches && t_.ahead) FetchAhead(i, steps.unroll);
    if (steps.fetches && t_.far_rows) FetchRows(b_.CreateUDiv(i, ir_.I64(steps.unroll)), steps.count / steps.unroll);
    if (steps.fetches && t_.fetchers) PrefetchPart(bi, steps.unroll * steps.b * ByteWidth(sum_));
    llvm::Value* next = b_.CreateAdd(i, ir_.I64(steps.unroll), "", true, true);
    Places after = Behind(here, steps.unroll, steps);
    llvm::BasicBlock* latch = b_.GetInsertBlock();
    i->addIncoming(next, latch);
    ai->addIncoming(after.a, latch);
    bi->addIncoming(after.b, latch);
    if (ci) ci->addIncoming(after.copy, latch);
    for (size_t k = 0; k < phis.size(); ++k) phis[k]->addIncoming(now[k], latch);
    NotUnrolled(b_.CreateCondBr(b_.CreateICmpSLT(next, ir_.I64(whole)), head, done));
    b_.SetInsertPoint(done);
    for (int64_t u = whole; u < steps.count; ++u) {
      now = body(after, std::move(now));
      if (u + 1 < steps.count) after = Behind(after, 1, steps);
    }
    return now;
  }

  // What the tile fetches of the next panel's rows of B in the `unroll` steps from `i` on: rows, or a part of one.
  void FetchAhead(llvm::Value* i, int64_t unroll) {
    const int64_t bytes = t_.columns * ByteWidth(s_.b_type), parts = std::max<int64_t>(1, t_.sharing / unroll);
    llvm::Value* at = b_.CreateMul(b_.CreateUDiv(i, ir_.I64(t_.sharing)), ir_.I64(t_.ahead));
    if (parts > 1) {
      llvm::Value* part = b_.CreateUDiv(b_.CreateURem(i, ir_.I64(t_.sharing)), ir_.I64(unroll));
      return Prefetch(ir_.Add(at, ir_.Mul(part, bytes / parts)), bytes / parts);
    }
    for (int64_t row = 0; row < unroll; row += t_.sharing)
      Prefetch(ir_.Add(at, ir_.I64(row / t_.sharing * t_.ahead)), bytes);
  }

  // Fetches `bytes` bytes of what the next panel is read from, `offset` bytes on.
  void Prefetch(llvm::Value* offset, int64_t bytes) {
    llvm::Value* from = b_.CreateGEP(b_.getInt8Ty(), f_->getArg(f_->arg_size() - 1), offset);
    for (int64_t at = 0; at < bytes; at += kCacheLine)
      ir_.Prefetch(b_.CreateGEP(b_.getInt8Ty(), from, ir_.I64(at)), Ir::Cache::kSecond);
  }

  // The tile's part of as much as it reads of B, of which it has come to `b` and reads `bytes` bytes until it asks
  // again.
  void PrefetchPart(llvm::Value* b, int64_t bytes) {
    llvm::Type* i64 = b_.getInt64Ty();
    llvm::Value* read = b_.CreateSub(b_.CreatePtrToInt(b, i64), b_.CreatePtrToInt(f_->getArg(1), i64));
    Prefetch(b_.CreateUDiv(read, ir_.I64(t_.fetchers)), bytes / t_.fetchers);
  }

  // Round `round` of `rounds` of the loop: its share of the lines of the rows of A that the next tile takes.
  void FetchRows(llvm::Value* round, int64_t rounds) {
    const int64_t lines = (t_.run * ByteWidth(s_.compute) + kCacheLine - 1) / kCacheLine;
    const int64_t each = (t_.rows * lines + rounds - 1) / rounds, line = kCacheLine / ByteWidth(s_.compute);
    for (int64_t n = 0; n < each; ++n) {
      llvm::Value* k = ir_.Add(ir_.Mul(round, each), ir_.I64(n));
      llvm::Value* row = ir_.Add(b_.CreateUDiv(k, ir_.I64(lines)), ir_.I64(t_.rows));
      llvm::Value* at = ir_.Add(ir_.Mul(row, s_.a_stride), ir_.Mul(b_.CreateURem(k, ir_.I64(lines)), line));
      ir_.Prefetch(b_.CreateGEP(element_, f_->getArg(0), at), Ir::Cache::kSecond);
    }
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
        if (s_.c_type == sum_)
          StoreVector(sum, to, live, first);
        else if (IsIntegral(s_.c_type) && fp_)
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
      if (s_.past_caches && t_.sum == Sum::kNew) return StorePastCaches(ir_, sum, to);
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
    if (s_.c_type == PrimitiveType::BF16 && live == lanes_) {
      b_.CreateAlignedStore(RoundedToBf16(ir_, sum), to, ResultAlign());
      return;
    }
    for (int64_t k = 0; k < live; ++k) {
      Val e{b_.CreateExtractElement(sum, ir_.I64(k))};
      ir_.Store(s_.c_type, ir_.Convert(e, sum_, s_.c_type), to, ir_.I64(k));
    }
  }

  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const MatmulShape& s_;
  const MicroTile& t_;
  const PrimitiveType sum_;
  const bool fp_;
  const int64_t group_, lanes_;
  llvm::Type* const element_;  // of A
  llvm::Type* const word_;     // of a panel of B, and a group of elements of A
  llvm::Type* const b_word_;   // of what the tile reads of B: an element where it makes the panel
  llvm::FixedVectorType* const vector_;
  llvm::Constant* const zero_;
  llvm::Function* f_ = nullptr;
};

}  // namespace

void ForSumSteps(Ir& ir, const MatmulShape& shape, const MatmulPlan& plan,
                 const std::function<void(const SumStep&)>& body) {
  bool fresh = !shape.accumulate;  // the first block of all still has to write C
  for (const SumBlock& block : plan.blocks) {
    const int64_t steps = block.pieces * plan.repeat;
    const Sum sum = !fresh ? Sum::kAdded : steps == 1 ? Sum::kNew : Sum::kEither;
    ir.Loop(ir.I64(0), ir.I64(steps), 1, [&](llvm::Value* step) {
      llvm::Value* is_first = sum == Sum::kEither ? ir.b.CreateICmpEQ(step, ir.I64(0)) : ir.b.getInt1(sum == Sum::kNew);
      body({block, step, StartOf(ir, plan, block, step), sum, is_first});
    });
    fresh = false;
  }
}

llvm::Type* ElementOfA(Ir& ir, const MatmulShape& s) {
  return s.compute == PrimitiveType::F16 ? ir.b.getInt32Ty() : ir.MemType(s.compute);
}

llvm::Value* OffsetOfRow(Ir& ir, const MatmulShape& s, llvm::Value* row) {
  const int64_t rows = s.b_tap_rows ? s.b_tap_rows : s.run;
  if (!s.b_tap_rows && !s.reverse_b) return ir.Mul(row, s.b_k_stride);
  llvm::Value *tap = ir.b.CreateUDiv(row, ir.I64(rows)), *r = ir.b.CreateURem(row, ir.I64(rows));
  // Backwards: the taps in reverse, the rows of each in order.
  if (s.reverse_b) tap = ir.b.CreateSub(ir.I64(s.K() / rows - 1), tap);
  return ir.Add(ir.Mul(tap, s.b_tap_rows ? s.b_tap_stride : rows * s.b_k_stride), ir.Mul(r, s.b_k_stride));
}

llvm::Value* RoundedToBf16(Ir& ir, llvm::Value* sum) {
  llvm::IRBuilder<>& b = ir.b;
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(sum->getType())->getNumElements();
  auto *words = llvm::FixedVectorType::get(b.getInt32Ty(), lanes),
       *halves = llvm::FixedVectorType::get(b.getInt16Ty(), lanes);
  const auto all = [&](uint32_t x) { return llvm::ConstantInt::get(words, x); };
  llvm::Value* bits = b.CreateBitCast(sum, words);
  llvm::Value* high = b.CreateLShr(bits, 16);
  llvm::Value* rounded = b.CreateAdd(b.CreateAdd(bits, all(0x7fff)), b.CreateAnd(high, all(1)));
  llvm::Value* quiet = b.CreateOr(high, all(0x40));
  llvm::Value* r = b.CreateSelect(b.CreateFCmpUNO(sum, sum), quiet, b.CreateLShr(rounded, 16));
  return b.CreateTrunc(r, halves);
}

llvm::Function* MicroKernel(Ir& ir, const MatmulShape& shape, const MicroTile& tile) {
  // Names are short, since an archive holds them.
  constexpr char kForm[] = "kiln-form";
  const std::string base = absl::StrCat("ukr.", TextOf(shape.compute), ".", tile.rows, "x", tile.vectors);
  const std::string form = FormOf(shape, tile);
  std::string name = base;
  for (int k = 1;; ++k) {
    llvm::Function* f = ir.module.getFunction(name);
    if (!f) break;
    if (f->getFnAttribute(kForm).getValueAsString() == form) return f;
    name = absl::StrCat(base, ".", k);
  }
  llvm::IRBuilder<>& b = ir.b;
  llvm::Type* ptr = b.getPtrTy();
  std::vector<llvm::Type*> types = {ptr, ptr, ptr, b.getInt1Ty()};
  if (OffsetOfB(shape) || tile.copies) types.push_back(ptr);
  if (tile.ahead || tile.fetchers) types.push_back(ptr);
  auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), types, false),
                                   llvm::Function::InternalLinkage, name, ir.module);
  f->addFnAttr(llvm::Attribute::NoInline);
  f->addFnAttr(kWrittenAsRun);
  f->addFnAttr(kForm, form);
  for (unsigned k = 0; k < 3; ++k) f->addParamAttr(k, llvm::Attribute::NoAlias);
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  llvm::MDNode* group = ir.access_group;
  ir.access_group = nullptr;
  if (shape.tiles)
    EmitTileKernel(ir, shape, tile, f);
  else if (shape.compute == PrimitiveType::F16)
    EmitF16Kernel(ir, shape, tile, f);
  else
    Emitter(ir, shape, tile).Emit(f);
  ir.access_group = group;
  return f;
}

}  // namespace kiln::cpu
