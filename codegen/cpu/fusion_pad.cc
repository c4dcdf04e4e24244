// Padding between elements, as the gradient of a stride has it: loops run over what is padded, and the padding before,
// between and behind it is filled in runs. A test at every element, with a division for its place, takes longer.
#include <algorithm>

#include "codegen/cpu/fusion.h"
#include "codegen/cpu/matmul.h"

namespace kiln::cpu {
namespace {

// A dimension of the operand in the result.
struct Line {
  int64_t first, count;    // the places that the result keeps
  int64_t step;            // from one to the next in the result
  int64_t before, behind;  // places of the result around them
};

Line LineOf(const PadDim& p, int64_t extent, int64_t result) {
  const int64_t step = p.interior + 1;
  const auto up = [step](int64_t n) { return n <= 0 ? 0 : (n + step - 1) / step; };
  const int64_t first = std::min(extent, up(-p.low));
  const int64_t count = std::max<int64_t>(0, std::min(extent, up(result - p.low)) - first);
  const int64_t before = count ? p.low + first * step : result;
  return {first, count, step, before, count ? result - before - (count - 1) * step - 1 : 0};
}

class PadBetween {
 public:
  PadBetween(FusionBody& fusion, const Instruction* root, const Val& fill)
      : fusion_(fusion),
        ir_(fusion.ir),
        root_(root),
        s_(root->shape()),
        from_(root->operand(0)->shape()),
        fill_(fill),
        order_(UsefulLoops(s_)),
        strides_(s_.Strides()),
        at_(s_.dims().size(), ir_.I64(0)) {
    for (int64_t d = 0; d < s_.rank(); ++d) {
      lines_.push_back(LineOf((*root->attrs().padding)[static_cast<size_t>(d)], from_.dim(d), s_.dim(d)));
      at_[static_cast<size_t>(d)] = ir_.I64(lines_.back().first);
    }
    // Dimensions of extent 1 are no loops, but may hold padding alone.
    none_ = std::any_of(lines_.begin(), lines_.end(), [](const Line& l) { return l.count == 0; });
  }

  absl::StatusOr<int64_t> Emit() {
    if (order_.size() == 1) return EmitLine();
    const int64_t d = order_[0];
    const Line& l = lines_[static_cast<size_t>(d)];
    ir_.Loop(fusion_.body.begin, fusion_.body.end, 1, [&](llvm::Value* i) {
      if (none_) return Fill(ir_.Mul(i, strides_[static_cast<size_t>(d)]), strides_[static_cast<size_t>(d)]);
      llvm::Value *place = ir_.b.CreateSub(i, ir_.I64(l.before)), *step = ir_.I64(l.step);
      llvm::Value* k = ir_.b.CreateUDiv(place, step);
      llvm::Value* inside = ir_.b.CreateAnd(ir_.b.CreateICmpEQ(ir_.b.CreateURem(place, step), ir_.I64(0)),
                                            ir_.b.CreateICmpULT(k, ir_.I64(l.count)));
      llvm::Value* begin = ir_.Mul(i, strides_[static_cast<size_t>(d)]);
      const auto row = [&] {
        at_[static_cast<size_t>(d)] = ir_.Add(k, ir_.I64(l.first));
        Block(1, begin);
      };
      EitherOr(inside, row, [&] { Fill(begin, strides_[static_cast<size_t>(d)]); });
    });
    RETURN_IF_ERROR(status_);
    return s_.dim(d);
  }

 private:
  // The only dimension, in pieces of what is padded.
  absl::StatusOr<int64_t> EmitLine() {
    constexpr int64_t kPiece = 2048;  // elements
    const auto d = static_cast<size_t>(order_[0]);
    const Line l = none_ ? Line{0, 0, 1, s_.dim(order_[0]), 0} : lines_[d];
    const Pieces pieces = Pieces::Of(l.count, std::clamp<int64_t>(l.count, 1, kPiece));
    ir_.Loop(fusion_.body.begin, fusion_.body.end, 1, [&](llvm::Value* k) {
      ir_.If(ir_.b.CreateICmpEQ(k, ir_.I64(0)), [&] { Fill(ir_.I64(0), l.before); });
      VisitPiece(ir_, pieces, k, [&](llvm::Value* from, int64_t count) { Piece(l, d, from, count); });
    });
    RETURN_IF_ERROR(status_);
    return std::max<int64_t>(1, pieces.count);
  }

  // `count` elements of the only dimension from `from` on, with the padding behind each.
  void Piece(const Line& l, size_t d, llvm::Value* from, int64_t count) {
    if (count == 0) return;
    llvm::Value* begin = ir_.Add(ir_.Mul(from, l.step), ir_.I64(l.before));
    const Line piece = {l.first, count, l.step, 0, 0};
    const int64_t places = (count - 1) * l.step + 1;
    if (l.step > 1 && !InGroups(piece)) Fill(begin, places);
    Elements(piece, [&](llvm::Value* k) {
      at_[d] = ir_.Add(ir_.Add(from, k), ir_.I64(l.first));
      return ir_.Add(begin, ir_.Mul(k, l.step));
    });
    llvm::Value *behind = ir_.Add(begin, ir_.I64(places)), *last = ir_.I64(l.count - count);
    EitherOr(
        ir_.b.CreateICmpEQ(from, last), [&] { Fill(behind, l.behind); }, [&] { Fill(behind, l.step - 1); });
  }

  // The elements of the dimensions from order_[level] on, which begin at element `begin` of the result.
  void Block(size_t level, llvm::Value* begin) {
    const auto d = static_cast<size_t>(order_[level]);
    const Line& l = lines_[d];
    const int64_t inner = strides_[d];
    const bool last = level + 1 == order_.size(), whole = last && l.step > 1 && !InGroups(l);
    Fill(begin, (whole ? s_.dim(static_cast<int64_t>(d)) : l.before) * inner);
    llvm::Value* first = ir_.Add(begin, ir_.I64(l.before * inner));
    const auto at = [&](llvm::Value* k) {
      at_[d] = ir_.Add(k, ir_.I64(l.first));
      return ir_.Add(first, ir_.Mul(k, l.step * inner));
    };
    if (last) {
      Elements(l, at);
      if (whole) return;
    } else {
      ir_.Loop(ir_.I64(0), ir_.I64(l.count), 1, [&](llvm::Value* k) {
        llvm::Value* to = at(k);
        Block(level + 1, to);
        if (l.step > 1)
          ir_.If(ir_.b.CreateICmpNE(k, ir_.I64(l.count - 1)),
                 [&] { Fill(ir_.Add(to, ir_.I64(inner)), (l.step - 1) * inner); });
      });
    }
    Fill(ir_.Add(first, ir_.I64(((l.count - 1) * l.step + 1) * inner)), l.behind * inner);
  }

  // Whether elements are stored with the padding behind each, in vectors that are shuffled: cheaper than stores of
  // elements alone on a row that was filled, where there are many and they lie near each other.
  bool InGroups(const Line& l) const {
    constexpr int64_t kNear = 4, kMany = 32;
    return l.step <= kNear && l.count >= kMany && !IsComplex(s_.type());
  }

  void Elements(const Line& l, const std::function<llvm::Value*(llvm::Value*)>& at) {
    const auto element = [&](llvm::Value* k, int64_t between) {
      llvm::Value* to = at(k);
      const auto v = fusion_.elements.Emit(root_->operand(0), IndexIn(from_, at_));
      status_.Update(v.status());
      if (!v.ok()) return;
      ir_.Store(s_.type(), ir_.Convert(*v, from_.type(), s_.type()), fusion_.body.results[0], to);
      for (int64_t j = 1; j <= between; ++j)
        ir_.Store(s_.type(), fill_, fusion_.body.results[0], ir_.Add(to, ir_.I64(j)));
    };
    if (l.step == 1)
      return ir_.VectorLoop(
          l.count, [&](llvm::Value* k) { element(k, 0); }, true);
    if (!InGroups(l))
      return ir_.Loop(
          ir_.I64(0), ir_.I64(l.count), 1, [&](llvm::Value* k) { element(k, 0); }, true);
    ir_.Loop(
        ir_.I64(0), ir_.I64(l.count - 1), 1, [&](llvm::Value* k) { element(k, l.step - 1); }, true);
    element(ir_.I64(l.count - 1), 0);
  }

  void Fill(llvm::Value* begin, int64_t count) {
    ir_.VectorLoop(
        count, [&](llvm::Value* k) { ir_.Store(s_.type(), fill_, fusion_.body.results[0], ir_.Add(begin, k)); }, true);
  }

  void EitherOr(llvm::Value* cond, const std::function<void()>& then, const std::function<void()>& otherwise) {
    ir_.If(cond, then);
    ir_.If(ir_.b.CreateNot(cond), otherwise);
  }

  FusionBody& fusion_;
  Ir& ir_;
  const Instruction* const root_;
  const Shape &s_, &from_;
  const Val fill_;
  const Ints order_, strides_;
  std::vector<llvm::Value*> at_;  // in the operand
  std::vector<Line> lines_;
  bool none_ = false;  // of the operand's elements are in the result
  absl::Status status_;
};

}  // namespace

bool PadsBetween(const Instruction* root) {
  if (!root->Is(Opcode::Pad) || root->operand(0)->shape().ElementCount() == 0 || !root->shape().HasDefaultLayout())
    return false;
  const Ints& dims = root->shape().dims();
  const attr::Padding& padding = *root->attrs().padding;
  return std::any_of(padding.begin(), padding.end(), [](const PadDim& p) { return p.interior != 0; }) &&
         std::any_of(dims.begin(), dims.end(), [](int64_t n) { return n != 1; });
}

absl::StatusOr<int64_t> EmitPadBetween(FusionBody& fusion, const Instruction* root) {
  const Shape& s = root->shape();
  ASSIGN_OR_RETURN(Val fill, fusion.elements.Emit(root->operand(1), Index{}));
  fill = fusion.ir.Convert(fill, root->operand(1)->shape().type(), s.type());
  return PadBetween(fusion, root, fill).Emit();
}

}  // namespace kiln::cpu
