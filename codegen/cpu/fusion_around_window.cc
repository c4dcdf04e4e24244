// Fusions of one window and what is computed from its elements: pooling, sliding sums.
//
// Windows inside the array are unrolled and checked nowhere; a row of results is a loop of whole vectors. The others
// (at the edges, or too large to unroll) are reduced tap by tap into a row of accumulators: where a tap meets the array
// is the bounds of its loop. Both reduce in one order.
#include <algorithm>

#include "codegen/cpu/fusion.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::cpu {
namespace {

constexpr int64_t kUnrolledTaps = 16;  // LLVM leaves larger windows as loops, which then are not vectors
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
    for (const WindowDim& w : *window->attrs().window) taps *= w.size;
    unrolled_ = taps <= kUnrolledTaps;
    for (int64_t d = 0; d < shape_.rank(); ++d)
      if (d != minor_ && Padded(d)) edges_.push_back(d);
  }

  absl::StatusOr<int64_t> Emit();

 private:
  using At = std::vector<llvm::Value*>;
  const WindowDim& Dim(int64_t d) const { return (*window_->attrs().window)[static_cast<size_t>(d)]; }
  bool Padded(int64_t d) const { return Dim(d).pad_low || Dim(d).pad_high; }
  std::pair<int64_t, int64_t> InsideOf(int64_t d) const;
  llvm::Value* Clamp(llvm::Value* v, llvm::Value* low, llvm::Value* high);
  llvm::Value* RoundedUp(llvm::Value* v, int64_t by);
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
  bool unrolled_;
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
  const int64_t stride = Dim(minor_).stride;
  llvm::Value *first = begin, *last = end;
  if (Padded(minor_)) {
    const auto bound = [&](int64_t place) {
      return Clamp(RoundedUp(ir_.b.CreateSub(ir_.I64(place), offset), stride), begin, end);
    };
    first = bound(0);
    last = bound(in_.dim(minor_));
  }
  ir_.Loop(
      first, last, 1,
      [&](llvm::Value* j) {
        if (!status_.ok()) return;
        source[static_cast<size_t>(minor_)] = ir_.b.CreateNSWAdd(ir_.Mul(j, stride), offset);
        const auto v = fusion_.elements.Emit(window_->operand(0), IndexIn(in_, source));
        if (!v.ok()) {
          status_ = v.status();
          return;
        }
        llvm::Value* slot = ir_.b.CreateSub(j, begin);
        const auto r = fusion_.elements.Apply(**window_->attrs().to_apply, {acc_->Get(slot), *v});
        if (!r.ok()) {
          status_ = r.status();
          return;
        }
        acc_->Put(slot, (*r)[0]);
      },
      true);
}

// The taps of dimensions from `d` on, the last one's offset along the innermost dimension being known by then.
void AroundWindow::Taps(const At& at, At& source, int64_t d, llvm::Value* begin, llvm::Value* end) {
  if (d == shape_.rank()) return Tap(source, source[static_cast<size_t>(minor_)], begin, end);
  const size_t k = static_cast<size_t>(d);
  const WindowDim& w = Dim(d);
  const auto step = [&](llvm::Value* tap) {
    llvm::Value* offset = ir_.b.CreateSub(ir_.Mul(tap, w.rhs_dilate), ir_.I64(w.pad_low));
    source[k] = d == minor_ ? offset : ir_.b.CreateNSWAdd(ir_.Mul(at[k], w.stride), offset);
    Taps(at, source, d + 1, begin, end);
  };
  llvm::Value *first = ir_.I64(0), *last = ir_.I64(w.size);
  if (d != minor_ && Padded(d)) {
    llvm::Value* start = ir_.b.CreateSub(ir_.I64(w.pad_low), ir_.Mul(at[k], w.stride));
    const auto bound = [&](int64_t place) {
      return Clamp(RoundedUp(ir_.b.CreateNSWAdd(start, ir_.I64(place)), w.rhs_dilate), ir_.I64(0), ir_.I64(w.size));
    };
    first = bound(0);
    last = bound(in_.dim(d));
  }
  ir_.Loop(first, last, 1, step);
}

void AroundWindow::TapByTap(At at, llvm::Value* begin, llvm::Value* end) {
  const int64_t width = std::min(shape_.dim(minor_), kStripWidth);
  acc_ = std::make_unique<Slots>(ir_, window_->shape().type(), width);
  const auto init = fusion_.elements.Emit(window_->operand(1), Index{});
  if (!init.ok()) {
    status_ = init.status();
    return;
  }
  ir_.Loop(begin, end, width, [&](llvm::Value* first) {
    llvm::Value* last = ir_.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.Add(first, ir_.I64(width)), end);
    llvm::Value* count = ir_.b.CreateSub(last, first);
    ir_.Loop(ir_.I64(0), count, 1, [&](llvm::Value* j) { acc_->Put(j, *init); });
    At source(at.size());
    Taps(at, source, 0, first, last);
    ir_.Loop(
        first, last, 1,
        [&](llvm::Value* j) {
          at[static_cast<size_t>(minor_)] = j;
          fusion_.elements.Preset(window_, acc_->Get(ir_.b.CreateSub(j, first)));
          Element(at);
        },
        true);
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
    if (w.lhs_dilate != 1) return nullptr;
  return found;
}

absl::StatusOr<int64_t> EmitAroundWindow(FusionBody& fusion, const Instruction* root, const Instruction* window) {
  return AroundWindow(fusion, root, window).Emit();
}

}  // namespace kiln::cpu
