// Sort: a bitonic network over rows, in place in the results.
//
// A step compares pairs at a fixed distance, so that any comparator ends after the same number of steps; places past
// the row's end count as larger than all and never move. Steps within kRow elements of each other run in one kernel,
// with a barrier between; longer distances are launches of their own, as all blocks must have finished the step before.
#include "codegen/elemental/element.h"
#include "codegen/gpu/kernels.h"

namespace kiln::gpu {
namespace {

constexpr int64_t kThreads = 256, kRow = 2 * kThreads;  // elements that one block sorts between barriers

struct SortShape {
  int64_t n = 1, outer = 1, inner = 1, padded = 1;
};

SortShape ShapeOf(const Instruction* i) {
  const Shape& s = i->operand(0)->shape();
  SortShape out;
  const int64_t dim = s.rank() ? (i->attrs().dimensions ? (*i->attrs().dimensions)[0] : s.rank() - 1) : 0;
  for (int64_t d = 0; d < s.rank(); ++d) {
    if (d < dim) out.outer *= s.dim(d);
    if (d == dim) out.n = s.dim(d);
    if (d > dim) out.inner *= s.dim(d);
  }
  while (out.padded < out.n) out.padded *= 2;
  return out;
}

class Sorter {
 public:
  Sorter(Body& body, const SortShape& shape)
      : body_(body), ir_(body.ir), b_(body.ir.b), s_(shape), elements_(body.ir, {}) {}

  // The row that this thread works in, so that element k of it lies at base + k * inner.
  void Row(llvm::Value* row) {
    base_ =
        ir_.Add(ir_.Mul(b_.CreateUDiv(row, ir_.I64(s_.inner)), s_.n * s_.inner), b_.CreateURem(row, ir_.I64(s_.inner)));
  }

  // Exchanges elements `low` and `high` of the row if they are out of order.
  absl::Status Compare(llvm::Value* low, llvm::Value* high) {
    absl::Status status;
    ir_.If(b_.CreateICmpULT(high, ir_.I64(s_.n)), [&] {
      llvm::Value *x = At(low), *y = At(high);
      std::vector<Val> swapped;
      std::vector<std::pair<llvm::Value*, llvm::Value*>> bits;
      for (size_t k = 0; k < body_.results.size(); ++k) {
        const PrimitiveType t = TypeOf(k);
        // The comparator is asked whether the later element goes before the earlier one.
        swapped.push_back(ir_.Load(t, body_.results[k], y));
        swapped.push_back(ir_.Load(t, body_.results[k], x));
      }
      auto before = elements_.Apply(**body_.i->attrs().to_apply, swapped);
      if (!before.ok()) {
        status = before.status();
        return;
      }
      ir_.If((*before)[0].re, [&] {
        for (size_t k = 0; k < body_.results.size(); ++k) {
          llvm::Type* raw = b_.getIntNTy(static_cast<unsigned>(8 * ByteWidth(TypeOf(k))));
          const llvm::Align align(std::min<uint64_t>(8, static_cast<uint64_t>(ByteWidth(TypeOf(k)))));
          llvm::Value *px = b_.CreateInBoundsGEP(raw, body_.results[k], x),
                      *py = b_.CreateInBoundsGEP(raw, body_.results[k], y);
          llvm::Value *vx = b_.CreateAlignedLoad(raw, px, align), *vy = b_.CreateAlignedLoad(raw, py, align);
          b_.CreateAlignedStore(vy, px, align);
          b_.CreateAlignedStore(vx, py, align);
        }
      });
    });
    return status;
  }

  // One step of the network for pair `q`: mirrored within blocks of `block`, the first step of a merge, or at
  // `distance`.
  absl::Status Mirror(llvm::Value* q, llvm::Value* block) {
    llvm::Value* half = b_.CreateLShr(block, 1);
    llvm::Value *base = b_.CreateMul(b_.CreateUDiv(q, half), block), *at = b_.CreateURem(q, half);
    return Compare(ir_.Add(base, at), b_.CreateSub(b_.CreateSub(ir_.Add(base, block), at), ir_.I64(1)));
  }
  absl::Status Step(llvm::Value* q, llvm::Value* distance) {
    llvm::Value* base = b_.CreateMul(b_.CreateUDiv(q, distance), b_.CreateShl(distance, 1));
    llvm::Value* low = ir_.Add(base, b_.CreateURem(q, distance));
    return Compare(low, ir_.Add(low, distance));
  }

 private:
  PrimitiveType TypeOf(size_t k) const { return body_.i->operand(static_cast<int64_t>(k))->shape().type(); }
  llvm::Value* At(llvm::Value* k) { return ir_.Add(base_, ir_.Mul(k, s_.inner)); }

  Body& body_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const SortShape& s_;
  ElementEmitter elements_;
  llvm::Value* base_ = nullptr;
};

// Steps at distances below kRow, with all threads of a block on one piece of a row.
class BlockSorter {
 public:
  BlockSorter(Body& body, const SortShape& s) : body_(body), ir_(body.ir), sorter_(body, s) {
    piece_ = std::min(kRow, s.padded);
    pieces_ = s.padded / piece_;
    body.threads = std::max<int64_t>(kWarp, piece_ / 2);
    body.blocks = s.outer * s.inner * pieces_;
  }

  absl::Status Begin() {
    llvm::Value* block = body_.grid.Block();
    sorter_.Row(ir_.b.CreateUDiv(block, ir_.I64(pieces_)));
    pair_ = ir_.Add(ir_.Mul(ir_.b.CreateURem(block, ir_.I64(pieces_)), piece_ / 2), body_.grid.Thread());
    works_ = piece_ / 2 < body_.threads ? ir_.b.CreateICmpULT(body_.grid.Thread(), ir_.I64(piece_ / 2)) : nullptr;
    return absl::OkStatus();
  }
  // The merge of blocks of `block` elements that lie in the piece, from the step at `from` downwards.
  absl::Status Merge(int64_t block, bool mirrored) {
    if (mirrored) RETURN_IF_ERROR(Each([&] { return sorter_.Mirror(pair_, ir_.I64(block)); }));
    for (int64_t distance = mirrored ? block / 4 : block / 2; distance > 0; distance /= 2)
      RETURN_IF_ERROR(Each([&] { return sorter_.Step(pair_, ir_.I64(distance)); }));
    return absl::OkStatus();
  }
  int64_t piece() const { return piece_; }

 private:
  absl::Status Each(const std::function<absl::Status()>& step) {
    absl::Status status;
    if (works_)
      ir_.If(works_, [&] { status = step(); });
    else
      status = step();
    body_.grid.Barrier();
    return status;
  }

  Body& body_;
  Ir& ir_;
  Sorter sorter_;
  int64_t piece_, pieces_;
  llvm::Value *pair_ = nullptr, *works_ = nullptr;
};

// Operands to results, where they lie elsewhere.
absl::Status EmitMove(Body& body, const std::set<int64_t>& shared) {
  return ForEach(body, body.i->operand(0)->shape().ElementCount(), [&](llvm::Value* place) {
    for (size_t k = 0; k < body.results.size(); ++k) {
      if (shared.count(static_cast<int64_t>(k))) continue;
      const int64_t bytes = ByteWidth(body.i->operand(static_cast<int64_t>(k))->shape().type());
      llvm::Type* raw = body.ir.b.getIntNTy(static_cast<unsigned>(8 * bytes));
      const llvm::Align align(std::min<uint64_t>(8, static_cast<uint64_t>(bytes)));
      body.ir.b.CreateAlignedStore(
          body.ir.b.CreateAlignedLoad(raw, body.ir.b.CreateInBoundsGEP(raw, body.operands[k], place), align),
          body.ir.b.CreateInBoundsGEP(raw, body.results[k], place), align);
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<std::vector<Launch>> EmitSort(Ir& ir, const GpuTarget& target, const std::string& symbol,
                                             const Instruction* i, const std::set<int64_t>& shared) {
  const SortShape s = ShapeOf(i);
  std::vector<Launch> out;
  if (i->operand(0)->shape().ElementCount() == 0) return out;
  if (i->attrs().is_stable.value_or(false))
    return ErrorAt(i, "the network that sorts on a GPU is not stable; the pass stable-sort-expander is needed",
                   absl::StatusCode::kUnimplemented);
  const auto add = [&](const std::string& suffix, const std::function<absl::Status(Body&)>& emit) -> absl::Status {
    ASSIGN_OR_RETURN(Launch l, EmitFunction(ir, target, symbol + suffix, i, shared, emit));
    out.push_back(l);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(add("_move", [&](Body& body) { return EmitMove(body, shared); }));
  if (s.n < 2) return out;
  RETURN_IF_ERROR(add("_pieces", [&](Body& body) -> absl::Status {
    BlockSorter sorter(body, s);
    RETURN_IF_ERROR(sorter.Begin());
    for (int64_t block = 2; block <= sorter.piece(); block *= 2) RETURN_IF_ERROR(sorter.Merge(block, true));
    return absl::OkStatus();
  }));
  if (s.padded <= kRow) return out;
  // Merges of more than a piece: far steps one launch each, the near ones together.
  const int64_t pairs = s.outer * s.inner * s.padded / 2;
  const auto far = [&](bool mirrored) {
    return [&, mirrored](Body& body) {
      return ForEach(body, pairs, [&](llvm::Value* place) {
        Sorter sorter(body, s);
        sorter.Row(ir.b.CreateUDiv(place, ir.I64(s.padded / 2)));
        llvm::Value* q = ir.b.CreateURem(place, ir.I64(s.padded / 2));
        return mirrored ? sorter.Mirror(q, body.number) : sorter.Step(q, body.number);
      });
    };
  };
  ASSIGN_OR_RETURN(Launch mirror, EmitFunction(ir, target, symbol + "_mirror", i, shared, far(true)));
  ASSIGN_OR_RETURN(Launch step, EmitFunction(ir, target, symbol + "_step", i, shared, far(false)));
  ASSIGN_OR_RETURN(Launch near, EmitFunction(ir, target, symbol + "_near", i, shared, [&](Body& body) -> absl::Status {
                     BlockSorter sorter(body, s);
                     RETURN_IF_ERROR(sorter.Begin());
                     return sorter.Merge(sorter.piece(), false);
                   }));
  for (int64_t block = 2 * kRow; block <= s.padded; block *= 2) {
    mirror.number = block;
    out.push_back(mirror);
    for (int64_t distance = block / 4; distance >= kRow; distance /= 2) {
      step.number = distance;
      out.push_back(step);
    }
    out.push_back(near);
  }
  return out;
}

}  // namespace kiln::gpu
