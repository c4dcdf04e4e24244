// The part of the input that a slab of results reads, copied as the products read it: line by line, zero where there is
// no input.
//
// An input whose features do not lie side by side is copied some features at a time, so that each of them is read in
// the order of memory. Where the positions of a line do, squares of features and positions are turned in registers.
#include <algorithm>

#include "codegen/cpu/contractions.h"
#include "codegen/cpu/matmul_pack.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::cpu {
namespace {

class SlabFiller {
 public:
  SlabFiller(Ir& ir, const ConvolutionPlan& plan, llvm::Value* image, llvm::Value* slab, llvm::Value* first,
             int64_t lines)
      : ir_(ir),
        b_(ir.b),
        s_(plan.shape),
        last_(plan.shape.window.back()),
        extent_(plan.slab.extent),
        held_(plan.held),
        features_(plan.shape.in_features()),
        image_(image),
        slab_(slab),
        first_(first),
        lines_(lines) {
    start_ = std::max<int64_t>(0, last_.pad_low);
    skip_ = std::max<int64_t>(0, -last_.pad_low);
    count_ = std::max<int64_t>(0, std::min(InputExtent() - skip_, LineExtent() - start_));
    ChooseBlock();
  }

  void Fill() {
    const auto features_from = [&](llvm::Value* feature) {
      feature_ = feature;
      Dimension(0, ir_.I64(0), ir_.Mul(feature, s_.feature_stride), nullptr);
    };
    ForBlocks(features_, features_from);
  }

 private:
  int64_t LineExtent() const { return extent_.back(); }
  int64_t InputExtent() const { return s_.in.back(); }
  bool Together() const { return last_.lhs_dilate == 1; }  // no holes between the positions of a line

  void ChooseBlock() {
    constexpr int64_t kLargest = 16, kSmallest = 4;  // elements: of f32, a cache line and half a vector
    block_ = features_;
    if (s_.feature_stride == 1 || s_.position_stride.back() != 1 || !ir_.on_overrun.empty()) return;
    const int64_t lanes = std::min<int64_t>(kLargest, ir_.level.vector_bytes / ByteWidth(s_.a));
    int64_t n = 1;
    while (2 * n <= std::min({lanes, features_, count_})) n *= 2;
    turned_ = n >= kSmallest && Together();
    if (!turned_) return;
    block_ = n;
    if (s_.a != held_) square_ = ir_.Alloca(Word(), n * n);
  }

  // body(start) for blocks that cover `extent`; the last begins earlier where they do not fit.
  void ForBlocks(int64_t extent, const std::function<void(llvm::Value*)>& body) {
    ir_.Loop(ir_.I64(0), ir_.I64(extent), block_, [&](llvm::Value* at) {
      const bool fits = extent % block_ == 0;
      body(fits ? at : b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, at, ir_.I64(extent - block_)));
    });
  }

  // Dimension `d` and those inside it, at position `to` of the slab and element `from` of the input so far.
  void Dimension(int64_t d, llvm::Value* to, llvm::Value* from, llvm::Value* inside) {
    if (d == s_.spatial() - 1) return Line(to, from, inside);
    const WindowDim& w = s_.window[d];
    llvm::Value* base = d == 0 ? ir_.Mul(first_, w.stride) : ir_.I64(0);
    ir_.Loop(ir_.I64(0), ir_.I64(d == 0 ? lines_ : extent_[d]), 1, [&](llvm::Value* r) {
      llvm::Value* seen = b_.CreateSub(b_.CreateAdd(base, r), ir_.I64(w.pad_low));
      const InputPlace place = PlaceInInput(ir_, w, s_.in[d], seen, inside);
      Dimension(d + 1, d == 0 ? r : ir_.Add(ir_.Mul(to, extent_[d]), r),
                ir_.Add(from, ir_.Mul(place.position, s_.position_stride[d])), place.inside);
    });
  }

  // The innermost dimension.
  void Line(llvm::Value* to, llvm::Value* from, llvm::Value* inside) {
    line_ = ir_.Add(ir_.Mul(to, features_ * LineExtent()), feature_);
    from_ = from;
    const auto copy = [&] { Together() ? CopyTogether() : CopyApart(); };
    if (!inside) return copy();
    ir_.If(inside, copy);
    ir_.If(b_.CreateNot(inside), [&] { Zero(0, LineExtent()); });
  }

  // `feature` of the block at `position` of the line.
  llvm::Value* InSlab(llvm::Value* position, llvm::Value* feature) {
    return ir_.Add(line_, ir_.Add(ir_.Mul(position, features_), feature));
  }

  // Positions [from, to) of the line.
  void Zero(int64_t from, int64_t to) {
    const auto zero = [&](llvm::Value* e) { ir_.Store(held_, ir_.Constant(held_, Element{}), slab_, e); };
    const auto elements = [&](llvm::Value* at, int64_t count) {
      ir_.Loop(
          ir_.I64(0), ir_.I64(count), 1, [&](llvm::Value* e) { zero(ir_.Add(at, e)); }, true);
    };
    if (block_ == features_) return elements(InSlab(ir_.I64(from), ir_.I64(0)), (to - from) * features_);
    ir_.Loop(ir_.I64(from), ir_.I64(to), 1, [&](llvm::Value* p) { elements(InSlab(p, ir_.I64(0)), block_); });
  }

  void CopyElement(llvm::Value* from, llvm::Value* to) {
    ir_.Store(held_, ir_.Convert(ir_.Load(s_.a, image_, from), s_.a, held_), slab_, to);
  }

  // The features of position `p` of the input to position `at` of the line.
  void CopyPosition(llvm::Value* p, llvm::Value* at) {
    llvm::Value* from = ir_.Add(from_, ir_.Mul(p, s_.position_stride.back()));
    ir_.Loop(
        ir_.I64(0), ir_.I64(block_), 1,
        [&](llvm::Value* f) { CopyElement(ir_.Add(from, ir_.Mul(f, s_.feature_stride)), InSlab(at, f)); }, true);
  }

  // Positions of the input that are neighbours in the slab too.
  void CopyTogether() {
    const int64_t zeros = std::min(start_, LineExtent());
    Zero(0, zeros);
    const bool one_run = s_.feature_stride == 1 && s_.position_stride.back() == features_;
    if (one_run) {
      llvm::Value *from = ir_.Add(from_, ir_.I64(skip_ * features_)), *to = InSlab(ir_.I64(start_), ir_.I64(0));
      ir_.Loop(
          ir_.I64(0), ir_.I64(count_ * features_), 1,
          [&](llvm::Value* e) { CopyElement(ir_.Add(from, e), ir_.Add(to, e)); }, true);
    } else if (turned_) {
      ForBlocks(count_, [&](llvm::Value* p) { CopySquare(p); });
    } else {
      ir_.Loop(ir_.I64(0), ir_.I64(count_), 1,
               [&](llvm::Value* p) { CopyPosition(ir_.Add(p, ir_.I64(skip_)), ir_.Add(p, ir_.I64(start_))); });
    }
    Zero(zeros + count_, LineExtent());
  }

  // Positions with holes between them.
  void CopyApart() {
    Zero(0, LineExtent());
    ir_.Loop(ir_.I64(0), ir_.I64(InputExtent()), 1, [&](llvm::Value* p) {
      llvm::Value* at = b_.CreateAdd(ir_.Mul(p, last_.lhs_dilate), ir_.I64(last_.pad_low));
      ir_.If(b_.CreateICmpULT(at, ir_.I64(LineExtent())), [&] { CopyPosition(p, at); });
    });
  }

  // Bits of an element of the input.
  llvm::Type* Word() const { return b_.getIntNTy(static_cast<unsigned>(8 * ByteWidth(s_.a))); }

  // As many positions, from `p` of those that are copied on, as the block has features.
  void CopySquare(llvm::Value* p) {
    auto* vector = llvm::FixedVectorType::get(Word(), static_cast<unsigned>(block_));
    const llvm::Align align(static_cast<uint64_t>(ByteWidth(s_.a)));
    llvm::Value *from = ir_.Add(from_, ir_.Add(p, ir_.I64(skip_))), *at = ir_.Add(p, ir_.I64(start_));
    std::vector<llvm::Value*> rows;
    for (int64_t f = 0; f < block_; ++f) {
      llvm::Value* row = b_.CreateInBoundsGEP(Word(), image_, ir_.Add(from, ir_.I64(f * s_.feature_stride)));
      rows.push_back(b_.CreateAlignedLoad(vector, row, align));
    }
    rows = Transposed(b_, std::move(rows));
    for (int64_t r = 0; r < block_; ++r) {
      llvm::Value* to = square_ ? b_.CreateInBoundsGEP(Word(), square_, ir_.I64(r * block_))
                                : b_.CreateInBoundsGEP(Word(), slab_, InSlab(ir_.Add(at, ir_.I64(r)), ir_.I64(0)));
      b_.CreateAlignedStore(rows[r], to, align);
    }
    if (!square_) return;
    ir_.Loop(ir_.I64(0), ir_.I64(block_), 1, [&](llvm::Value* r) {
      const auto element = [&](llvm::Value* f) {
        const Val v = ir_.Load(s_.a, square_, ir_.Add(ir_.Mul(r, block_), f));
        ir_.Store(held_, ir_.Convert(v, s_.a, held_), slab_, InSlab(ir_.Add(at, r), f));
      };
      ir_.VectorLoop(block_, element, true);
    });
  }

  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const ConvolutionShape& s_;
  const WindowDim& last_;  // of the innermost dimension
  const Ints& extent_;
  const PrimitiveType held_;
  const int64_t features_;
  llvm::Value *const image_, *const slab_, *const first_;
  const int64_t lines_;
  // Positions of a line: the first with input, what negative padding leaves out of the input, how many are copied.
  int64_t start_, skip_, count_;
  int64_t block_;                  // features that are copied at a time
  bool turned_ = false;            // in squares of block_ positions
  llvm::Value* square_ = nullptr;  // one of them, before it is converted
  // The current line and the first of the features that are copied, in the slab and in the input.
  llvm::Value *feature_ = nullptr, *line_ = nullptr, *from_ = nullptr;
};

}  // namespace

void FillSlab(Ir& ir, const ConvolutionPlan& plan, llvm::Value* image, llvm::Value* slab, llvm::Value* first,
              int64_t lines) {
  SlabFiller(ir, plan, image, slab, first, lines).Fill();
}

}  // namespace kiln::cpu
