// Rows in one kernel: a block walks its row once for each reduction, and once more for the result.
#include "codegen/elemental/element.h"
#include "codegen/gpu/kernels.h"

namespace kiln::gpu {
namespace {

class Rows {
 public:
  Rows(Body& body, const Computation& f)
      : body_(body), ir_(body.ir), b_(body.ir.b), f_(f), elements_(body.ir, body.operands) {}

  absl::Status Run() {
    const Shape& s = f_.root()->shape();
    length_ = s.dims().back();
    const int64_t rows = s.ElementCount() / length_;
    constexpr int64_t kMostThreads = 512, kPerThread = 4;
    body_.threads = kWarp;
    while (body_.threads < kMostThreads && 2 * body_.threads * kPerThread <= length_) body_.threads *= 2;
    body_.blocks = rows;
    thread_ = body_.grid.Thread();
    Ints leading(s.dims().begin(), s.dims().end() - 1), order;
    for (size_t d = 0; d < leading.size(); ++d) order.push_back(static_cast<int64_t>(d));
    row_ = Delinearize(ir_, body_.grid.Block(), leading, order);
    for (const Instruction* i : f_.PostOrder())
      if (i->Is(Opcode::Reduce)) {
        ASSIGN_OR_RETURN(Val v, Reduce(i));
        elements_.Preset(i, v);
      }
    absl::Status status;
    ir_.Loop(thread_, ir_.I64(length_), body_.threads, [&](llvm::Value* k) {
      const Index x = At(k);
      auto v = elements_.Emit(f_.root(), x);
      if (v.ok())
        ir_.Store(s.type(), *v, body_.results[0], elements_.Offset(s, x));
      else
        status = v.status();
    });
    return status;
  }

 private:
  Index At(llvm::Value* k) const {
    Index x{row_};
    x.dims.push_back(k);
    return x;
  }

  // One operation of the reducer; a plain sum of narrow floats stays in f32 until the end.
  absl::StatusOr<Val> Combine(const Instruction* reduce, const Val& x, const Val& y) {
    const Computation& f = **reduce->attrs().to_apply;
    if (f.root()->Is(Opcode::Add) && IsFloat(reduce->shape().type())) return Val{b_.CreateFAdd(x.re, y.re)};
    ASSIGN_OR_RETURN(std::vector<Val> r, elements_.Apply(f, {x, y}));
    return r[0];
  }

  absl::StatusOr<Val> Reduce(const Instruction* i) {
    const PrimitiveType t = i->shape().type();
    const int64_t parts = IsComplex(t) ? 2 : 1;
    llvm::Type* type = ir_.RegType(t);
    llvm::Value* slot = ir_.Alloca(type, parts, 16);
    const auto get = [&](llvm::Value* from, llvm::Value* at) -> Val {
      llvm::Value* e = ir_.Mul(at, parts);
      Val v{b_.CreateLoad(type, b_.CreateInBoundsGEP(type, from, e))};
      if (parts == 2) v.im = b_.CreateLoad(type, b_.CreateInBoundsGEP(type, from, ir_.Add(e, ir_.I64(1))));
      return v;
    };
    const auto put = [&](llvm::Value* to, llvm::Value* at, const Val& v) {
      llvm::Value* e = ir_.Mul(at, parts);
      b_.CreateStore(v.re, b_.CreateInBoundsGEP(type, to, e));
      if (v.im) b_.CreateStore(v.im, b_.CreateInBoundsGEP(type, to, ir_.Add(e, ir_.I64(1))));
    };
    absl::Status status;
    const auto join = [&](const Val& v) {
      auto r = Combine(i, get(slot, ir_.I64(0)), v);
      if (r.ok())
        put(slot, ir_.I64(0), *r);
      else
        status = r.status();
    };
    // A block has no more threads than its row has elements: each has one to begin with.
    ASSIGN_OR_RETURN(Val first, elements_.Emit(i->operand(0), At(thread_)));
    put(slot, ir_.I64(0), first);
    ir_.Loop(ir_.Add(thread_, ir_.I64(body_.threads)), ir_.I64(length_), body_.threads, [&](llvm::Value* k) {
      auto v = elements_.Emit(i->operand(0), At(k));
      if (v.ok())
        join(*v);
      else
        status = v.status();
    });
    RETURN_IF_ERROR(status);
    for (int64_t mask = kWarp / 2; mask > 0; mask /= 2) join(body_.grid.ShuffleXor(get(slot, ir_.I64(0)), mask));
    RETURN_IF_ERROR(status);
    const int64_t warps = body_.threads / kWarp;
    if (warps > 1) {
      llvm::Value* shared = body_.grid.Shared(type, parts * warps);
      ir_.If(b_.CreateICmpEQ(b_.CreateURem(thread_, ir_.I64(kWarp)), ir_.I64(0)),
             [&] { put(shared, b_.CreateUDiv(thread_, ir_.I64(kWarp)), get(slot, ir_.I64(0))); });
      body_.grid.Barrier();
      // Every thread adds up all warps' shares, in one order.
      put(slot, ir_.I64(0), get(shared, ir_.I64(0)));
      ir_.Loop(ir_.I64(1), ir_.I64(warps), 1, [&](llvm::Value* w) { join(get(shared, w)); });
    }
    ASSIGN_OR_RETURN(Val initial, elements_.Emit(i->operand(1), Index{}));
    join(initial);
    RETURN_IF_ERROR(status);
    Val out = get(slot, ir_.I64(0));
    if (IsFloat(t)) out.re = ir_.Round(t, out.re);
    return out;
  }

  Body& body_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const Computation& f_;
  ElementEmitter elements_;
  int64_t length_ = 0;
  llvm::Value* thread_ = nullptr;
  std::vector<llvm::Value*> row_;
};

}  // namespace

absl::Status EmitRows(Body& body, const Computation& f) { return Rows(body, f).Run(); }

}  // namespace kiln::gpu
