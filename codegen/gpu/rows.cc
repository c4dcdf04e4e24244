// Rows in one kernel: threads of a block walk their row once for each reduction, and once more for the results.
//
// A row is `length` elements that follow one another in every array of rows; how many dimensions an array has does not
// matter. Short rows share a warp, a long one has a block.
#include "codegen/elemental/element.h"
#include "codegen/gpu/cells.h"
#include "codegen/gpu/kernels.h"
#include "codegen/gpu/shares.h"

namespace kiln::gpu {
namespace {

class Rows {
 public:
  Rows(Body& body, const Computation& f)
      : body_(body), ir_(body.ir), b_(body.ir.b), f_(f), outputs_(OutputsOf(f)), elements_(body.ir, body.operands) {}

  absl::Status Run() {
    RETURN_IF_ERROR(Measure());
    ChooseShape();
    thread_ = body_.grid.Thread();
    slot_ = b_.CreateURem(thread_, ir_.I64(per_row_));
    group_ = b_.CreateUDiv(thread_, ir_.I64(per_row_));
    row_ = ir_.Add(ir_.Mul(body_.grid.Block(), at_once_), group_);
    // Threads without a row work on the last one, so that all of a block meet.
    llvm::Value* exists = nullptr;
    if (rows_ % at_once_) {
      exists = b_.CreateICmpULT(row_, ir_.I64(rows_));
      row_ = b_.CreateSelect(exists, row_, ir_.I64(rows_ - 1));
    }
    for (const Instruction* i : f_.PostOrder())
      if (i->Is(Opcode::Reduce)) {
        ASSIGN_OR_RETURN(Val v, Reduce(i));
        elements_.Preset(i, v);
      }
    if (!exists) return Finish();
    // The results may lie where the last row lay, which threads without a row have read.
    body_.grid.Barrier();
    absl::Status status;
    ir_.If(exists, [&] { status = Finish(); });
    return status;
  }

 private:
  absl::Status Measure() {
    for (const auto& i : f_.instructions())
      if (i->Is(Opcode::Reduce)) {
        rows_ = i->shape().ElementCount();
        length_ = i->operand(0)->shape().ElementCount() / rows_;
      }
    if (length_ < 2) return ErrorAt(body_.i, "reduces no rows", absl::StatusCode::kInternal);
    return absl::OkStatus();
  }

  void ChooseShape() {
    constexpr int64_t kMostThreads = 512, kPerThread = 4, kBlock = 128;
    while (2 * per_row_ <= length_ && (per_row_ < kWarp || 2 * per_row_ * kPerThread <= length_) &&
           per_row_ < kMostThreads)
      per_row_ *= 2;
    at_once_ = std::max<int64_t>(1, kBlock / per_row_);
    body_.threads = per_row_ * at_once_;
    body_.blocks = (rows_ + at_once_ - 1) / at_once_;
  }

  // Element `k` of the row, or the row itself, in an array of `s`.
  Index At(const Shape& s, llvm::Value* k) {
    Ints dims = s.dims(), order;
    for (size_t d = 0; d < dims.size(); ++d) order.push_back(static_cast<int64_t>(d));
    if (s.ElementCount() == rows_) return Index{Delinearize(ir_, row_, dims, order), row_};
    llvm::Value* linear = ir_.Add(ir_.Mul(row_, length_), k);
    if (dims.empty() || dims.back() != length_) return Index{Delinearize(ir_, linear, dims, order), linear};
    dims.pop_back();
    order.pop_back();
    Index x{Delinearize(ir_, row_, dims, order), linear};
    x.dims.push_back(k);
    return x;
  }

  // Calls `visit` for the thread's elements of the row but the first `skip`, several at a time; `computed` of each.
  absl::Status EachElement(int64_t skip, const Outputs& computed,
                           const std::function<absl::Status(const std::vector<llvm::Value*>&)>& visit) {
    return EachShare(ir_, slot_, skip, per_row_, length_, SharesTogether(NeededFor(computed)), visit);
  }

  absl::Status Put(size_t output, const Val& v, const Index& x) {
    const Shape& s = outputs_[output]->shape();
    ir_.Store(s.type(), v, body_.results[output], elements_.Offset(s, x));
    return absl::OkStatus();
  }

  // All are computed before any is stored: a result may lie where an operand lay.
  absl::Status StoreAll(const std::vector<size_t>& outputs, const std::vector<llvm::Value*>& elements) {
    std::vector<Val> values;
    std::vector<Index> places;
    for (llvm::Value* k : elements)
      for (size_t o : outputs) {
        places.push_back(At(outputs_[o]->shape(), k));
        ASSIGN_OR_RETURN(Val v, elements_.Emit(outputs_[o], places.back()));
        values.push_back(v);
      }
    for (size_t n = 0; n < values.size(); ++n) RETURN_IF_ERROR(Put(outputs[n % outputs.size()], values[n], places[n]));
    return absl::OkStatus();
  }

  absl::Status Finish() {
    std::vector<size_t> whole, row;
    for (size_t k = 0; k < outputs_.size(); ++k)
      (outputs_[k]->shape().ElementCount() == rows_ ? row : whole).push_back(k);
    Outputs computed;
    for (size_t k : whole) computed.push_back(outputs_[k]);
    if (!whole.empty())
      RETURN_IF_ERROR(EachElement(0, computed, [&](const std::vector<llvm::Value*>& k) { return StoreAll(whole, k); }));
    if (row.empty()) return absl::OkStatus();
    absl::Status status;
    ir_.If(b_.CreateICmpEQ(slot_, ir_.I64(0)), [&] { status = StoreAll(row, {nullptr}); });
    return status;
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
    const Shape& in = i->operand(0)->shape();
    llvm::Type* type = ir_.RegType(t);
    const Cells own(ir_, t, ir_.Alloca(type, Cells::parts(t), 16));
    llvm::Value* only = ir_.I64(0);
    const auto join = [&](const Val& v) -> absl::Status {
      ASSIGN_OR_RETURN(Val r, Combine(i, own.Get(only), v));
      own.Put(only, r);
      return absl::OkStatus();
    };
    const auto reduce = [&](const std::vector<llvm::Value*>& elements, bool begins) -> absl::Status {
      std::vector<Val> values;
      for (llvm::Value* k : elements) {
        ASSIGN_OR_RETURN(Val v, elements_.Emit(i->operand(0), At(in, k)));
        values.push_back(v);
      }
      if (begins) own.Put(only, values[0]);
      for (size_t k = begins ? 1 : 0; k < values.size(); ++k) RETURN_IF_ERROR(join(values[k]));
      return absl::OkStatus();
    };
    // A row has no more threads than elements: each has one to begin with.
    const std::vector<llvm::Value*> first =
        FirstShares(ir_, slot_, per_row_, length_, SharesTogether(NeededFor({i->operand(0)})));
    RETURN_IF_ERROR(reduce(first, true));
    RETURN_IF_ERROR(EachElement(static_cast<int64_t>(first.size()), {i->operand(0)},
                                [&](const std::vector<llvm::Value*>& elements) { return reduce(elements, false); }));
    for (int64_t mask = std::min(kWarp, per_row_) / 2; mask > 0; mask /= 2)
      RETURN_IF_ERROR(join(body_.grid.ShuffleXor(own.Get(only), mask)));
    if (per_row_ > kWarp) RETURN_IF_ERROR(MeetAcrossWarps(t, own, join));
    ASSIGN_OR_RETURN(Val initial, elements_.Emit(i->operand(1), Index{}));
    RETURN_IF_ERROR(join(initial));
    Val out = own.Get(only);
    if (IsFloat(t)) out.re = ir_.Round(t, out.re);
    return out;
  }

  // Every thread adds up the shares of all warps of its row, in one order.
  absl::Status MeetAcrossWarps(PrimitiveType t, const Cells& own, const std::function<absl::Status(const Val&)>& join) {
    const int64_t warps = per_row_ / kWarp;
    llvm::Value* only = ir_.I64(0);
    const Cells shared(ir_, t, body_.grid.Shared(ir_.RegType(t), Cells::parts(t) * warps * at_once_));
    ir_.If(b_.CreateICmpEQ(b_.CreateURem(thread_, ir_.I64(kWarp)), ir_.I64(0)),
           [&] { shared.Put(b_.CreateUDiv(thread_, ir_.I64(kWarp)), own.Get(only)); });
    body_.grid.Barrier();
    llvm::Value* base = ir_.Mul(group_, warps);
    own.Put(only, shared.Get(base));
    absl::Status status;
    ir_.Loop(ir_.I64(1), ir_.I64(warps), 1, [&](llvm::Value* w) {
      if (status.ok()) status = join(shared.Get(ir_.Add(base, w)));
    });
    return status;
  }

  Body& body_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const Computation& f_;
  const Outputs outputs_;
  ElementEmitter elements_;
  int64_t rows_ = 0, length_ = 0;
  int64_t per_row_ = 1, at_once_ = 1;  // threads of a row, rows of a block
  llvm::Value *thread_ = nullptr, *slot_ = nullptr, *group_ = nullptr, *row_ = nullptr;
};

}  // namespace

absl::Status EmitRows(Body& body, const Computation& f) { return Rows(body, f).Run(); }

}  // namespace kiln::gpu
