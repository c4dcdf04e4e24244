// Dots as matrix products, a block of rows of A a unit.
#include "codegen/cpu/contractions.h"
#include "codegen/cpu/matmul.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::cpu {
namespace {

class BlockedDot {
 public:
  BlockedDot(Body& body, const DotPlan& plan)
      : body_(body), ir_(body.ir), b_(body.ir.b), s_(plan.shape), p_(plan.blocked), sum_(plan.sum) {}

  void Emit() {
    slab_ = p_.pack_a ? ir_.Alloca(ir_.MemType(p_.held), p_.rows.size * p_.slab_stride) : nullptr;
    tile_ = p_.via_tile ? ir_.Alloca(ir_.RegType(sum_), p_.rows.size * s_.n) : nullptr;
    ir_.Loop(body_.begin, body_.end, 1, [&](llvm::Value* unit) { Unit(unit); });
  }

 private:
  llvm::Value* At(PrimitiveType t, llvm::Value* array, llvm::Value* element) {
    return b_.CreateInBoundsGEP(ir_.MemType(t), array, element);
  }

  void Unit(llvm::Value* unit) {
    const int64_t blocks = p_.rows.count, size = p_.rows.size;
    if (blocks == 1) return Rows(unit, ir_.I64(0), s_.m);
    llvm::Value* batch = s_.batch == 1 ? ir_.I64(0) : b_.CreateUDiv(unit, ir_.I64(blocks));
    llvm::Value* block = s_.batch == 1 ? unit : b_.CreateURem(unit, ir_.I64(blocks));
    llvm::Value* first = ir_.Mul(block, size);
    if (p_.rows.tail == 0) return Rows(batch, first, size);
    llvm::Value* last = b_.CreateICmpEQ(block, ir_.I64(blocks - 1));
    ir_.If(b_.CreateNot(last), [&] { Rows(batch, first, size); });
    ir_.If(last, [&] { Rows(batch, ir_.I64((blocks - 1) * size), p_.rows.tail); });
  }

  // Results of `rows` rows of A from `first`.
  void Rows(llvm::Value* batch, llvm::Value* first, int64_t rows) {
    llvm::Value* a = At(s_.a, body_.operands[0], ir_.Add(ir_.Mul(batch, s_.m * s_.k), ir_.Mul(first, s_.a_m)));
    llvm::Value* c = At(s_.c, body_.results[0], ir_.Add(ir_.Mul(batch, s_.m * s_.n), ir_.Mul(first, s_.n)));
    const auto part = [&](llvm::Value* k0, int64_t depth, bool accumulate) {
      Multiply(batch, a, p_.via_tile ? tile_ : c, rows, k0, depth, accumulate);
    };
    const int64_t piece = p_.depth.size, pieces = p_.depth.count;
    part(ir_.I64(0), piece, false);
    ir_.Loop(ir_.I64(1), ir_.I64(pieces), 1, [&](llvm::Value* q) { part(ir_.Mul(q, piece), piece, true); });
    if (p_.depth.tail) part(ir_.I64(pieces * piece), p_.depth.tail, true);
    if (!p_.via_tile) return;
    ir_.Loop(
        ir_.I64(0), ir_.I64(rows * s_.n), 1,
        [&](llvm::Value* e) { ir_.Store(s_.c, ir_.Convert(ir_.Load(sum_, tile_, e), sum_, s_.c), c, e); }, true);
  }

  // Products of `rows` rows of A from `a0` with rows [k0, k0 + depth) of B.
  void Multiply(llvm::Value* batch, llvm::Value* a0, llvm::Value* out, int64_t rows, llvm::Value* k0, int64_t depth,
                bool accumulate) {
    llvm::Value* a = At(s_.a, a0, ir_.Mul(k0, s_.a_k));
    if (p_.pack_a) {
      Pack(a, rows, depth);
      a = slab_;
    }
    MatmulShape shape = p_.product;
    shape.run = depth;
    shape.accumulate = accumulate;
    llvm::Value* b = At(s_.b, body_.operands[1], ir_.Add(ir_.Mul(batch, s_.n * s_.k), ir_.Mul(k0, s_.b_k)));
    EmitMatmul(ir_, shape, rows, b, ir_.I64(1), [&](llvm::Value*) { return RowRange{a, out}; });
  }

  // Copies `rows` rows and `depth` elements of each from `a` to the slab.
  void Pack(llvm::Value* a, int64_t rows, int64_t depth) {
    auto move = [&](llvm::Value* x, llvm::Value* q) {
      ir_.Store(p_.held, ir_.Convert(ir_.Load(s_.a, a, ir_.Add(ir_.Mul(x, s_.a_m), ir_.Mul(q, s_.a_k))), s_.a, p_.held),
                slab_, ir_.Add(ir_.Mul(x, p_.slab_stride), q));
    };
    if (s_.a_k == 1) {
      ir_.Loop(ir_.I64(0), ir_.I64(rows), 1, [&](llvm::Value* x) {
        ir_.Loop(
            ir_.I64(0), ir_.I64(depth), 1, [&](llvm::Value* q) { move(x, q); }, true);
      });
      return;
    }
    constexpr int64_t kTransposed = 16;  // columns of a transposed A together, which fill a cache line of f32
    ir_.Loop(ir_.I64(0), ir_.I64(rows), kTransposed, [&](llvm::Value* x0) {
      llvm::Value* x1 =
          b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.Add(x0, ir_.I64(kTransposed)), ir_.I64(rows));
      ir_.Loop(ir_.I64(0), ir_.I64(depth), 1, [&](llvm::Value* q) {
        ir_.Loop(
            x0, x1, 1, [&](llvm::Value* x) { move(x, q); }, true);
      });
    });
  }

  Body& body_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const DotShape& s_;
  const BlockedDotPlan& p_;
  const PrimitiveType sum_;
  llvm::Value *slab_ = nullptr, *tile_ = nullptr;
};

}  // namespace

void EmitDotAsProducts(Body& body, const DotPlan& plan) { BlockedDot(body, plan).Emit(); }

}  // namespace kiln::cpu
