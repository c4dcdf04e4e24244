// Convolutions without a library: products where there are features enough, else a thread for each output.
#include "codegen/elemental/element.h"
#include "codegen/gpu/kernels.h"
#include "codegen/gpu/tiles.h"

namespace kiln::gpu {

// In NHWC order, as convolution-canonicalization leaves it.
absl::Status EmitConvolution(Body& body) {
  ASSIGN_OR_RETURN(const std::optional<ProductShape> product, ProductOf(body.i));
  if (product) return EmitConvolutionAsProduct(body, *product);
  Ir& ir = body.ir;
  llvm::IRBuilder<>& b = ir.b;
  const Instruction* i = body.i;
  const Shape &x = i->operand(0)->shape(), &kernel = i->operand(1)->shape(), &o = i->shape();
  const int64_t spatial = x.rank() - 2, groups = i->attrs().feature_group_count.value_or(1);
  const int64_t in_features = kernel.dim(spatial), features = kernel.dim(spatial + 1);
  const attr::Win w = i->attrs().window.value_or(attr::Win(static_cast<size_t>(spatial)));
  const PrimitiveType t =
      IsFloat(o.type()) && o.type() != PrimitiveType::F64 ? PrimitiveType::F32 : o.type();  // sums of narrow floats
  const int64_t parts = IsComplex(t) ? 2 : 1;
  return ForEach(body, o.ElementCount(), [&](llvm::Value* place) -> absl::Status {
    const std::vector<llvm::Value*> at = Delinearize(ir, place, o.dims(), MemoryOrder(o));
    llvm::Value* feature = at[static_cast<size_t>(spatial) + 1];
    llvm::Value* first =
        groups == 1 ? ir.I64(0) : ir.Mul(b.CreateUDiv(feature, ir.I64(features / groups)), in_features);
    llvm::Value* sum = ir.Alloca(ir.RegType(t), parts, 16);
    const auto part = [&] { return b.CreateInBoundsGEP(ir.RegType(t), sum, ir.I64(1)); };
    const auto get = [&]() -> Val {
      return {b.CreateLoad(ir.RegType(t), sum), IsComplex(t) ? b.CreateLoad(ir.RegType(t), part()) : nullptr};
    };
    const auto put = [&](const Val& v) {
      b.CreateStore(v.re, sum);
      if (v.im) b.CreateStore(v.im, part());
    };
    put(ir.Constant(t, Element{}));
    const auto strides = [](const Shape& s) { return Shape::Array(s.type(), s.dims()).Strides(); };
    const Ints xs = strides(x), ks = strides(kernel);
    std::function<void(int64_t, llvm::Value*, llvm::Value*, llvm::Value*)> taps =
        [&](int64_t d, llvm::Value* inside, llvm::Value* from, llvm::Value* tap) {
          if (d == spatial) {
            ir.If(inside, [&] {
              ir.Loop(ir.I64(0), ir.I64(in_features), 1, [&](llvm::Value* c) {
                llvm::Value* xo = ir.Add(from, ir.Add(first, c));
                llvm::Value* ko = ir.Add(tap, ir.Add(ir.Mul(c, features), feature));
                put(MultiplyAdd(ir, t, get(), ir.Convert(ir.Load(x.type(), body.operands[0], xo), x.type(), t),
                                ir.Convert(ir.Load(kernel.type(), body.operands[1], ko), kernel.type(), t)));
              });
            });
            return;
          }
          const WindowDim& q = w[static_cast<size_t>(d)];
          ir.Loop(ir.I64(0), ir.I64(q.size), 1, [&](llvm::Value* k) {
            llvm::Value* p = b.CreateSub(
                ir.Add(ir.Mul(at[static_cast<size_t>(d) + 1], q.stride), ir.Mul(k, q.rhs_dilate)), ir.I64(q.pad_low));
            llvm::Value* ok = b.CreateICmpSGE(p, ir.I64(0));
            if (q.lhs_dilate > 1) {
              ok = b.CreateAnd(ok, b.CreateICmpEQ(b.CreateSRem(p, ir.I64(q.lhs_dilate)), ir.I64(0)));
              p = b.CreateSDiv(p, ir.I64(q.lhs_dilate));
            }
            ok = b.CreateAnd(ok, b.CreateICmpSLT(p, ir.I64(x.dim(d + 1))));
            llvm::Value* kk = q.reversed ? b.CreateSub(ir.I64(q.size - 1), k) : k;
            taps(d + 1, b.CreateAnd(inside, ok), ir.Add(from, b.CreateMul(p, ir.I64(xs[static_cast<size_t>(d) + 1]))),
                 ir.Add(tap, ir.Mul(kk, ks[static_cast<size_t>(d)])));
          });
        };
    taps(0, b.getTrue(), b.CreateMul(at[0], ir.I64(xs[0])), ir.I64(0));
    ir.Store(o.type(), ir.Convert(get(), t, o.type()), body.results[0], place);
    return absl::OkStatus();
  });
}

}  // namespace kiln::gpu
