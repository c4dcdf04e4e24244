// Updates whose new rows are made of old rows nearby (compiler/analysis/row_stencil.h): each row is copied before it is
// overwritten, to where the copies of those above lie that the next rows read; rows below still have their old
// elements.
#include <algorithm>

#include "codegen/cpu/cache_plan.h"
#include "codegen/cpu/fusion.h"
#include "compiler/analysis/row_stencil.h"

namespace kiln::cpu {
namespace {

class InPlace {
 public:
  InPlace(FusionBody& fusion, const Instruction* root, const RowStencil& plan)
      : fusion_(fusion),
        ir_(fusion.ir),
        b_(fusion.ir.b),
        root_(root),
        s_(root->shape()),
        u_(root->operand(1)->shape()),
        plan_(plan),
        row_bytes_(s_.ByteSize() / s_.dim(0)),
        array_(fusion.body.results[0]),
        copies_(ir_.Alloca(b_.getInt8Ty(), (plan.before + 1) * row_bytes_)) {
    if (plan.Edges()) edges_ = fusion.body.operands.back();
    for (int64_t d = 0; d < s_.rank(); ++d)
      start_.push_back(std::clamp<int64_t>(root->operand(2 + d)->literal().Get(0).i, 0, s_.dim(d) - u_.dim(d)));
    for (const Instruction* user : root->operand(0)->users())
      if (user != root) slices_.push_back(user);
  }

  absl::StatusOr<int64_t> Emit() {
    ir_.Loop(fusion_.body.begin, fusion_.body.end, 1, [&](llvm::Value* block) {
      first_ = ir_.Add(ir_.Mul(block, plan_.block), ir_.I64(plan_.first));
      end_ = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.Add(first_, ir_.I64(plan_.block)),
                                      ir_.I64(plan_.first + plan_.rows));
      block_ = block;
      for (int64_t k = plan_.before; k > 0; --k) {
        llvm::Value* row = b_.CreateSub(first_, ir_.I64(k));
        llvm::Value* from = RowOf(array_, row);
        if (edges_) {
          llvm::Value* edge = Edge(plan_.before - k, b_.CreateSub(block, ir_.I64(1)));
          from = ir_.Select(b_.CreateICmpEQ(block, ir_.I64(0)), from, edge);
        }
        CopyTo(row, from);
      }
      ir_.Loop(first_, end_, 1, [&](llvm::Value* row) { Row(row); });
    });
    RETURN_IF_ERROR(status_);
    return plan_.blocks;
  }

 private:
  llvm::Value* At(llvm::Value* base, llvm::Value* bytes) { return b_.CreateInBoundsGEP(b_.getInt8Ty(), base, bytes); }
  llvm::Value* RowOf(llvm::Value* base, llvm::Value* row) { return At(base, b_.CreateMul(row, ir_.I64(row_bytes_))); }

  // Where the copy of a row lies.
  llvm::Value* Copied(llvm::Value* row) { return RowOf(copies_, b_.CreateURem(row, ir_.I64(plan_.before + 1))); }

  void CopyTo(llvm::Value* row, llvm::Value* from) {
    const llvm::MaybeAlign align(static_cast<uint64_t>(ByteWidth(s_.type())));
    b_.CreateMemCpy(Copied(row), align, from, align, static_cast<uint64_t>(row_bytes_));
  }

  // The `q`-th row around the end of a block.
  llvm::Value* Edge(int64_t q, llvm::Value* block) {
    return RowOf(edges_, b_.CreateAdd(block, ir_.I64(q * (plan_.blocks - 1))));
  }

  // The old elements of the row so far from `row`.
  llvm::Value* Old(llvm::Value* row, int64_t distance) {
    if (distance <= 0) return Copied(b_.CreateSub(row, ir_.I64(-distance)));
    llvm::Value* other = ir_.Add(row, ir_.I64(distance));
    llvm::Value* below = RowOf(array_, other);
    if (!edges_) return below;
    // Behind the end of this block another may have written, unless there is none.
    llvm::Value* beyond = b_.CreateSub(other, end_);
    llvm::Value* from_first = b_.CreateAdd(beyond, ir_.I64(plan_.before));
    llvm::Value* at = b_.CreateAdd(b_.CreateMul(from_first, ir_.I64(plan_.blocks - 1)), block_);
    llvm::Value* own =
        b_.CreateOr(b_.CreateICmpSLT(beyond, ir_.I64(0)), b_.CreateICmpEQ(block_, ir_.I64(plan_.blocks - 1)));
    return ir_.Select(own, below, RowOf(edges_, at));
  }

  void Row(llvm::Value* row) {
    CopyTo(row, RowOf(array_, row));
    // The elements of one row, at any place along the first dimension.
    Shape one = s_;
    one.mutable_dims()[0] = 1;
    for (const Instruction* slice : slices_) {
      Ints starts;
      for (const SliceDim& d : *slice->attrs().slice) starts.push_back(d.start);
      fusion_.elements.ReadFrom(slice, Old(row, starts[0] - plan_.first), one, starts);
    }
    llvm::Value* out = RowOf(array_, row);
    std::vector<llvm::Value*> at(static_cast<size_t>(u_.rank()), ir_.I64(0));
    at[0] = b_.CreateSub(row, ir_.I64(plan_.first));
    Line(at, 1, [&] {
      auto v = fusion_.elements.Emit(root_->operand(1), Index{at});
      if (!v.ok()) return status_.Update(v.status());
      Index to{at};
      for (size_t d = 1; d < start_.size(); ++d) to.dims[d] = ir_.Add(at[d], ir_.I64(start_[d]));
      ir_.Store(s_.type(), *v, out, fusion_.elements.Offset(one, to));
    });
  }

  // Every element of the update from dimension `d` inwards. Along the innermost one vectors begin where lines of memory
  // do: of one that lies in two lines both are read.
  void Line(std::vector<llvm::Value*>& at, int64_t d, const std::function<void()>& element) {
    const size_t k = static_cast<size_t>(d);
    if (d + 1 < u_.rank()) {
      ir_.Loop(ir_.I64(0), ir_.I64(u_.dim(d)), 1, [&](llvm::Value* i) {
        at[k] = i;
        Line(at, d + 1, element);
      });
      return;
    }
    const int64_t lanes = kCacheLine / ByteWidth(s_.type());
    const int64_t lead = std::min((lanes - start_[k] % lanes) % lanes, u_.dim(d));
    const auto from = [&](int64_t first) {
      return [&at, &element, this, first, k](llvm::Value* i) {
        at[k] = ir_.Add(i, ir_.I64(first));
        element();
      };
    };
    const int64_t several = 4 * lanes, whole = (u_.dim(d) - lead) / several * several;
    ir_.VectorLoop(lead, from(0), true);
    // Counted by the place itself: LLVM then sees that an element's neighbour was read the time before. As many as LLVM
    // takes at a time, for it leaves the rest of such loops scalar.
    ir_.Loop(ir_.I64(lead), ir_.I64(lead + whole), 1, from(0), true);
    ir_.VectorLoop(u_.dim(d) - lead - whole, from(lead + whole), true);
  }

  FusionBody& fusion_;
  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const Instruction* root_;
  const Shape &s_, &u_;
  const RowStencil plan_;
  const int64_t row_bytes_;
  llvm::Value *array_, *copies_, *edges_ = nullptr;
  llvm::Value *first_ = nullptr, *end_ = nullptr, *block_ = nullptr;
  Ints start_;
  std::vector<const Instruction*> slices_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<int64_t> EmitRowsInPlace(FusionBody& fusion) {
  const Instruction* root = fusion.f.root();
  const auto plan = RowStencilOf(root, root->operand(1), root->operand(0));
  if (!plan) return Internal(root->name(), " is no stencil of rows");
  // No row is read after it was written.
  fusion.ir.masked_stores = true;
  return InPlace(fusion, root, *plan).Emit();
}

}  // namespace kiln::cpu
