// Dots of a matrix and a vector: sums that stream along the matrix's contiguous dimension.
#include "codegen/cpu/cache_plan.h"
#include "codegen/cpu/contractions.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::cpu {
namespace {

class VectorDot {
 public:
  VectorDot(Body& body, const DotPlan& plan, const Epilogue& epilogue)
      : body_(body),
        epilogue_(epilogue),
        ir_(body.ir),
        b_(body.ir.b),
        s_(plan.shape),
        p_(plan.vector),
        sum_(plan.sum),
        k_(plan.shape.k),
        matrix_type_(p_.matrix_is_a ? s_.a : s_.b),
        vector_type_(p_.matrix_is_a ? s_.b : s_.a),
        matrix_(body.operands[p_.matrix_is_a ? 0 : 1]),
        vector_(body.operands[p_.matrix_is_a ? 1 : 0]) {}

  // Lines of the matrix times the vector.
  void EmitDots() {
    const int64_t group = p_.pieces.size;
    ForUnits(1, [&](llvm::Value* piece) {
      llvm::Value *first = ir_.Mul(piece, group), *end = EndOf(ir_.Add(piece, ir_.I64(1)));
      const auto apart = [&] { ir_.Loop(first, end, 1, [&](llvm::Value* line) { Dots(line, 1); }); };
      if (!p_.together) return apart();
      if (p_.pieces.tail == 0) return Dots(first, group);
      llvm::Value* whole = b_.CreateICmpEQ(b_.CreateSub(end, first), ir_.I64(group));
      ir_.If(whole, [&] { Dots(first, group); });
      ir_.If(b_.CreateNot(whole), apart);
    });
    if (!epilogue_) return;
    if (s_.batch == 1) return Finish(ir_.I64(0), ir_.Mul(body_.begin, group), EndOf(body_.end));
    ForUnits(1, [&](llvm::Value* piece) { Finish(batch_, ir_.Mul(piece, group), EndOf(ir_.Add(piece, ir_.I64(1)))); });
  }

  // Adds multiples of rows of k, some at a time, over a strip that stays in cache.
  void EmitMultiples() {
    const int64_t strip = p_.pieces.size, whole = k_ / kRowsAtOnce * kRowsAtOnce;
    // Strips of one thread go together while their sums fit the first cache: the longer a piece of a row, the better is
    // it foreseen. Sums of a line do not depend on what goes beside it.
    constexpr int64_t kMostSums = 16384;  // bytes
    const int64_t together = s_.batch == 1 ? std::max<int64_t>(1, kMostSums / ByteWidth(sum_) / strip) : 1;
    const bool converted = s_.c != sum_;
    sums_ = converted ? ir_.Alloca(ir_.RegType(sum_), together * strip) : body_.results[0];
    ForUnits(together, [&](llvm::Value* piece) {
      from_ = ir_.Mul(piece, strip);
      llvm::Value* end = ir_.Add(piece, ir_.I64(together));
      if (together > 1) end = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, body_.end);
      to_ = EndOf(end);
      llvm::Value* first_result = ir_.Mul(batch_, p_.lines);
      first_sum_ = converted ? b_.CreateNeg(from_) : first_result;
      const auto for_each = [&](const auto& visit) { ir_.Loop(from_, to_, 1, visit, true); };
      for_each([&](llvm::Value* c) { PutSum(ir_.Constant(sum_, Element{}), c); });
      ir_.Loop(ir_.I64(0), ir_.I64(whole), kRowsAtOnce, [&](llvm::Value* k0) { AddRows(k0, kRowsAtOnce); });
      ir_.Loop(ir_.I64(whole), ir_.I64(k_), 1, [&](llvm::Value* k0) { AddRows(k0, 1); });
      if (converted)
        for_each([&](llvm::Value* c) {
          ir_.Store(s_.c, ir_.Convert({SumAt(c)}, sum_, s_.c), body_.results[0], ir_.Add(first_result, c));
        });
      if (epilogue_) Finish(batch_, from_, to_);
    });
  }

 private:
  // Sums may be reassociated, so that loops over them become vectors.
  template <typename Visit>
  void ForUnits(int64_t step, const Visit& visit) {
    llvm::FastMathFlags fast;
    fast.setAllowReassoc();
    fast.setAllowContract();
    b_.setFastMathFlags(fast);
    ir_.Loop(body_.begin, body_.end, step, [&](llvm::Value* unit) {
      batch_ = s_.batch == 1 ? ir_.I64(0) : b_.CreateUDiv(unit, ir_.I64(p_.pieces.count));
      visit(s_.batch == 1 ? unit : b_.CreateURem(unit, ir_.I64(p_.pieces.count)));
    });
    b_.setFastMathFlags({});
  }

  // The line behind the last of the pieces before `piece`.
  llvm::Value* EndOf(llvm::Value* piece) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.Mul(piece, p_.pieces.size), ir_.I64(p_.lines));
  }

  // Lines [from, to) of `batch` have their sums.
  void Finish(llvm::Value* batch, llvm::Value* from, llvm::Value* to) {
    llvm::IRBuilderBase::FastMathFlagGuard exact(b_);
    b_.setFastMathFlags({});
    epilogue_({p_.lines, batch, ir_.I64(1), from, b_.CreateSub(to, from)});
  }

  // sum + x * y.
  llvm::Value* Added(llvm::Value* sum, llvm::Value* x, llvm::Value* y) {
    if (IsIntegral(sum_)) return b_.CreateAdd(sum, b_.CreateMul(x, y));
    return b_.CreateFAdd(sum, b_.CreateFMul(x, y));
  }

  // The element of the vector at `k` of this batch.
  Val VectorAt(llvm::Value* k) {
    return ir_.Convert(ir_.Load(vector_type_, vector_, ir_.Add(ir_.Mul(batch_, k_), k)), vector_type_, sum_);
  }

  // Results `count` from `line0`.
  void Dots(llvm::Value* line0, int64_t count) {
    llvm::Type* element = ir_.RegType(sum_);
    std::vector<llvm::AllocaInst*> sums;
    for (int64_t x = 0; x < count; ++x) {
      sums.push_back(ir_.Alloca(element, 1, 8));
      b_.CreateStore(llvm::Constant::getNullValue(element), sums.back());
    }
    ir_.Loop(ir_.I64(0), ir_.I64(k_), 1, [&](llvm::Value* k) {
      Val v = VectorAt(k);
      for (int64_t x = 0; x < count; ++x) {
        llvm::Value* at =
            ir_.Add(ir_.Mul(batch_, p_.lines * k_), ir_.Add(ir_.Mul(ir_.Add(line0, ir_.I64(x)), p_.line_stride), k));
        Val e = ir_.Convert(ir_.Load(matrix_type_, matrix_, at), matrix_type_, sum_);
        b_.CreateStore(Added(b_.CreateLoad(element, sums[x]), e.re, v.re), sums[x]);
      }
    });
    for (int64_t x = 0; x < count; ++x)
      ir_.Store(s_.c, ir_.Convert({b_.CreateLoad(element, sums[x])}, sum_, s_.c), body_.results[0],
                ir_.Add(ir_.Mul(batch_, p_.lines), ir_.Add(line0, ir_.I64(x))));
  }

  // Adds the products of `count` rows of k from `k0` to the strip. A piece of as many rows behind them is asked for
  // before one of theirs is read: no machine foresees so many streams.
  void AddRows(llvm::Value* k0, int64_t count) {
    std::vector<llvm::Value*> v;
    for (int64_t x = 0; x < count; ++x) v.push_back(VectorAt(ir_.Add(k0, ir_.I64(x))).re);
    const auto add = [&](llvm::Value* from, llvm::Value* to) {
      ir_.Loop(
          from, to, 1,
          [&](llvm::Value* c) {
            llvm::Value* sum = SumAt(c);
            for (int64_t x = 0; x < count; ++x) {
              const Val e = ir_.Load(matrix_type_, matrix_, PlaceOf(ir_.Add(k0, ir_.I64(x)), c));
              sum = Added(sum, ir_.Convert(e, matrix_type_, sum_).re, v[x]);
            }
            PutSum({sum}, c);
          },
          true);
    };
    if (count < kRowsAtOnce || p_.lines < kPiece || p_.lines * k_ <= kNear) return add(from_, to_);
    ir_.Loop(from_, to_, kPiece, [&](llvm::Value* c) {
      for (int64_t x = 0; x < count; ++x) Ask(PlaceOf(ir_.Add(k0, ir_.I64(count + x)), c));
      add(c, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.Add(c, ir_.I64(kPiece)), to_));
    });
  }

  // Of the matrix: row `k` of line `c`.
  llvm::Value* PlaceOf(llvm::Value* k, llvm::Value* c) {
    return ir_.Add(ir_.Mul(batch_, p_.lines * k_), ir_.Add(ir_.Mul(k, p_.k_stride), c));
  }

  // Brings the matrix's elements of a piece from `place` on into the second cache.
  void Ask(llvm::Value* place) {
    const int64_t width = ByteWidth(matrix_type_);
    for (int64_t byte = 0; byte < kPiece * width; byte += kCacheLine) {
      llvm::Value* at = b_.CreateGEP(b_.getInt8Ty(), matrix_, ir_.Add(ir_.Mul(place, width), ir_.I64(byte)));
      ir_.Prefetch(at, Ir::Cache::kSecond);
    }
  }

  // The sum of line `c` while multiples are added to it: a result, or a word of the stack that becomes one.
  llvm::Value* SumAt(llvm::Value* c) { return ir_.Load(sum_, sums_, ir_.Add(first_sum_, c)).re; }
  void PutSum(const Val& sum, llvm::Value* c) { ir_.Store(sum_, sum, sums_, ir_.Add(first_sum_, c)); }

  static constexpr int64_t kRowsAtOnce = 8;  // a result is loaded and stored once for so many products
  static constexpr int64_t kPiece = 128;     // elements of a row that are asked for at a time
  static constexpr int64_t kNear = 1 << 19;  // elements of a matrix that may lie in caches close by

  Body& body_;
  const Epilogue& epilogue_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const DotShape& s_;
  const VectorDotPlan& p_;
  const PrimitiveType sum_;
  const int64_t k_;
  const PrimitiveType matrix_type_, vector_type_;
  llvm::Value *const matrix_, *const vector_;
  llvm::Value* batch_ = nullptr;                 // of the unit
  llvm::Value *from_ = nullptr, *to_ = nullptr;  // its strip
  llvm::Value* sums_ = nullptr;                  // of the strip, and the place of line 0's
  llvm::Value* first_sum_ = nullptr;
};

}  // namespace

void EmitDotsWithVector(Body& body, const DotPlan& plan, const Epilogue& epilogue) {
  VectorDot(body, plan, epilogue).EmitDots();
}
void EmitMultiplesOfLines(Body& body, const DotPlan& plan, const Epilogue& epilogue) {
  VectorDot(body, plan, epilogue).EmitMultiples();
}

}  // namespace kiln::cpu
