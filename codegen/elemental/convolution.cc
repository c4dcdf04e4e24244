#include "codegen/elemental/convolution.h"

namespace kiln {

absl::StatusOr<Val> EmitConvolutionAt(Ir& ir, const Instruction* i, const std::vector<llvm::Value*>& at,
                                      const ReadOperand& read) {
  llvm::IRBuilder<>& b = ir.b;
  const Shape &x = i->operand(0)->shape(), &kernel = i->operand(1)->shape(), &o = i->shape();
  const int64_t spatial = x.rank() - 2, groups = i->attrs().feature_group_count.value_or(1);
  const int64_t in_features = kernel.dim(spatial), features = kernel.dim(spatial + 1);
  const attr::Win w = i->attrs().window.value_or(attr::Win(static_cast<size_t>(spatial)));
  const PrimitiveType t =
      IsFloat(o.type()) && o.type() != PrimitiveType::F64 ? PrimitiveType::F32 : o.type();  // sums of narrow floats
  llvm::Value* feature = at[static_cast<size_t>(spatial) + 1];
  llvm::Value* first = groups == 1 ? ir.I64(0) : ir.Mul(b.CreateUDiv(feature, ir.I64(features / groups)), in_features);
  llvm::Value* sum = ir.Alloca(ir.RegType(t), IsComplex(t) ? 2 : 1, 16);
  const auto part = [&] { return b.CreateInBoundsGEP(ir.RegType(t), sum, ir.I64(1)); };
  const auto get = [&]() -> Val {
    return {b.CreateLoad(ir.RegType(t), sum), IsComplex(t) ? b.CreateLoad(ir.RegType(t), part()) : nullptr};
  };
  const auto put = [&](const Val& v) {
    b.CreateStore(v.re, sum);
    if (v.im) b.CreateStore(v.im, part());
  };
  put(ir.Constant(t, Element{}));
  absl::Status status;
  Index from{std::vector<llvm::Value*>(static_cast<size_t>(spatial) + 2)}, tap = from;
  from.dims[0] = at[0];
  tap.dims[static_cast<size_t>(spatial) + 1] = feature;
  const auto add = [&](llvm::Value* c) {
    from.dims[static_cast<size_t>(spatial) + 1] = ir.Add(first, c);
    tap.dims[static_cast<size_t>(spatial)] = c;
    const absl::StatusOr<Val> a = read(0, from), k = a.ok() ? read(1, tap) : a;
    if (!k.ok()) {
      status = k.status();
      return;
    }
    put(MultiplyAdd(ir, t, get(), ir.Convert(*a, x.type(), t), ir.Convert(*k, kernel.type(), t)));
  };
  const std::function<void(int64_t, llvm::Value*)> taps = [&](int64_t d, llvm::Value* inside) {
    if (!status.ok()) return;
    if (d == spatial) {
      ir.If(inside, [&] { ir.Loop(ir.I64(0), ir.I64(in_features), 1, add); });
      return;
    }
    const WindowDim& q = w[static_cast<size_t>(d)];
    ir.Loop(ir.I64(0), ir.I64(q.size), 1, [&](llvm::Value* k) {
      llvm::Value* p = b.CreateSub(ir.Add(ir.Mul(at[static_cast<size_t>(d) + 1], q.stride), ir.Mul(k, q.rhs_dilate)),
                                   ir.I64(q.pad_low));
      llvm::Value* ok = b.CreateICmpSGE(p, ir.I64(0));
      if (q.lhs_dilate > 1) {
        ok = b.CreateAnd(ok, b.CreateICmpEQ(b.CreateSRem(p, ir.I64(q.lhs_dilate)), ir.I64(0)));
        p = b.CreateSDiv(p, ir.I64(q.lhs_dilate));
      }
      ok = b.CreateAnd(ok, b.CreateICmpSLT(p, ir.I64(x.dim(d + 1))));
      from.dims[static_cast<size_t>(d) + 1] = p;
      tap.dims[static_cast<size_t>(d)] = q.reversed ? b.CreateSub(ir.I64(q.size - 1), k) : k;
      taps(d + 1, b.CreateAnd(inside, ok));
    });
  };
  taps(0, b.getTrue());
  RETURN_IF_ERROR(status);
  return ir.Convert(get(), t, o.type());
}

}  // namespace kiln
