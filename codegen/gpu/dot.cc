// Products of matrices of any type, tile by tile through shared memory: for what no library takes.
#include "codegen/elemental/element.h"
#include "codegen/gpu/kernels.h"

namespace kiln::gpu {
namespace {

constexpr int64_t kTile = 16;

// Narrow floats are summed in f32.
PrimitiveType SumType(PrimitiveType result) {
  return IsFloat(result) && result != PrimitiveType::F64 ? PrimitiveType::F32 : result;
}

// A product, where its operands' elements come from and where its results go.
struct Product {
  const Instruction* dot;
  std::function<absl::StatusOr<Val>(const Index&)> a, b;  // elements, of the operands' types
  std::function<absl::Status(const Index&, const Val&)> store;
};

absl::Status EmitProduct(Body& body, const Product& p) {
  Ir& ir = body.ir;
  llvm::IRBuilder<>& b = ir.b;
  const Instruction* i = p.dot;
  const Shape &l = i->operand(0)->shape(), &r = i->operand(1)->shape(), &o = i->shape();
  const auto contracts_one = [](const std::optional<Ints>& dims) { return dims && dims->size() == 1; };
  if (l.rank() != 3 || r.rank() != 3 || o.rank() != 3 || !contracts_one(i->attrs().lhs_contracting_dims) ||
      !contracts_one(i->attrs().rhs_contracting_dims))
    return ErrorAt(i, "is not a product of two batched matrices, which dot-decomposer makes of every dot",
                   absl::StatusCode::kInternal);
  if (o.ElementCount() == 0) return absl::OkStatus();
  const int64_t m = o.dim(1), n = o.dim(2);
  const bool a_kfirst = (*i->attrs().lhs_contracting_dims)[0] == 1,
             b_kfirst = (*i->attrs().rhs_contracting_dims)[0] == 1;
  const int64_t k = l.dim(a_kfirst ? 1 : 2);
  const PrimitiveType t = SumType(o.type());
  const int64_t parts = IsComplex(t) ? 2 : 1, row_tiles = (m + kTile - 1) / kTile, col_tiles = (n + kTile - 1) / kTile;
  body.threads = kTile * kTile;
  body.blocks = o.dim(0) * row_tiles * col_tiles;
  const std::vector<llvm::Value*> at = Delinearize(ir, body.grid.Block(), {o.dim(0), row_tiles, col_tiles}, {0, 1, 2});
  llvm::Value* x = b.CreateURem(body.grid.Thread(), ir.I64(kTile));
  llvm::Value* y = b.CreateUDiv(body.grid.Thread(), ir.I64(kTile));
  llvm::Type* held = ir.MemType(t);
  llvm::Value* tile_a = body.grid.Shared(held, parts * kTile * kTile);
  llvm::Value* tile_b = body.grid.Shared(held, parts * kTile * kTile);
  llvm::Value *row = ir.Add(ir.Mul(at[1], kTile), y), *col = ir.Add(ir.Mul(at[2], kTile), x);
  llvm::Value* sum = ir.Alloca(ir.RegType(t), parts, 16);
  const auto get = [&]() -> Val {
    Val v{b.CreateLoad(ir.RegType(t), sum)};
    if (IsComplex(t)) v.im = b.CreateLoad(ir.RegType(t), b.CreateInBoundsGEP(ir.RegType(t), sum, ir.I64(1)));
    return v;
  };
  const auto put = [&](const Val& v) {
    b.CreateStore(v.re, sum);
    if (v.im) b.CreateStore(v.im, b.CreateInBoundsGEP(ir.RegType(t), sum, ir.I64(1)));
  };
  absl::Status status;
  // One element of an operand, or zero past its end, to this thread's place in a tile.
  const auto fill = [&](llvm::Value* tile, const auto& element, PrimitiveType from, llvm::Value* major, int64_t majors,
                        llvm::Value* depth, bool depth_first) {
    llvm::Value* place = ir.Add(ir.Mul(y, kTile), x);
    ir.Store(t, ir.Constant(t, Element{}), tile, place);
    llvm::Value* inside = b.CreateAnd(b.CreateICmpULT(major, ir.I64(majors)), b.CreateICmpULT(depth, ir.I64(k)));
    ir.If(inside, [&] {
      const Index where{depth_first ? std::vector<llvm::Value*>{at[0], depth, major}
                                    : std::vector<llvm::Value*>{at[0], major, depth}};
      auto v = element(where);
      if (v.ok())
        ir.Store(t, ir.Convert(*v, from, t), tile, place);
      else
        status = v.status();
    });
  };
  put(ir.Constant(t, Element{}));
  ir.Loop(ir.I64(0), ir.I64(k), kTile, [&](llvm::Value* k0) {
    fill(tile_a, p.a, l.type(), row, m, ir.Add(k0, x), a_kfirst);
    fill(tile_b, p.b, r.type(), col, n, ir.Add(k0, y), b_kfirst);
    body.grid.Barrier();
    ir.Loop(ir.I64(0), ir.I64(kTile), 1, [&](llvm::Value* q) {
      put(MultiplyAdd(ir, t, get(), ir.Load(t, tile_a, ir.Add(ir.Mul(y, kTile), q)),
                      ir.Load(t, tile_b, ir.Add(ir.Mul(q, kTile), x))));
    });
    body.grid.Barrier();
  });
  RETURN_IF_ERROR(status);
  ir.If(b.CreateAnd(b.CreateICmpULT(row, ir.I64(m)), b.CreateICmpULT(col, ir.I64(n))), [&] {
    Val v = ir.Convert(get(), t, o.type());
    status = p.store(Index{{at[0], row, col}}, v);
  });
  return status;
}

}  // namespace

absl::Status EmitDot(Body& body) {
  ElementEmitter elements(body.ir, body.operands);
  const auto operand = [&](int64_t k) {
    return [&body, &elements, k](const Index& at) -> absl::StatusOr<Val> {
      const Shape& s = body.i->operand(k)->shape();
      return body.ir.Load(s.type(), body.operands[static_cast<size_t>(k)], elements.Offset(s, at));
    };
  };
  return EmitProduct(body, {body.i, operand(0), operand(1), [&](const Index& at, const Val& v) {
                              const Shape& o = body.i->shape();
                              body.ir.Store(o.type(), v, body.results[0], elements.Offset(o, at));
                              return absl::OkStatus();
                            }});
}

absl::Status EmitProductFusion(Body& body, const Computation& f) {
  const Instruction* dot = nullptr;
  for (const auto& i : f.instructions())
    if (i->Is(Opcode::Dot)) dot = i.get();
  if (!dot) return ErrorAt(body.i, "is a fusion around no product", absl::StatusCode::kInternal);
  ElementEmitter elements(body.ir, body.operands);
  const auto operand = [&](int64_t k) {
    return [&elements, dot, k](const Index& at) { return elements.Emit(dot->operand(k), at); };
  };
  return EmitProduct(body, {dot, operand(0), operand(1), [&](const Index& at, const Val& v) -> absl::Status {
                              elements.Preset(dot, v);
                              // The result may be seen with other extents than the product's.
                              const Shape &o = f.root()->shape(), &p = dot->shape();
                              Index to = at;
                              if (o.dims() != p.dims())
                                to.dims = Delinearize(body.ir, elements.Offset(p, at), o.dims(), MemoryOrder(o));
                              ASSIGN_OR_RETURN(Val out, elements.Emit(f.root(), to));
                              body.ir.Store(o.type(), out, body.results[0], elements.Offset(o, to));
                              return absl::OkStatus();
                            }});
}

// A thread for each output, in NHWC order as convolution-canonicalization leaves it.
absl::Status EmitConvolution(Body& body) {
  Ir& ir = body.ir;
  llvm::IRBuilder<>& b = ir.b;
  const Instruction* i = body.i;
  const Shape &x = i->operand(0)->shape(), &kernel = i->operand(1)->shape(), &o = i->shape();
  const int64_t spatial = x.rank() - 2, groups = i->attrs().feature_group_count.value_or(1);
  const int64_t in_features = kernel.dim(spatial), features = kernel.dim(spatial + 1);
  const attr::Win w = i->attrs().window.value_or(attr::Win(static_cast<size_t>(spatial)));
  const PrimitiveType t = SumType(o.type());
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
