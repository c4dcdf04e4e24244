// Reductions over what lies around dimensions that stay: [5, 1210, 8] to [1210].
//
// One result after the other would read a few elements here and there. Rows of accumulators, one for each element of
// the innermost dimensions, take whole lines of memory at a time; what is left of a row is reduced at the end.
#include <algorithm>
#include <optional>

#include "codegen/cpu/extremes.h"
#include "codegen/cpu/fusion.h"
#include "codegen/cpu/reduce_form.h"
#include "codegen/elemental/reduced.h"

namespace kiln::cpu {
namespace {

class ReductionAround {
 public:
  ReductionAround(FusionBody& fusion, const Instruction* reduce, const Around& form)
      : body_(fusion.body),
        ir_(fusion.ir),
        elements_(fusion.elements),
        reduce_(reduce),
        form_(form),
        in_(reduce->operand(0)->shape()),
        keys_(**reduce->attrs().to_apply),
        at_(static_cast<size_t>(in_.rank()), fusion.ir.I64(0)) {
    for (const int64_t d : form.inner) length_ *= in_.dim(d);
    rows_ = std::min(in_.dim(form.rows), std::max<int64_t>(1, kAccumulators / length_));
    sums_ = std::make_unique<Slots>(ir_, keys_.Apply() ? keys_.KeyType() : in_.type(), rows_ * length_);
  }

  absl::StatusOr<int64_t> Emit() {
    ASSIGN_OR_RETURN(init_, elements_.Emit(reduce_->operand(1), Index{}));
    const int64_t strips = (in_.dim(form_.rows) + rows_ - 1) / rows_;
    const auto strip = [&](llvm::Value* s) { Strip(ir_.Mul(s, rows_)); };
    if (form_.kept.empty()) {
      ir_.Loop(body_.begin, body_.end, 1, strip);
    } else {
      ir_.Loop(body_.begin, body_.end, 1, [&](llvm::Value* i) {
        At(form_.kept[0]) = i;
        Nest(form_.kept, 1, nullptr, [&](llvm::Value*) { ir_.Loop(ir_.I64(0), ir_.I64(strips), 1, strip); });
      });
    }
    RETURN_IF_ERROR(status_);
    return form_.kept.empty() ? strips : in_.dim(form_.kept[0]);
  }

 private:
  static constexpr int64_t kAccumulators = 1024;

  llvm::Value*& At(int64_t d) { return at_[static_cast<size_t>(d)]; }

  // Loops over dimensions from the `k`-th of `dims` on; `start`, if there is one, becomes whether all are at their
  // start.
  void Nest(const Ints& dims, size_t k, llvm::Value* start, const std::function<void(llvm::Value*)>& body) {
    if (k == dims.size()) return body(start);
    ir_.Loop(ir_.I64(0), ir_.I64(in_.dim(dims[k])), 1, [&](llvm::Value* i) {
      At(dims[k]) = i;
      Nest(dims, k + 1, start ? ir_.b.CreateAnd(start, ir_.b.CreateICmpEQ(i, ir_.I64(0))) : nullptr, body);
    });
  }

  // The elements of one row, which are neighbours, with their numbers.
  void Row(size_t k, llvm::Value* number, const std::function<void(llvm::Value*)>& element) {
    const int64_t d = form_.inner[k];
    const auto step = [&](llvm::Value* i) {
      At(d) = i;
      llvm::Value* next = ir_.Add(ir_.Mul(number, in_.dim(d)), i);
      k + 1 == form_.inner.size() ? element(next) : Row(k + 1, next, element);
    };
    if (k + 1 == form_.inner.size())
      ir_.VectorLoop(in_.dim(d), step, true);
    else
      ir_.Loop(ir_.I64(0), ir_.I64(in_.dim(d)), 1, step);
  }

  void Strip(llvm::Value* from) {
    llvm::Value* count = ir_.I64(rows_);
    if (in_.dim(form_.rows) % rows_)
      count = ir_.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, count,
                                          ir_.b.CreateSub(ir_.I64(in_.dim(form_.rows)), from));
    const auto rows = [&](const std::function<void(llvm::Value*)>& row) {
      ir_.Loop(ir_.I64(0), count, 1, [&](llvm::Value* r) {
        At(form_.rows) = ir_.Add(from, r);
        row(r);
      });
    };
    const auto elements = [&](bool first) {
      rows([&](llvm::Value* r) { Row(0, r, [&](llvm::Value* slot) { Take(slot, first); }); });
    };
    Nest(form_.outer, 0, ir_.b.getTrue(), [&](llvm::Value* start) {
      ir_.If(start, [&] { elements(true); });
      ir_.If(ir_.b.CreateNot(start), [&] { elements(false); });
    });
    rows([&](llvm::Value* r) { Finish(r); });
  }

  void Take(llvm::Value* slot, bool first) {
    if (!status_.ok()) return;
    const auto v = elements_.Emit(reduce_->operand(0), IndexIn(in_, at_));
    if (!v.ok()) return status_.Update(v.status());
    const Val x = keys_.Apply() ? keys_.Encode(ir_, *v) : *v;
    sums_->Put(slot, first ? x : Combined(sums_->Get(slot), x));
  }

  void Finish(llvm::Value* row) {
    Val all = keys_.Apply() ? keys_.Encode(ir_, init_) : init_;
    for (int64_t k = 0; k < length_; ++k) all = Combined(all, sums_->Get(ir_.Add(ir_.Mul(row, length_), ir_.I64(k))));
    if (!status_.ok()) return;
    std::vector<llvm::Value*> at;
    for (int64_t d = 0; d < in_.rank(); ++d)
      if (!std::count(reduce_->attrs().dimensions->begin(), reduce_->attrs().dimensions->end(), d)) at.push_back(At(d));
    const Shape& out = reduce_->shape();
    ir_.Store(out.type(), keys_.Apply() ? keys_.Decode(ir_, all) : all, body_.results[0],
              elements_.Offset(out, IndexIn(out, at)));
  }

  Val Combined(const Val& a, const Val& b) {
    if (keys_.Apply()) return keys_.Combine(ir_, a, b);
    const auto r = kiln::Combine(elements_, reduce_, {a, b});
    if (r.ok()) return (*r)[0];
    status_.Update(r.status());
    return a;
  }

  Body& body_;
  Ir& ir_;
  ElementEmitter& elements_;
  const Instruction* reduce_;
  const Around& form_;
  const Shape& in_;
  const ExtremeKeys keys_;
  int64_t length_ = 1, rows_ = 1;  // elements of a row, rows of a strip
  std::unique_ptr<Slots> sums_;
  Val init_;
  std::vector<llvm::Value*> at_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<int64_t> EmitReduceAround(FusionBody& fusion, const Instruction* reduce, const Around& form) {
  return ReductionAround(fusion, reduce, form).Emit();
}

}  // namespace kiln::cpu
