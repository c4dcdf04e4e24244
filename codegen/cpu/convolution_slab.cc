// The part of the input that a slab of results reads, copied as the products read it: line by line, zero where there is
// no input.
#include <algorithm>

#include "codegen/cpu/contractions.h"

namespace kiln::cpu {
namespace {

class SlabFiller {
 public:
  SlabFiller(Ir& ir, const ConvolutionPlan& plan, llvm::Value* image, llvm::Value* slab, llvm::Value* first,
             int64_t lines)
      : ir_(ir),
        b_(ir.b),
        s_(plan.shape),
        extent_(plan.slab.extent),
        held_(plan.held),
        features_(plan.shape.in_features()),
        image_(image),
        slab_(slab),
        first_(first),
        lines_(lines) {}

  // Dimension `d` and those inside it, at `to` of the slab's and `from` of the input's positions so far.
  void Fill(int64_t d, llvm::Value* to, llvm::Value* from, llvm::Value* inside) {
    if (d == s_.spatial() - 1) return Line(to, from, inside);
    const WindowDim& w = s_.window[d];
    llvm::Value* base = d == 0 ? ir_.Mul(first_, w.stride) : ir_.I64(0);
    ir_.Loop(ir_.I64(0), ir_.I64(d == 0 ? lines_ : extent_[d]), 1, [&](llvm::Value* r) {
      llvm::Value* seen = b_.CreateSub(b_.CreateAdd(base, r), ir_.I64(w.pad_low));
      const InputPlace place = PlaceInInput(ir_, w, s_.in[d], seen, inside);
      Fill(d + 1, d == 0 ? r : ir_.Add(ir_.Mul(to, extent_[d]), r), ir_.Add(ir_.Mul(from, s_.in[d]), place.position),
           place.inside);
    });
  }

 private:
  int64_t LineExtent() const { return extent_.back(); }
  int64_t InputExtent() const { return s_.in.back(); }

  // The innermost dimension.
  void Line(llvm::Value* to, llvm::Value* from, llvm::Value* inside) {
    line_ = ir_.Mul(to, features_ * LineExtent());
    const auto copy = [&] {
      if (s_.window[s_.spatial() - 1].lhs_dilate == 1)
        CopyTogether(from);
      else
        CopyApart(from);
    };
    if (!inside) return copy();
    ir_.If(inside, copy);
    ir_.If(b_.CreateNot(inside), [&] { Zero(0, LineExtent()); });
  }

  // Positions [from, to) of the line.
  void Zero(int64_t from, int64_t to) {
    ir_.Loop(
        ir_.I64(from * features_), ir_.I64(to * features_), 1,
        [&](llvm::Value* e) { ir_.Store(held_, ir_.Constant(held_, Element{}), slab_, ir_.Add(line_, e)); }, true);
  }

  // Elements that lie together in the input and in the slab.
  void CopyTogether(llvm::Value* from) {
    const WindowDim& w = s_.window[s_.spatial() - 1];
    const int64_t first = std::max<int64_t>(0, w.pad_low);  // first position with input
    const int64_t skip = std::max<int64_t>(0, -w.pad_low);  // of the input, by negative padding
    const int64_t count = std::max<int64_t>(0, std::min(InputExtent() - skip, LineExtent() - first));
    const int64_t zeros = std::min(first, LineExtent());
    Zero(0, zeros);
    ir_.Loop(
        ir_.I64(0), ir_.I64(count * features_), 1,
        [&](llvm::Value* e) {
          ir_.Store(held_,
                    ir_.Convert(
                        ir_.Load(s_.a, image_,
                                 ir_.Add(ir_.Mul(ir_.Add(ir_.Mul(from, InputExtent()), ir_.I64(skip)), features_), e)),
                        s_.a, held_),
                    slab_, ir_.Add(line_, ir_.Add(e, ir_.I64(first * features_))));
        },
        true);
    Zero(zeros + count, LineExtent());
  }

  // Positions with holes between them.
  void CopyApart(llvm::Value* from) {
    const WindowDim& w = s_.window[s_.spatial() - 1];
    Zero(0, LineExtent());
    ir_.Loop(ir_.I64(0), ir_.I64(InputExtent()), 1, [&](llvm::Value* p) {
      llvm::Value* at = b_.CreateAdd(ir_.Mul(p, w.lhs_dilate), ir_.I64(w.pad_low));
      ir_.If(b_.CreateICmpULT(at, ir_.I64(LineExtent())), [&] {
        ir_.Loop(
            ir_.I64(0), ir_.I64(features_), 1,
            [&](llvm::Value* e) {
              ir_.Store(held_,
                        ir_.Convert(ir_.Load(s_.a, image_,
                                             ir_.Add(ir_.Mul(ir_.Add(ir_.Mul(from, InputExtent()), p), features_), e)),
                                    s_.a, held_),
                        slab_, ir_.Add(line_, ir_.Add(ir_.Mul(at, features_), e)));
            },
            true);
      });
    });
  }

  Ir& ir_;
  llvm::IRBuilder<>& b_;
  const ConvolutionShape& s_;
  const Ints& extent_;
  const PrimitiveType held_;
  const int64_t features_;
  llvm::Value *const image_, *const slab_, *const first_;
  const int64_t lines_;
  llvm::Value* line_ = nullptr;  // where the current line begins in the slab
};

}  // namespace

void FillSlab(Ir& ir, const ConvolutionPlan& plan, llvm::Value* image, llvm::Value* slab, llvm::Value* first,
              int64_t lines) {
  SlabFiller(ir, plan, image, slab, first, lines).Fill(0, ir.I64(0), ir.I64(0), nullptr);
}

}  // namespace kiln::cpu
