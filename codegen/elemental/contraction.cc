#include "codegen/elemental/element.h"

namespace kiln {

Val MultiplyAdd(Ir& ir, PrimitiveType t, const Val& acc, const Val& x, const Val& y) {
  llvm::IRBuilder<>& b = ir.b;
  // One rounding instead of two where the target has an instruction for it.
  const llvm::IRBuilder<>::FastMathFlagGuard kept(b);
  llvm::FastMathFlags fuse = b.getFastMathFlags();
  fuse.setAllowContract();
  b.setFastMathFlags(fuse);
  if (IsComplex(t)) {
    llvm::Value* re = b.CreateFSub(b.CreateFMul(x.re, y.re), b.CreateFMul(x.im, y.im));
    llvm::Value* im = b.CreateFAdd(b.CreateFMul(x.re, y.im), b.CreateFMul(x.im, y.re));
    return {b.CreateFAdd(acc.re, re), b.CreateFAdd(acc.im, im)};
  }
  if (IsFloat(t)) return {b.CreateFAdd(acc.re, b.CreateFMul(x.re, y.re))};
  if (t == PrimitiveType::Pred) return {b.CreateOr(acc.re, b.CreateAnd(x.re, y.re))};
  return {b.CreateAdd(acc.re, b.CreateMul(x.re, y.re))};
}

}  // namespace kiln
