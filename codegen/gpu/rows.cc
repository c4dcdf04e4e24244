// Rows in one kernel: a block walks its row once for each reduction, and once more for the result.
#include "codegen/elemental/element.h"
#include "codegen/gpu/cells.h"
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
    llvm::Type* type = ir_.RegType(t);
    const Cells slot(ir_, t, ir_.Alloca(type, Cells::parts(t), 16));
    llvm::Value* only = ir_.I64(0);
    absl::Status status;
    const auto join = [&](const Val& v) {
      auto r = Combine(i, slot.Get(only), v);
      if (r.ok())
        slot.Put(only, *r);
      else
        status = r.status();
    };
    // A block has no more threads than its row has elements: each has one to begin with.
    ASSIGN_OR_RETURN(Val first, elements_.Emit(i->operand(0), At(thread_)));
    slot.Put(only, first);
    ir_.Loop(ir_.Add(thread_, ir_.I64(body_.threads)), ir_.I64(length_), body_.threads, [&](llvm::Value* k) {
      auto v = elements_.Emit(i->operand(0), At(k));
      if (v.ok())
        join(*v);
      else
        status = v.status();
    });
    RETURN_IF_ERROR(status);
    for (int64_t mask = kWarp / 2; mask > 0; mask /= 2) join(body_.grid.ShuffleXor(slot.Get(only), mask));
    RETURN_IF_ERROR(status);
    const int64_t warps = body_.threads / kWarp;
    if (warps > 1) {
      const Cells shared(ir_, t, body_.grid.Shared(type, Cells::parts(t) * warps));
      ir_.If(b_.CreateICmpEQ(b_.CreateURem(thread_, ir_.I64(kWarp)), ir_.I64(0)),
             [&] { shared.Put(b_.CreateUDiv(thread_, ir_.I64(kWarp)), slot.Get(only)); });
      body_.grid.Barrier();
      // Every thread adds up all warps' shares, in one order.
      slot.Put(only, shared.Get(only));
      ir_.Loop(ir_.I64(1), ir_.I64(warps), 1, [&](llvm::Value* w) { join(shared.Get(w)); });
    }
    ASSIGN_OR_RETURN(Val initial, elements_.Emit(i->operand(1), Index{}));
    join(initial);
    RETURN_IF_ERROR(status);
    Val out = slot.Get(only);
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
