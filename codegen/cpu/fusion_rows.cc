// Rows that are reduced and then used again (softmax, norms) in one kernel: a unit is a row, which stays in the first
// cache while a loop runs over it for each reduction, and one more for the results.
//
// A row is `length` elements that follow one another in every array of rows; how many dimensions an array has does not
// matter. Transcendental values that several of the loops read are kept in a buffer, others are computed again. The
// loop for the results asks for the next row, a few lines at a time: the loops before it then find that row in the
// cache, where they would wait for memory and it for them.
#include <algorithm>

#include "codegen/cpu/extremes.h"
#include "codegen/cpu/fusion.h"

namespace kiln::cpu {
namespace {

class Rows {
 public:
  explicit Rows(FusionBody& fusion)
      : body_(fusion.body), ir_(fusion.ir), b_(fusion.ir.b), f_(fusion.f), elements_(fusion.elements) {
    const Instruction* root = f_.root();
    outputs_ = root->Is(Opcode::Tuple) ? root->operands() : std::vector<Instruction*>{f_.root()};
  }

  absl::StatusOr<int64_t> Emit() {
    RETURN_IF_ERROR(Measure());
    absl::Status status;
    ir_.Loop(body_.begin, body_.end, 1, [&](llvm::Value* row) {
      row_ = row;
      status = Row();
    });
    RETURN_IF_ERROR(status);
    return rows_;
  }

 private:
  // A loop over the row: of a reduction, or the last one (null).
  struct Pass {
    const Instruction* reduce;
    absl::flat_hash_set<const Instruction*> needed;
  };

  absl::Status Measure() {
    const std::vector<Instruction*> order = f_.PostOrder();
    for (const Instruction* i : order) {
      if (!i->Is(Opcode::Reduce)) continue;
      rows_ = i->shape().ElementCount();
      length_ = i->operand(0)->shape().ElementCount() / rows_;
      passes_.push_back({i, NeededFor({i->operand(0)})});
    }
    if (length_ < 2) return ErrorAt(body_.i, "reduces no rows", absl::StatusCode::kInternal);
    passes_.push_back({nullptr, NeededFor(outputs_)});
    absl::flat_hash_set<const Instruction*> reduced;
    for (const Instruction* i : order) {
      const bool from_reduction = std::any_of(i->operands().begin(), i->operands().end(),
                                              [&](const Instruction* o) { return reduced.contains(o); });
      if (i->Is(Opcode::Reduce) || from_reduction) reduced.insert(i);
      if (from_reduction && !i->Is(Opcode::Reduce) && i->shape().IsArray() && i->shape().ElementCount() == rows_)
        of_row_.push_back(i);
    }
    ChooseKept();
    return absl::OkStatus();
  }

  // What is computed in the same loop as `values`, and the values of the row that it reads.
  static absl::flat_hash_set<const Instruction*> NeededFor(const std::vector<Instruction*>& values) {
    absl::flat_hash_set<const Instruction*> needed;
    std::vector<const Instruction*> work(values.begin(), values.end());
    while (!work.empty()) {
      const Instruction* i = work.back();
      work.pop_back();
      if (!needed.insert(i).second || i->Is(Opcode::Reduce)) continue;
      work.insert(work.end(), i->operands().begin(), i->operands().end());
    }
    return needed;
  }

  void ChooseKept() {
    constexpr int64_t kMostBytes = 128 << 10;
    int64_t bytes = 0;
    for (const Instruction* i : f_.PostOrder()) {
      if (!i->IsElementwise() || !i->HasTrait(Transcendental) || !IsWhole(i->shape()) || IsComplex(i->shape().type()))
        continue;
      const auto readers =
          std::count_if(passes_.begin(), passes_.end(), [&](const Pass& p) { return p.needed.contains(i); });
      const int64_t more = length_ * std::max<int64_t>(4, ByteWidth(i->shape().type()));
      if (readers < 2 || bytes + more > kMostBytes) continue;
      bytes += more;
      kept_.emplace_back(i, Slots(ir_, i->shape().type(), length_));
    }
  }

  bool IsWhole(const Shape& s) const { return s.IsArray() && s.ElementCount() == rows_ * length_; }

  std::vector<llvm::Value*> Delinearize(llvm::Value* linear, const Ints& dims) {
    std::vector<llvm::Value*> at(dims.size());
    for (size_t d = dims.size(); d-- > 0;) {
      // The outermost extent that counts takes what is left.
      const bool first =
          std::all_of(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(d), [](int64_t n) { return n == 1; });
      at[d] = dims[d] == 1 ? ir_.I64(0) : first ? linear : b_.CreateURem(linear, ir_.I64(dims[d]));
      if (dims[d] != 1 && !first) linear = b_.CreateUDiv(linear, ir_.I64(dims[d]));
    }
    return at;
  }

  // Element `k` of the row, or the row itself, in an array of `s`.
  Index At(const Shape& s, llvm::Value* k) {
    if (!IsWhole(s)) return Index{Delinearize(row_, s.dims()), row_};
    llvm::Value* linear = ir_.Add(ir_.Mul(row_, length_), k);
    const int64_t minor = MinorDim(s);
    if (s.rank() == 0 || s.dim(minor) != length_) return Index{Delinearize(linear, s.dims()), linear};
    Index x{Delinearize(row_, Ints(s.dims().begin(), s.dims().begin() + minor)), linear};
    x.dims.push_back(k);
    x.dims.resize(static_cast<size_t>(s.rank()), ir_.I64(0));
    return x;
  }

  absl::Status Row() {
    for (size_t p = 0; p < passes_.size(); ++p) {
      for (const Instruction* i : of_row_) {
        if (!passes_[p].needed.contains(i)) continue;
        ASSIGN_OR_RETURN(Val v, elements_.Emit(i, At(i->shape(), nullptr)));
        elements_.Preset(i, v);
      }
      if (!passes_[p].reduce) break;
      ASSIGN_OR_RETURN(Val v, Reduce(p));
      elements_.Preset(passes_[p].reduce, v);
    }
    return Finish();
  }

  // At element `k` in the loop of pass `p`: kept values are read, or else computed and stored for the loops behind.
  absl::Status Keep(size_t p, llvm::Value* k) {
    for (const auto& [i, slots] : kept_) {
      if (!passes_[p].needed.contains(i)) continue;
      const bool known = std::any_of(passes_.begin(), passes_.begin() + static_cast<ptrdiff_t>(p),
                                     [i](const Pass& q) { return q.needed.contains(i); });
      if (known) {
        elements_.Preset(i, slots.Get(k));
        continue;
      }
      ASSIGN_OR_RETURN(Val v, elements_.Emit(i, At(i->shape(), k)));
      slots.Put(k, v);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Val> Reduce(size_t p) {
    const Instruction* i = passes_[p].reduce;
    const PrimitiveType t = i->shape().type();
    const Computation& f = **i->attrs().to_apply;
    // A plain sum in a narrow float is accumulated unrounded in f32.
    const bool wide = f.root()->Is(Opcode::Add) && IsFloat(t) && InfoOf(t).bits < 32;
    const ExtremeKeys keys(f);
    const Slots sum(ir_, t, 1), highest(ir_, keys.KeyType(), 1), least(ir_, keys.KeyType(), 1);
    llvm::Value* only = ir_.I64(0);
    const auto put = [&](const ExtremeKeys::Pair& p) {
      highest.Put(only, {p.highest});
      least.Put(only, {p.least});
    };
    const auto so_far = [&] { return ExtremeKeys::Pair{highest.Get(only).re, least.Get(only).re}; };
    ASSIGN_OR_RETURN(Val initial, elements_.Emit(i->operand(1), Index{}));
    keys.Apply() ? put(keys.First(ir_, initial)) : sum.Put(only, initial);
    absl::Status status;
    const auto step = [&](llvm::Value* k) {
      const absl::Status one = [&]() -> absl::Status {
        RETURN_IF_ERROR(Keep(p, k));
        ASSIGN_OR_RETURN(Val v, elements_.Emit(i->operand(0), At(i->operand(0)->shape(), k)));
        if (keys.Apply()) {
          put(keys.Next(ir_, so_far(), v));
          return absl::OkStatus();
        }
        AllowReassociation(ir_, true);
        absl::StatusOr<std::vector<Val>> r = std::vector<Val>();
        if (wide)
          r->push_back(Val{b_.CreateFAdd(sum.Get(only).re, v.re)});
        else
          r = elements_.Apply(f, {sum.Get(only), v});
        AllowReassociation(ir_, false);
        RETURN_IF_ERROR(r.status());
        sum.Put(only, (*r)[0]);
        return absl::OkStatus();
      }();
      status.Update(one);
    };
    ir_.VectorLoop(length_, step, false);
    RETURN_IF_ERROR(status);
    Val out = keys.Apply() ? keys.Result(ir_, so_far()) : sum.Get(only);
    if (IsFloat(t)) out.re = ir_.Round(t, out.re);
    return out;
  }

  absl::Status Finish() {
    std::vector<size_t> whole, row;
    absl::Status status;
    for (size_t o = 0; o < outputs_.size(); ++o) (IsWhole(outputs_[o]->shape()) ? whole : row).push_back(o);
    if (!whole.empty())
      ForResults([&](llvm::Value* k) {
        const absl::Status kept = Keep(passes_.size() - 1, k);
        status.Update(kept.ok() ? StoreAll(whole, k) : kept);
      });
    RETURN_IF_ERROR(status);
    return StoreAll(row, nullptr);
  }

  // A loop over the row whose steps do not depend on each other. Only where vectors are long does it ask for the next
  // row: that is more code, which archives hold for every level.
  void ForResults(const std::function<void(llvm::Value*)>& step) {
    constexpr int64_t kTogether = 256, kLongest = 4096;  // elements
    const bool fetches = ir_.level.vector_bytes == 64 && length_ >= kTogether && length_ <= kLongest;
    if (!fetches) return ir_.VectorLoop(length_, step, true);
    const auto part = [&](llvm::Value* first, int64_t count) {
      FetchOfNextRow(first, count);
      ir_.VectorLoop(
          count, [&](llvm::Value* k) { step(ir_.Add(first, k)); }, true);
    };
    const int64_t whole = length_ / kTogether * kTogether;
    ir_.Loop(ir_.I64(0), ir_.I64(whole), kTogether, [&](llvm::Value* first) { part(first, kTogether); });
    if (whole < length_) part(ir_.I64(whole), length_ - whole);
  }

  // Asks for `count` elements from `first` on of the next row of every operand; behind the last row of all that does
  // no harm.
  void FetchOfNextRow(llvm::Value* first, int64_t count) {
    constexpr int64_t kLine = 64;
    llvm::Type* byte = b_.getInt8Ty();
    for (int64_t o = 0; o < body_.i->operand_count(); ++o) {
      const Shape& s = body_.i->operand(o)->shape();
      if (!IsWhole(s)) continue;
      llvm::Value* at = ir_.Add(ir_.Mul(ir_.Add(row_, ir_.I64(1)), length_), first);
      llvm::Value* from = b_.CreateGEP(byte, body_.operands[static_cast<size_t>(o)], ir_.Mul(at, ByteWidth(s.type())));
      for (int64_t k = 0; k < count * ByteWidth(s.type()); k += kLine)
        ir_.Prefetch(b_.CreateGEP(byte, from, ir_.I64(k)), Ir::Cache::kFirst);
    }
  }

  // All are computed before any is stored: a result may lie where an operand lay.
  absl::Status StoreAll(const std::vector<size_t>& outputs, llvm::Value* k) {
    std::vector<Val> values;
    for (const size_t o : outputs) {
      ASSIGN_OR_RETURN(Val v, elements_.Emit(outputs_[o], At(outputs_[o]->shape(), k)));
      values.push_back(v);
    }
    for (size_t n = 0; n < outputs.size(); ++n) {
      const Shape& s = outputs_[outputs[n]]->shape();
      ir_.Store(s.type(), values[n], body_.results[outputs[n]], elements_.Offset(s, At(s, k)));
    }
    return absl::OkStatus();
  }

  Body& body_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const Computation& f_;
  ElementEmitter& elements_;
  std::vector<Instruction*> outputs_;
  int64_t rows_ = 0, length_ = 0;
  std::vector<Pass> passes_;
  std::vector<const Instruction*> of_row_;  // computed once a row, from its reductions
  std::vector<std::pair<const Instruction*, Slots>> kept_;
  llvm::Value* row_ = nullptr;
};

}  // namespace

absl::StatusOr<int64_t> EmitRows(FusionBody& fusion) { return Rows(fusion).Emit(); }

}  // namespace kiln::cpu
