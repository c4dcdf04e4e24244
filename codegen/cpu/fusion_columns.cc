// Columns that are reduced and then used again in one kernel: what fusion_rows.cc does for rows, where the elements of
// a row lie `inner` elements apart and those of other rows between them.
//
// An array is [outer][length][inner]. A unit is a strip of columns of one `outer`: each loop runs over `length`, and in
// it over the columns, which are vectors. Reductions that do not wait for each other share a loop; a column has an
// accumulator for each. Guarantees: results do not depend on who computes which unit.
#include <algorithm>
#include <utility>

#include "codegen/cpu/matmul.h"
#include "codegen/cpu/row_passes.h"

namespace kiln::cpu {
namespace {

class Columns {
 public:
  explicit Columns(FusionBody& fusion)
      : fusion_(fusion), body_(fusion.body), ir_(fusion.ir), elements_(fusion.elements) {}

  absl::StatusOr<int64_t> Emit() {
    ASSIGN_OR_RETURN(plan_, RowPasses::Of(fusion_, /*together=*/true));
    inner_ = ColumnsSideBySide(plan_.passes[0].reduces[0]);
    outer_ = plan_.rows / inner_;
    const Pieces strips = Pieces::Of(inner_, Width());
    Reserve(strips.size);
    absl::Status status;
    ir_.Loop(body_.begin, body_.end, 1, [&](llvm::Value* unit) {
      at_outer_ = strips.count == 1 ? unit : ir_.b.CreateUDiv(unit, ir_.I64(strips.count));
      llvm::Value* strip = strips.count == 1 ? ir_.I64(0) : ir_.b.CreateURem(unit, ir_.I64(strips.count));
      VisitPiece(ir_, strips, strip, [&](llvm::Value* from, int64_t columns) {
        from_ = from;
        width_ = columns;
        status.Update(Strip());
      });
    });
    RETURN_IF_ERROR(status);
    return outer_ * strips.count;
  }

 private:
  // A loop over a strip's columns of which `body` computes one.
  absl::Status ForColumns(const std::function<absl::Status(llvm::Value* column)>& body) {
    absl::Status status;
    ir_.VectorLoop(
        width_, [&](llvm::Value* j) { status.Update(body(j)); }, true);
    return status;
  }

  absl::Status ForElements(const std::function<absl::Status(llvm::Value* k, llvm::Value* column)>& body) {
    absl::Status status;
    ir_.Loop(ir_.I64(0), ir_.I64(plan_.length), 1,
             [&](llvm::Value* k) { status.Update(ForColumns([&](llvm::Value* j) { return body(k, j); })); });
    return status;
  }

  // Columns of a strip: as many as stay in the second cache, or as have what is kept of them in a buffer. Narrower
  // strips are no streams that a machine foresees; what is left of them is code of its own, which a divisor saves.
  int64_t Width() const {
    constexpr int64_t kLanes = 16, kLeast = 64, kMost = 256, kMostKeeping = 128, kStripBytes = 512 << 10;
    const auto kept = static_cast<int64_t>(plan_.WorthKeeping(fusion_.f).size());
    const int64_t bytes = kept ? RowPasses::kMostKeptBytes / kept : kStripBytes;
    const int64_t fit = bytes / (4 * plan_.length) / kLanes * kLanes;
    if (inner_ <= std::clamp(fit, kLeast, kMost)) return inner_;
    const int64_t most = std::clamp(fit, kLeast, kept ? kMostKeeping : kMost);
    for (int64_t width = most; width >= kLeast; width -= kLanes)
      if (inner_ % width == 0) return width;
    return most;
  }

  void Reserve(int64_t width) {
    most_ = width;
    for (const RowPass& p : plan_.passes)
      for (const Instruction* r : p.reduces) {
        sums_.emplace(r, RowSums(ir_, elements_, r, width));
        values_.emplace_back(r, Slots(ir_, r->shape().type(), width));
      }
    for (const Instruction* i : plan_.of_row) values_.emplace_back(i, Slots(ir_, i->shape().type(), width));
    plan_.KeepInBuffers(fusion_, plan_.length * width);
  }

  // Element `k` of the column at `j` of the strip, or the column itself (null), in an array of `s`.
  Index At(const Shape& s, llvm::Value* k, llvm::Value* j) const {
    llvm::Value* column = ir_.Add(from_, j);
    llvm::Value* row = k && plan_.IsWhole(s) ? ir_.Add(ir_.Mul(at_outer_, plan_.length), k) : at_outer_;
    Index x{{}, ir_.Add(ir_.Mul(row, inner_), column)};
    const std::vector<std::pair<int64_t, llvm::Value*>> parts =
        plan_.IsWhole(s) ? std::vector<std::pair<int64_t, llvm::Value*>>{{outer_, at_outer_}, {plan_.length, k}}
                         : std::vector<std::pair<int64_t, llvm::Value*>>{{outer_, at_outer_}};
    size_t d = 0;
    for (const auto& [extent, at] : parts) {
      Ints dims;
      for (int64_t n = 1; n < extent && d < s.dims().size(); ++d) {
        dims.push_back(s.dims()[d]);
        n *= s.dims()[d];
      }
      if (s.rank() == 0 || Product(dims) != extent) return Index{Delinearize(ir_, x.linear, s.dims()), x.linear};
      for (llvm::Value* v : Delinearize(ir_, at, dims)) x.dims.push_back(v);
    }
    for (llvm::Value* v : Delinearize(ir_, column, Ints(s.dims().begin() + static_cast<ptrdiff_t>(d), s.dims().end())))
      x.dims.push_back(v);
    return x;
  }

  static int64_t Product(const Ints& dims) {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return n;
  }

  // From here on the values of the column at `j` that earlier passes left are what they left.
  void Recall(llvm::Value* j) {
    for (size_t n = 0; n < known_; ++n) elements_.Preset(values_[order_[n]].first, values_[order_[n]].second.Get(j));
  }

  absl::Status Strip() {
    known_ = 0;
    order_.clear();
    for (const auto& [i, slots] : values_) elements_.Forget(i);
    for (size_t p = 0; p + 1 < plan_.passes.size(); ++p) RETURN_IF_ERROR(Reduce(p));
    if (plan_.HasOutputs(/*whole=*/true))
      RETURN_IF_ERROR(ForElements([&](llvm::Value* k, llvm::Value* j) -> absl::Status {
        Recall(j);
        RETURN_IF_ERROR(UseKept(plan_.passes.size() - 1, k, j));
        return Store(/*whole=*/true, k, j);
      }));
    if (!plan_.HasOutputs(/*whole=*/false)) return absl::OkStatus();
    return ForColumns([&](llvm::Value* j) {
      Recall(j);
      return Store(/*whole=*/false, nullptr, j);
    });
  }

  absl::Status UseKept(size_t p, llvm::Value* k, llvm::Value* j) {
    return plan_.UseKept(
        fusion_, p, [&](const Shape& s) { return At(s, k, j); }, ir_.Add(ir_.Mul(k, most_), j));
  }

  absl::Status Store(bool whole, llvm::Value* k, llvm::Value* j) {
    return plan_.StoreOutputs(fusion_, whole, [&](const Shape& s) { return At(s, k, j); });
  }

  absl::Status Reduce(size_t p) {
    const std::vector<const Instruction*>& reduces = plan_.passes[p].reduces;
    const auto each = [&](const std::function<absl::Status(const Instruction* r, const RowSums& sums)>& visit) {
      absl::Status status;
      for (const Instruction* r : reduces) status.Update(visit(r, sums_.at(r)));
      return status;
    };
    // Accumulators under a mask would wait for themselves.
    const bool masked = std::exchange(ir_.masked_stores, false);
    RETURN_IF_ERROR(
        ForColumns([&](llvm::Value* j) { return each([&](auto*, const RowSums& sums) { return sums.Begin(j); }); }));
    const absl::Status added = ForElements([&](llvm::Value* k, llvm::Value* j) -> absl::Status {
      Recall(j);
      RETURN_IF_ERROR(UseKept(p, k, j));
      return each(
          [&](const Instruction* r, const RowSums& sums) { return sums.Add(j, At(r->operand(0)->shape(), k, j)); });
    });
    ir_.masked_stores = masked;
    return added.ok() ? Conclude(p) : added;
  }

  // What is known of each column behind pass `p`: its reductions, and what is made of them.
  absl::Status Conclude(size_t p) {
    const std::vector<const Instruction*>& reduces = plan_.passes[p].reduces;
    std::vector<size_t> made;
    for (size_t n = 0; n < values_.size(); ++n) {
      const Instruction* i = values_[n].first;
      const bool now = i->Is(Opcode::Reduce) ? std::find(reduces.begin(), reduces.end(), i) != reduces.end()
                                             : plan_.passes[p + 1].needed.contains(i);
      if (now && std::find(order_.begin(), order_.end(), n) == order_.end()) made.push_back(n);
    }
    RETURN_IF_ERROR(ForColumns([&](llvm::Value* j) -> absl::Status {
      Recall(j);
      for (size_t n : made) elements_.Forget(values_[n].first);
      for (size_t n : made) {
        const auto& [i, slots] = values_[n];
        Val v;
        if (i->Is(Opcode::Reduce)) {
          v = sums_.at(i).Result(j);
        } else {
          ASSIGN_OR_RETURN(v, elements_.Emit(i, At(i->shape(), nullptr, j)));
        }
        slots.Put(j, v);
        elements_.Preset(i, v);
      }
      return absl::OkStatus();
    }));
    order_.insert(order_.end(), made.begin(), made.end());
    known_ = order_.size();
    return absl::OkStatus();
  }

  FusionBody& fusion_;
  Body& body_;
  Ir& ir_;
  ElementEmitter& elements_;
  RowPasses plan_;
  int64_t inner_ = 0, outer_ = 0;
  int64_t most_ = 0, width_ = 0;  // columns of a strip, and of the one at hand
  llvm::Value *at_outer_ = nullptr, *from_ = nullptr;
  absl::flat_hash_map<const Instruction*, RowSums> sums_;
  std::vector<std::pair<const Instruction*, Slots>> values_;  // of columns: reductions, then what is made of them
  std::vector<size_t> order_;                                 // of those that are known
  size_t known_ = 0;
};

}  // namespace

int64_t ColumnsSideBySide(const Instruction* reduce) {
  const Shape& in = reduce->operand(0)->shape();
  const Ints& dims = *reduce->attrs().dimensions;
  int64_t inner = 1;
  for (int64_t d = in.rank(); d-- > 0;) {
    if (in.dim(d) == 1) continue;
    if (std::find(dims.begin(), dims.end(), d) != dims.end()) break;
    inner *= in.dim(d);
  }
  return inner;
}

absl::StatusOr<int64_t> EmitColumns(FusionBody& fusion) { return Columns(fusion).Emit(); }

}  // namespace kiln::cpu
