// Rows that are reduced and then used again (softmax, norms) in one kernel: a unit is a row, which stays in the first
// cache while a loop runs over it for each reduction, and one more for the results.
//
// A row is `length` elements that follow one another in every array of rows; how many dimensions an array has does not
// matter. Transcendental values that several of the loops read are kept in a buffer, others are computed again. The
// loop for the results asks for the next row, a few lines at a time: the loops before it then find that row in the
// cache, where they would wait for memory and it for them.
#include <optional>

#include "codegen/cpu/past_caches.h"
#include "codegen/cpu/row_passes.h"

namespace kiln::cpu {
namespace {

class Rows {
 public:
  explicit Rows(FusionBody& fusion)
      : fusion_(fusion), body_(fusion.body), ir_(fusion.ir), b_(fusion.ir.b), elements_(fusion.elements) {}

  absl::StatusOr<int64_t> Emit() {
    ASSIGN_OR_RETURN(plan_, RowPasses::Of(fusion_, /*together=*/false));
    plan_.KeepInBuffers(fusion_, plan_.length);
    past_.emplace(fusion_, plan_.outputs, plan_.length);
    absl::Status status;
    ir_.Loop(body_.begin, body_.end, 1, [&](llvm::Value* row) {
      row_ = row;
      status = Row();
    });
    RETURN_IF_ERROR(status);
    return plan_.rows;
  }

 private:
  // Element `k` of the row, or the row itself, in an array of `s`.
  Index At(const Shape& s, llvm::Value* k) {
    if (!plan_.IsWhole(s)) return Index{Delinearize(ir_, row_, s.dims()), row_};
    llvm::Value* linear = ir_.Add(ir_.Mul(row_, plan_.length), k);
    const int64_t minor = MinorDim(s);
    if (s.rank() == 0 || s.dim(minor) != plan_.length) return Index{Delinearize(ir_, linear, s.dims()), linear};
    Index x{Delinearize(ir_, row_, Ints(s.dims().begin(), s.dims().begin() + minor)), linear};
    x.dims.push_back(k);
    x.dims.resize(static_cast<size_t>(s.rank()), ir_.I64(0));
    return x;
  }

  absl::Status Row() {
    for (size_t p = 0; p < plan_.passes.size(); ++p) {
      for (const Instruction* i : plan_.of_row) {
        if (!plan_.passes[p].needed.contains(i)) continue;
        ASSIGN_OR_RETURN(Val v, elements_.Emit(i, At(i->shape(), nullptr)));
        elements_.Preset(i, v);
      }
      if (plan_.passes[p].reduces.empty()) break;
      ASSIGN_OR_RETURN(Val v, Reduce(p));
      elements_.Preset(plan_.passes[p].reduces[0], v);
    }
    return Finish();
  }

  absl::Status UseKept(size_t p, llvm::Value* k) {
    return plan_.UseKept(
        fusion_, p, [&](const Shape& s) { return At(s, k); }, k);
  }

  absl::Status Store(bool whole, llvm::Value* k) {
    return plan_.StoreOutputs(fusion_, whole, [&](const Shape& s) { return At(s, k); });
  }

  absl::StatusOr<Val> Reduce(size_t p) {
    const Instruction* i = plan_.passes[p].reduces[0];
    const RowSums sums(ir_, elements_, i, 1);
    llvm::Value* only = ir_.I64(0);
    RETURN_IF_ERROR(sums.Begin(only));
    absl::Status status;
    const auto step = [&](llvm::Value* k) {
      const absl::Status kept = UseKept(p, k);
      status.Update(kept.ok() ? sums.Add(only, At(i->operand(0)->shape(), k)) : kept);
    };
    ir_.VectorLoop(plan_.length, step, false);
    RETURN_IF_ERROR(status);
    return sums.Result(only);
  }

  absl::Status Finish() {
    absl::Status status;
    if (plan_.HasOutputs(/*whole=*/true))
      ForResults([&](llvm::Value* k) {
        const absl::Status kept = UseKept(plan_.passes.size() - 1, k);
        status.Update(kept.ok() ? Store(/*whole=*/true, k) : kept);
      });
    RETURN_IF_ERROR(status);
    return Store(/*whole=*/false, nullptr);
  }

  // A loop over the row whose steps do not depend on each other. Only where vectors are long does it ask for the next
  // row: that is more code, which archives hold for every level.
  void ForResults(const std::function<void(llvm::Value*)>& step) {
    constexpr int64_t kTogether = PastCaches::kPiece, kLongest = 4096;  // elements
    const bool fetches = ir_.level.vector_bytes == 64 && plan_.length >= kTogether && plan_.length <= kLongest;
    if (!fetches) return ir_.VectorLoop(plan_.length, step, true);
    const auto parts = [&](bool past) {
      const auto part = [&](llvm::Value* first, int64_t count) {
        FetchOfNextRow(first, count);
        const auto element = [&](llvm::Value* k) { step(ir_.Add(first, k)); };
        past ? past_->Piece(ir_.Add(ir_.Mul(row_, plan_.length), first), count, element)
             : ir_.VectorLoop(count, element, true);
      };
      const int64_t whole = plan_.length / kTogether * kTogether;
      ir_.Loop(ir_.I64(0), ir_.I64(whole), kTogether, [&](llvm::Value* first) { part(first, kTogether); });
      if (whole < plan_.length) part(ir_.I64(whole), plan_.length - whole);
    };
    past_->Apply() ? past_->Emit(parts) : parts(false);
  }

  // Asks for `count` elements from `first` on of the next row of every operand; behind the last row of all that does
  // no harm.
  void FetchOfNextRow(llvm::Value* first, int64_t count) {
    constexpr int64_t kLine = 64;
    llvm::Type* byte = b_.getInt8Ty();
    for (int64_t o = 0; o < body_.i->operand_count(); ++o) {
      const Shape& s = body_.i->operand(o)->shape();
      if (!plan_.IsWhole(s)) continue;
      llvm::Value* at = ir_.Add(ir_.Mul(ir_.Add(row_, ir_.I64(1)), plan_.length), first);
      llvm::Value* from = b_.CreateGEP(byte, body_.operands[static_cast<size_t>(o)], ir_.Mul(at, ByteWidth(s.type())));
      for (int64_t k = 0; k < count * ByteWidth(s.type()); k += kLine)
        ir_.Prefetch(b_.CreateGEP(byte, from, ir_.I64(k)), Ir::Cache::kFirst);
    }
  }

  FusionBody& fusion_;
  Body& body_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  ElementEmitter& elements_;
  RowPasses plan_;
  std::optional<PastCaches> past_;
  llvm::Value* row_ = nullptr;
};

}  // namespace

absl::StatusOr<int64_t> EmitRows(FusionBody& fusion) { return Rows(fusion).Emit(); }

}  // namespace kiln::cpu
