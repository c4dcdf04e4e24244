// Convolutions as matrix products: A is the input, read in place or from a slab, and k runs over the taps.
#include "codegen/cpu/contractions.h"
#include "codegen/cpu/matmul.h"

namespace kiln::cpu {
namespace {

class SlabConvolution {
 public:
  SlabConvolution(Body& body, const ConvolutionPlan& plan, const Epilogue& epilogue)
      : body_(body),
        epilogue_(epilogue),
        ir_(body.ir),
        b_(body.ir.b),
        p_(plan),
        s_(plan.shape),
        innermost_(plan.shape.spatial() - 1),
        element_(body.ir.MemType(plan.held)) {}

  void Emit() {
    if (p_.slab.pack) slab_ = p_.slab.in_arena ? body_.scratch : ir_.Alloca(element_, p_.slab.elements);
    const auto unit = [&](llvm::Value* u) { Unit(u); };
    if (p_.slab.in_arena)
      ir_.Loop(ir_.I64(0), ir_.I64(s_.batch * p_.pieces.count), 1, unit);
    else
      ir_.Loop(body_.begin, body_.end, 1, unit);
  }

 private:
  void Unit(llvm::Value* unit) {
    const int64_t slabs = p_.pieces.count;
    unit_ = SplitUnit(ir_, unit, body_.begin, p_.column_parts);
    llvm::Value* image = slabs == 1 ? unit_.whole : b_.CreateUDiv(unit_.whole, ir_.I64(slabs));
    llvm::Value* slab = slabs == 1 ? ir_.I64(0) : b_.CreateURem(unit_.whole, ir_.I64(slabs));
    VisitPiece(ir_, p_.pieces, slab, [&](llvm::Value* first, int64_t rows) { Slab(image, first, rows); });
  }

  bool OneDimension() const { return s_.spatial() == 1; }

  // Results of `rows` positions of the outermost dimension from `first`, of image `n`.
  void Slab(llvm::Value* n, llvm::Value* first, int64_t rows) {
    const int64_t stride = s_.window[0].stride;
    llvm::Value* image = b_.CreateInBoundsGEP(ir_.MemType(s_.a), body_.operands[0], ir_.Mul(n, s_.image_stride));
    llvm::Value* a = slab_;
    if (!p_.slab.pack) {
      a = b_.CreateInBoundsGEP(element_, image,
                               OneDimension() ? ir_.I64(0) : ir_.Mul(ir_.Mul(first, stride), p_.slab.stride[0]));
    } else {
      const int64_t lines = OneDimension() ? 1 : (rows - 1) * stride + p_.slab.window_lines;
      PrepareWhole(ir_, unit_, [&] { FillSlab(ir_, p_, image, slab_, first, lines); });
    }
    const int64_t columns = p_.product.n;
    // Row ranges: every output position of the outer spatial dimensions inside the slab.
    int64_t ranges = OneDimension() ? 1 : rows;
    for (int64_t d = 1; d < innermost_; ++d) ranges *= s_.out[d];
    ir_.Loop(ir_.I64(0), ir_.I64(s_.groups), 1, [&](llvm::Value* g) {
      llvm::Value* kernel = b_.CreateInBoundsGEP(
          ir_.MemType(s_.b), body_.operands[1],
          ir_.Add(ir_.Mul(g, s_.cout * s_.out_stride), ir_.Mul(unit_.part, columns * s_.out_stride)));
      EmitMatmul(ir_, p_.product, s_.out[innermost_], kernel, ir_.I64(ranges),
                 [&](llvm::Value* range) { return RangeAt(range, n, first, g, a); });
    });
    if (!epilogue_) return;
    const int64_t inner = OneDimension() ? 1 : Product(s_.out) / s_.out[0];
    llvm::Value* row = ir_.Add(ir_.Mul(n, Product(s_.out)), ir_.Mul(first, inner));
    const int64_t positions = OneDimension() ? s_.out[0] : rows * inner;
    const int64_t width = p_.column_parts > 1 ? columns : s_.out_features();
    epilogue_({s_.out_features(), row, ir_.I64(positions), ir_.Mul(unit_.part, width), ir_.I64(width)});
  }

  // The `range`-th row of results of feature group `g`, of image `n` from its position `first`.
  RowRange RangeAt(llvm::Value* range, llvm::Value* n, llvm::Value* first, llvm::Value* g, llvm::Value* a) {
    llvm::Value *ao = ir_.Mul(g, s_.cin), *yo = ir_.I64(0);
    int64_t weight = s_.out[innermost_];
    for (int64_t d = innermost_ - 1; d >= 0; --d) {
      llvm::Value* p = d == 0 ? range : b_.CreateURem(range, ir_.I64(s_.out[d]));
      if (d) range = b_.CreateUDiv(range, ir_.I64(s_.out[d]));
      ao = ir_.Add(ao, ir_.Mul(p, s_.window[d].stride * p_.slab.stride[d]));
      yo = ir_.Add(yo, ir_.Mul(d == 0 ? ir_.Add(p, first) : p, weight));
      weight *= s_.out[d];
    }
    yo = ir_.Add(yo, ir_.Mul(n, Product(s_.out)));
    return RowRange{b_.CreateInBoundsGEP(element_, a, ao),
                    b_.CreateInBoundsGEP(ir_.MemType(s_.c), body_.results[0],
                                         ir_.Add(ir_.Add(ir_.Mul(yo, s_.out_features()), ir_.Mul(g, s_.cout)),
                                                 ir_.Mul(unit_.part, p_.product.n)))};
  }

  Body& body_;
  const Epilogue& epilogue_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const ConvolutionPlan& p_;
  const ConvolutionShape& s_;
  const int64_t innermost_;
  llvm::Type* const element_;
  llvm::Value* slab_ = nullptr;
  PartOfUnit unit_ = {};  // the current one: a part of the columns
};

}  // namespace

void EmitConvolutionAsProducts(Body& body, const ConvolutionPlan& plan, const Epilogue& epilogue) {
  SlabConvolution(body, plan, epilogue).Emit();
}

void EmitPointwiseConvolution(Body& body, const ConvolutionPlan& plan, const Epilogue& epilogue) {
  Ir& ir = body.ir;
  llvm::IRBuilder<>& b = ir.b;
  const ConvolutionShape& s = plan.shape;
  const Pieces& pieces = plan.pieces;
  const int64_t columns = plan.product.n;
  auto block = [&](llvm::Value* first, llvm::Value* column, int64_t rows) {
    llvm::Value* kernel = b.CreateInBoundsGEP(ir.MemType(s.b), body.operands[1], ir.Mul(column, s.out_stride));
    llvm::Value *a = b.CreateInBoundsGEP(ir.MemType(plan.held), body.operands[0], ir.Mul(first, s.in_features())),
                *y = b.CreateInBoundsGEP(ir.MemType(s.c), body.results[0],
                                         ir.Add(ir.Mul(first, s.out_features()), column));
    EmitMatmul(ir, plan.product, rows, kernel, ir.I64(1), [&](llvm::Value*) { return RowRange{a, y}; });
    if (epilogue) epilogue({s.out_features(), first, ir.I64(rows), column, ir.I64(columns)});
  };
  ir.Loop(body.begin, body.end, 1, [&](llvm::Value* unit) {
    const PartOfUnit u = SplitUnit(ir, unit, body.begin, plan.column_parts);
    VisitPiece(ir, pieces, u.whole,
               [&](llvm::Value* first, int64_t rows) { block(first, ir.Mul(u.part, columns), rows); });
  });
}

}  // namespace kiln::cpu
