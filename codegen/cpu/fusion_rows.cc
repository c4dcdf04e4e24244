// Rows that are reduced and then used again (softmax, norms) in one kernel: a unit is a row, which stays in the first
// cache while a loop runs over it for each reduction, and one more for the results.
//
// A row is `length` elements that follow one another in every array of rows; how many dimensions an array has does not
// matter. Where they do for what is broadcast (a factor for each channel of a group), loops run over pieces of the row
// in which that stays the same or follows the elements, so that no place is computed by division in them.
// Transcendental values that several of the loops read are kept in a buffer, others are computed again. The loop for
// the results asks for the next row, a few lines at a time: the loops before it then find that row in the cache, where
// they would wait for memory and it for them.
#include <algorithm>
#include <optional>
#include <utility>

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
    piece_ = PieceOfRow();
    past_.emplace(fusion_, plan_.outputs, piece_);
    absl::Status status;
    ir_.Loop(body_.begin, body_.end, 1, [&](llvm::Value* row) {
      row_ = row;
      status = Row();
    });
    RETURN_IF_ERROR(status);
    return plan_.rows;
  }

 private:
  // How many of the first dimensions leave `count` elements to the others; none where a dimension would be cut.
  static std::optional<size_t> DimsBefore(const Ints& dims, int64_t count) {
    size_t d = dims.size();
    int64_t behind = 1;
    while (d > 0 && behind < count) behind *= dims[--d];
    return behind == count ? std::optional<size_t>(d) : std::nullopt;
  }

  // The least run of elements at whose end a broadcast to `i` goes on to other dimensions of its operand; 0: none.
  static int64_t RunOfBroadcast(const Instruction* i) {
    const Ints &from = *i->attrs().dimensions, &dims = i->shape().dims();
    const auto reads = [&](size_t d) {
      return std::find(from.begin(), from.end(), static_cast<int64_t>(d)) != from.end();
    };
    int64_t run = 1;
    for (size_t d = dims.size(); d-- > 1;) {
      run *= dims[d];
      if (reads(d) != reads(d - 1)) return run;
    }
    return 0;
  }

  // The same of a slice: elements that lie behind one another, or as far apart as the slice's stride.
  static int64_t RunOfSlice(const Instruction* i) {
    const Ints& dims = i->shape().dims();
    int64_t run = 1;
    for (size_t d = dims.size(); d-- > 1;) {
      run *= dims[d];
      if (dims[d] != i->operand(0)->shape().dim(static_cast<int64_t>(d))) return run;
    }
    return 0;
  }

  // Elements of the pieces that loops run over: all, or as few as keep what is broadcast or sliced in order.
  int64_t PieceOfRow() const {
    constexpr int64_t kShortest = 16;
    int64_t piece = plan_.length;
    std::vector<const Instruction*> in_runs;
    for (const auto& i : fusion_.f.instructions()) {
      const Shape& s = i->shape();
      if (!i->Is(Opcode::Broadcast) && !i->Is(Opcode::Slice)) continue;
      if (!plan_.IsWhole(s) || s.rank() == 0 || s.dim(MinorDim(s)) == plan_.length) continue;
      const int64_t run = i->Is(Opcode::Slice) ? RunOfSlice(i.get()) : RunOfBroadcast(i.get());
      if (run == 0) continue;
      in_runs.push_back(i.get());
      piece = std::min(piece, run);
    }
    const auto keeps = [&](const Instruction* i) { return DimsBefore(i->shape().dims(), piece).has_value(); };
    const bool whole = plan_.length % piece == 0 && std::all_of(in_runs.begin(), in_runs.end(), keeps);
    return piece >= kShortest && whole ? piece : plan_.length;
  }

  // The element of the row that is element `k` of the piece.
  llvm::Value* InRow(llvm::Value* k) { return at_piece_ ? ir_.Add(ir_.Mul(at_piece_, piece_), k) : k; }

  // Where it is among the elements of all rows. Behind a reshape the same element is found by its place in the row.
  llvm::Value* Linear(llvm::Value* k) {
    const auto here = std::make_pair(k, b_.GetInsertBlock());
    if (here == linear_of_) return linear_;
    linear_of_ = here;
    linear_ = ir_.Add(ir_.Mul(row_, plan_.length), InRow(k));
    if (at_piece_) elements_.ReshapeTo(linear_, [this, k](const Shape& s) { return At(s, k); });
    return linear_;
  }

  // Pieces of the row, one after the other.
  void ForPieces(const std::function<void()>& body) {
    if (piece_ == plan_.length) return body();
    ir_.Loop(ir_.I64(0), ir_.I64(plan_.length / piece_), 1, [&](llvm::Value* p) {
      at_piece_ = p;
      body();
    });
    at_piece_ = nullptr;
    elements_.ReshapeTo(nullptr, nullptr);
  }

  // Element `k` of the piece of the row, or the row itself (null), in an array of `s`.
  Index At(const Shape& s, llvm::Value* k) {
    if (!plan_.IsWhole(s)) return Index{Delinearize(ir_, row_, s.dims()), row_};
    llvm::Value* linear = Linear(k);
    const int64_t minor = MinorDim(s);
    if (s.rank() == 0 || s.dim(minor) != plan_.length) {
      const std::optional<size_t> before = at_piece_ ? DimsBefore(s.dims(), piece_) : std::nullopt;
      if (!before) return Index{Delinearize(ir_, linear, s.dims()), linear};
      const auto split = s.dims().begin() + static_cast<ptrdiff_t>(*before);
      llvm::Value* piece = ir_.Add(ir_.Mul(row_, plan_.length / piece_), at_piece_);
      Index x{Delinearize(ir_, piece, Ints(s.dims().begin(), split)), linear};
      for (llvm::Value* v : Delinearize(ir_, k, Ints(split, s.dims().end()))) x.dims.push_back(v);
      return x;
    }
    k = InRow(k);
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
        fusion_, p, [&](const Shape& s) { return At(s, k); }, InRow(k));
  }

  absl::Status Store(bool whole, llvm::Value* k) {
    return plan_.StoreOutputs(fusion_, whole, [&](const Shape& s) { return At(s, k); });
  }

  // Sums that begin with zeros may be many that are added in the end: lanes of short pieces would be added up again and
  // again, each time behind the last.
  bool IsSummedByPlace(const Instruction* i) const {
    constexpr int64_t kLongest = 256;
    const Instruction *f = (*i->attrs().to_apply)->root(), *first = i->operand(1);
    return piece_ < plan_.length && piece_ <= kLongest && f->Is(Opcode::Add) && first->Is(Opcode::Constant) &&
           first->literal() == Literal(first->shape());
  }

  absl::StatusOr<Val> Reduce(size_t p) {
    const Instruction* i = plan_.passes[p].reduces[0];
    const bool by_place = IsSummedByPlace(i);
    const RowSums sums(ir_, elements_, i, by_place ? piece_ : 1);
    llvm::Value* only = ir_.I64(0);
    absl::Status status;
    const auto begin = [&](llvm::Value* k) { status.Update(sums.Begin(k)); };
    by_place ? ir_.VectorLoop(piece_, begin, true) : begin(only);
    const auto step = [&](llvm::Value* k) {
      const absl::Status kept = UseKept(p, k);
      status.Update(kept.ok() ? sums.Add(by_place ? k : only, At(i->operand(0)->shape(), k)) : kept);
    };
    ForPieces([&] { ir_.VectorLoop(piece_, step, by_place); });
    RETURN_IF_ERROR(status);
    return by_place ? Together(i, sums) : sums.Result(only);
  }

  absl::StatusOr<Val> Together(const Instruction* i, const RowSums& places) {
    const RowSums sum(ir_, elements_, i, 1);
    llvm::Value* only = ir_.I64(0);
    absl::Status status = sum.Begin(only);
    ir_.VectorLoop(
        piece_, [&](llvm::Value* k) { status.Update(sum.AddSum(only, places, k)); }, false);
    RETURN_IF_ERROR(status);
    return sum.Result(only);
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
    const bool fetches = ir_.level.vector_bytes == 64 && piece_ >= kTogether && plan_.length <= kLongest;
    if (!fetches) return ForPieces([&] { ir_.VectorLoop(piece_, step, true); });
    const auto parts = [&](bool past) {
      const auto part = [&](llvm::Value* first, int64_t count) {
        FetchOfNextRow(InRow(first), count);
        const auto element = [&](llvm::Value* k) { step(ir_.Add(first, k)); };
        past ? past_->Piece(ir_.Add(ir_.Mul(row_, plan_.length), InRow(first)), count, element)
             : ir_.VectorLoop(count, element, true);
      };
      const int64_t whole = piece_ / kTogether * kTogether;
      ForPieces([&] {
        ir_.Loop(ir_.I64(0), ir_.I64(whole), kTogether, [&](llvm::Value* first) { part(first, kTogether); });
        if (whole < piece_) part(ir_.I64(whole), piece_ - whole);
      });
    };
    past_->Apply() ? past_->Emit(parts) : parts(false);
  }

  // Asks for `count` elements from `first` on of the next row of every operand; behind the last row of all that does
  // no harm.
  void FetchOfNextRow(llvm::Value* first, int64_t count) {
    llvm::Type* byte = b_.getInt8Ty();
    for (int64_t o = 0; o < body_.i->operand_count(); ++o) {
      const Shape& s = body_.i->operand(o)->shape();
      if (!plan_.IsWhole(s)) continue;
      llvm::Value* at = ir_.Add(ir_.Mul(ir_.Add(row_, ir_.I64(1)), plan_.length), first);
      llvm::Value* from = b_.CreateGEP(byte, body_.operands[static_cast<size_t>(o)], ir_.Mul(at, ByteWidth(s.type())));
      for (int64_t k = 0; k < count * ByteWidth(s.type()); k += kCacheLine)
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
  int64_t piece_ = 0;
  llvm::Value *row_ = nullptr, *at_piece_ = nullptr;  // the latter: null where a row is one piece
  std::pair<llvm::Value*, llvm::BasicBlock*> linear_of_ = {nullptr, nullptr};
  llvm::Value* linear_ = nullptr;
};

}  // namespace

absl::StatusOr<int64_t> EmitRows(FusionBody& fusion) { return Rows(fusion).Emit(); }

}  // namespace kiln::cpu
