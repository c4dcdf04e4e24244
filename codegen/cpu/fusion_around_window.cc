// Fusions of one window and what is computed from its elements: pooling, sliding sums.
//
// Windows inside the array are unrolled and checked nowhere; a row of results is a loop of whole vectors. The others
// (at the edges, too large to unroll, or over elements that lie apart) are reduced tap by tap into a row of
// accumulators: where a tap meets the array is the bounds of its loop. Both reduce in one order.
#include <algorithm>

#include "codegen/cpu/fusion.h"
#include "codegen/elemental/reduced.h"
#include "compiler/hlo/unrounded_sums.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::cpu {
namespace {

constexpr int64_t kUnrolledTaps = 16;
constexpr int64_t kStripWidth = 2048;  // accumulators lie on the stack, in the first cache

class AroundWindow {
 public:
  AroundWindow(FusionBody& fusion, const Instruction* root, const Instruction* window)
      : fusion_(fusion),
        ir_(fusion.ir),
        root_(root),
        window_(window),
        shape_(root->shape()),
        in_(window->operand(0)->shape()),
        order_(UsefulFirst(shape_.dims(), LoopOrder(shape_))) {
    while (rows_ + 1 < order_.size() && shape_.dim(order_[rows_ + 1]) != 1) ++rows_;
    minor_ = order_[rows_];
    int64_t taps = 1;
    for (const WindowDim& w : *window->attrs().window) {
      taps *= w.size;
      unrolled_ = unrolled_ && w.lhs_dilate == 1;
    }
    unrolled_ = unrolled_ && taps <= kUnrolledTaps;
    for (int64_t d = 0; d < shape_.rank(); ++d)
      if (d != minor_ && Padded(d)) edges_.push_back(d);
  }

  absl::StatusOr<int64_t> Emit();

 private:
  using At = std::vector<llvm::Value*>;
  const WindowDim& Dim(int64_t d) const { return (*window_->attrs().window)[static_cast<size_t>(d)]; }
  // Where the array's last element lies along `d`, padding not counted.
  int64_t LastOf(int64_t d) const { return (in_.dim(d) - 1) * Dim(d).lhs_dilate; }
  bool Padded(int64_t d) const { return Dim(d).pad_low || Dim(d).pad_high || Dim(d).lhs_dilate > 1; }
  std::pair<int64_t, int64_t> InsideOf(int64_t d) const;
  llvm::Value* Clamp(llvm::Value* v, llvm::Value* low, llvm::Value* high);
  llvm::Value* RoundedUp(llvm::Value* v, int64_t by);
  llvm::Value* NextOf(llvm::Value* origin, int64_t by, llvm::Value* from);
  llvm::Value* Slot(llvm::Value* k);
  int64_t SlotsApart() const;
  void Loop(llvm::Value* begin, llvm::Value* end, const std::function<void(llvm::Value*)>& body);
  void Element(const At& at);
  void Row(const At& at, llvm::Value* begin, llvm::Value* end);
  void Inside(At at, llvm::Value* begin, llvm::Value* end);
  void TapByTap(At at, llvm::Value* begin, llvm::Value* end);
  void Taps(const At& at, At& source, int64_t d, llvm::Value* begin, llvm::Value* end);
  void Tap(At& source, llvm::Value* offset, llvm::Value* begin, llvm::Value* end);

  FusionBody& fusion_;
  Ir& ir_;
  const Instruction *root_, *window_;
  const Shape &shape_, &in_;
  const Ints order_;
  size_t rows_ = 0;  // dimensions around the one that is a loop of vectors
  int64_t minor_;    // that one
  bool unrolled_ = true;
  Ints edges_;  // dimensions but the innermost whose windows may reach over the ends
  std::unique_ptr<Slots> acc_;
  absl::Status status_;
};

// Positions [from, to) of `d` whose windows lie inside the array.
std::pair<int64_t, int64_t> AroundWindow::InsideOf(int64_t d) const {
  const WindowDim& w = Dim(d);
  const int64_t count = shape_.dim(d);
  const int64_t from = w.pad_low <= 0 ? 0 : (w.pad_low + w.stride - 1) / w.stride;
  const int64_t last = in_.dim(d) + w.pad_low - w.DilatedSize();  // that a window may begin at, padding counted
  const int64_t to = last < 0 ? 0 : last / w.stride + 1;
  return {std::min(from, count), std::max(std::min(from, count), std::min(to, count))};
}

llvm::Value* AroundWindow::Clamp(llvm::Value* v, llvm::Value* low, llvm::Value* high) {
  v = ir_.b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v, low);
  return ir_.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, v, high);
}

// v / by, rounded up; what is negative stays so, or becomes 0.
llvm::Value* AroundWindow::RoundedUp(llvm::Value* v, int64_t by) {
  return by == 1 ? v : ir_.b.CreateSDiv(ir_.b.CreateNSWAdd(v, ir_.I64(by - 1)), ir_.I64(by));
}

// The first place from `from` on that is a multiple of `by` behind `origin`.
llvm::Value* AroundWindow::NextOf(llvm::Value* origin, int64_t by, llvm::Value* from) {
  if (by == 1) return from;
  llvm::Value* rest = ir_.b.CreateSRem(ir_.b.CreateNSWSub(origin, from), ir_.I64(by));
  llvm::Value* behind = ir_.b.CreateICmpSLT(rest, ir_.I64(0));
  return ir_.b.CreateNSWAdd(from, ir_.Select(behind, ir_.b.CreateNSWAdd(rest, ir_.I64(by)), rest));
}

// The accumulator of the row's result `k`. Where elements lie d apart a tap meets every d-th result: the accumulators
// of those lie side by side.
llvm::Value* AroundWindow::Slot(llvm::Value* k) {
  llvm::Value* apart = ir_.I64(Dim(minor_).lhs_dilate);
  return ir_.Add(ir_.Mul(ir_.b.CreateURem(k, apart), SlotsApart()), ir_.b.CreateUDiv(k, apart));
}

// How far neighbours lie from each other then.
int64_t AroundWindow::SlotsApart() const {
  const int64_t apart = Dim(minor_).lhs_dilate;
  return (std::min(shape_.dim(minor_), kStripWidth) + apart - 1) / apart;
}

void AroundWindow::Loop(llvm::Value* begin, llvm::Value* end, const std::function<void(llvm::Value*)>& body) {
  const auto *first = llvm::dyn_cast<llvm::ConstantInt>(begin), *last = llvm::dyn_cast<llvm::ConstantInt>(end);
  if (first && first->isZero() && last) return ir_.VectorLoop(last->getSExtValue(), body, true);
  ir_.Loop(begin, end, 1, body, true);
}

void AroundWindow::Element(const At& at) {
  if (!status_.ok()) return;
  const Index x = IndexIn(shape_, at);
  const auto v = fusion_.elements.Emit(root_, x);
  if (!v.ok()) {
    status_ = v.status();
    return;
  }
  ir_.Store(shape_.type(), *v, fusion_.body.results[0], fusion_.elements.Offset(shape_, x));
}

// Windows that are in the array in every other dimension, those at the ends of this one apart.
void AroundWindow::Inside(At at, llvm::Value* begin, llvm::Value* end) {
  const size_t minor = static_cast<size_t>(minor_);
  std::vector<bool> inside(at.size(), true);
  const auto range = [&](llvm::Value* first, llvm::Value* last, bool whole) {
    inside[minor] = whole;
    fusion_.elements.WindowsInside(window_, inside);
    const auto step = [&](llvm::Value* j) {
      at[minor] = j;
      Element(at);
    };
    if (whole)
      Loop(first, last, step);
    else
      ir_.Loop(first, last, 1, step);
  };
  if (Padded(minor_)) {
    const auto [from, to] = InsideOf(minor_);
    llvm::Value* first = Clamp(ir_.I64(from), begin, end);
    llvm::Value* last = Clamp(ir_.I64(to), begin, end);
    range(begin, first, false);
    range(first, last, true);
    range(last, end, false);
  } else {
    range(begin, end, true);
  }
  fusion_.elements.WindowsInside(nullptr, {});
}

// One tap of results [begin, end), which lies `offset` behind where their windows begin.
void AroundWindow::Tap(At& source, llvm::Value* offset, llvm::Value* begin, llvm::Value* end) {
  const int64_t stride = Dim(minor_).stride, apart = Dim(minor_).lhs_dilate;
  llvm::Value *first = begin, *last = end;
  if (Padded(minor_)) {
    const auto bound = [&](int64_t place) {
      return Clamp(RoundedUp(ir_.b.CreateSub(ir_.I64(place), offset), stride), begin, end);
    };
    first = bound(0);
    last = bound(LastOf(minor_) + 1);
  }
  const auto take = [&](llvm::Value* place, llvm::Value* slot) {
    if (!status_.ok()) return;
    source[static_cast<size_t>(minor_)] = place;
    const auto v = fusion_.elements.Emit(window_->operand(0), IndexIn(in_, source));
    if (!v.ok()) return status_.Update(v.status());
    const auto r = Combine(fusion_.elements, window_, {acc_->Get(slot), *v});
    if (!r.ok()) return status_.Update(r.status());
    acc_->Put(slot, (*r)[0]);
  };
  if (apart == 1)
    return ir_.Loop(
        first, last, 1,
        [&](llvm::Value* j) { take(ir_.b.CreateNSWAdd(ir_.Mul(j, stride), offset), ir_.b.CreateSub(j, begin)); }, true);
  first = NextOf(ir_.b.CreateNeg(offset), apart, first);
  llvm::Value* place = ir_.b.CreateSDiv(ir_.b.CreateNSWAdd(first, offset), ir_.I64(apart));
  llvm::Value* slot = Slot(ir_.b.CreateSub(first, begin));
  ir_.Loop(
      ir_.I64(0), RoundedUp(ir_.b.CreateNSWSub(last, first), apart), 1,
      [&](llvm::Value* k) { take(ir_.b.CreateNSWAdd(place, k), ir_.Add(slot, k)); }, true);
}

// The taps of dimensions from `d` on, the last one's offset along the innermost dimension being known by then.
void AroundWindow::Taps(const At& at, At& source, int64_t d, llvm::Value* begin, llvm::Value* end) {
  if (d == shape_.rank()) return Tap(source, source[static_cast<size_t>(minor_)], begin, end);
  const size_t k = static_cast<size_t>(d);
  const WindowDim& w = Dim(d);
  const auto step = [&](llvm::Value* tap) {
    llvm::Value* offset = ir_.b.CreateSub(ir_.Mul(tap, w.rhs_dilate), ir_.I64(w.pad_low));
    source[k] = offset;
    if (d != minor_)
      source[k] = ir_.b.CreateSDiv(ir_.b.CreateNSWAdd(ir_.Mul(at[k], w.stride), offset), ir_.I64(w.lhs_dilate));
    Taps(at, source, d + 1, begin, end);
  };
  llvm::Value *first = ir_.I64(0), *last = ir_.I64(w.size);
  if (d != minor_ && Padded(d)) {
    llvm::Value* start = ir_.b.CreateSub(ir_.I64(w.pad_low), ir_.Mul(at[k], w.stride));
    const auto bound = [&](int64_t place) {
      return Clamp(RoundedUp(ir_.b.CreateNSWAdd(start, ir_.I64(place)), w.rhs_dilate), ir_.I64(0), ir_.I64(w.size));
    };
    first = NextOf(start, w.lhs_dilate, bound(0));
    last = bound(LastOf(d) + 1);
  }
  ir_.Loop(first, last, d == minor_ ? 1 : w.lhs_dilate, step);
}

void AroundWindow::TapByTap(At at, llvm::Value* begin, llvm::Value* end) {
  const int64_t width = std::min(shape_.dim(minor_), kStripWidth), apart = Dim(minor_).lhs_dilate;
  acc_ = std::make_unique<Slots>(ir_, window_->shape().type(), apart * SlotsApart());
  const auto init = fusion_.elements.Emit(window_->operand(1), Index{});
  if (!init.ok()) {
    status_ = init.status();
    return;
  }
  ir_.Loop(begin, end, width, [&](llvm::Value* first) {
    llvm::Value* last = ir_.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.Add(first, ir_.I64(width)), end);
    llvm::Value* count = ir_.b.CreateSub(last, first);
    ir_.Loop(ir_.I64(0), apart == 1 ? count : ir_.I64(apart * SlotsApart()), 1,
             [&](llvm::Value* j) { acc_->Put(j, *init); });
    At source(at.size());
    Taps(at, source, 0, first, last);
    const auto finish = [&](llvm::Value* j, llvm::Value* slot) {
      at[static_cast<size_t>(minor_)] = j;
      Val sum = acc_->Get(slot);
      if (SumsUnrounded(window_)) sum.re = ir_.Round(window_->shape().type(), sum.re);
      fusion_.elements.Preset(window_, sum);
      Element(at);
    };
    if (apart == 1)
      return ir_.Loop(
          first, last, 1, [&](llvm::Value* j) { finish(j, ir_.b.CreateSub(j, first)); }, true);
    llvm::Value* groups = ir_.b.CreateUDiv(count, ir_.I64(apart));
    ir_.Loop(
        ir_.I64(0), groups, 1,
        [&](llvm::Value* k) {
          llvm::Value* group = ir_.Add(first, ir_.Mul(k, apart));
          for (int64_t r = 0; r < apart; ++r) finish(ir_.Add(group, ir_.I64(r)), ir_.Add(k, ir_.I64(r * SlotsApart())));
        },
        true);
    ir_.Loop(ir_.Mul(groups, apart), count, 1, [&](llvm::Value* k) { finish(ir_.Add(first, k), Slot(k)); });
  });
}

void AroundWindow::Row(const At& at, llvm::Value* begin, llvm::Value* end) {
  if (!unrolled_) return TapByTap(at, begin, end);
  if (edges_.empty()) return Inside(at, begin, end);
  llvm::Value* inside = nullptr;
  for (const int64_t d : edges_) {
    const auto [from, to] = InsideOf(d);
    llvm::Value* place = ir_.b.CreateSub(at[static_cast<size_t>(d)], ir_.I64(from));
    llvm::Value* c = ir_.b.CreateICmpULT(place, ir_.I64(to - from));
    inside = inside ? ir_.b.CreateAnd(inside, c) : c;
  }
  ir_.If(inside, [&] { Inside(at, begin, end); });
  ir_.If(ir_.b.CreateNot(inside), [&] { TapByTap(at, begin, end); });
}

absl::StatusOr<int64_t> AroundWindow::Emit() {
  if (rows_ == 0) {
    Row(At(order_.size(), ir_.I64(0)), fusion_.body.begin, fusion_.body.end);
  } else {
    const auto row = [&](const At& at) {
      Row(at, ir_.I64(0), ir_.I64(shape_.dim(minor_)));
      return status_;
    };
    RETURN_IF_ERROR(
        Nest(fusion_, shape_.dims(), Ints(order_.begin(), order_.begin() + static_cast<int64_t>(rows_)), row, false));
  }
  RETURN_IF_ERROR(status_);
  return Units(shape_.dims(), order_);
}

}  // namespace

const Instruction* WindowAmong(const Instruction* root) {
  const Instruction* found = nullptr;
  absl::flat_hash_set<const Instruction*> seen;
  std::vector<const Instruction*> open = {root};
  while (!open.empty()) {
    const Instruction* i = open.back();
    open.pop_back();
    if (!seen.insert(i).second) continue;
    if (i->Is(Opcode::ReduceWindow)) {
      if (found) return nullptr;
      found = i;
    } else if (i->IsElementwise()) {
      open.insert(open.end(), i->operands().begin(), i->operands().end());
    } else if (const Instruction* leaf = i->Is(Opcode::Broadcast) ? i->operand(0) : i;
               !leaf->Is(Opcode::Parameter) && !leaf->Is(Opcode::Constant)) {
      return nullptr;
    }
  }
  if (!found || !found->shape().IsArray() || found->shape().rank() == 0) return nullptr;
  for (const WindowDim& w : *found->attrs().window)
    if (w.lhs_dilate != 1 && !(w.stride == 1 && w.rhs_dilate == 1)) return nullptr;
  return found;
}

absl::StatusOr<int64_t> EmitAroundWindow(FusionBody& fusion, const Instruction* root, const Instruction* window) {
  return AroundWindow(fusion, root, window).Emit();
}

}  // namespace kiln::cpu
