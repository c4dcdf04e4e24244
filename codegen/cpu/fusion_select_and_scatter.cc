// Fusions around a select-and-scatter, as gradients of max pooling are.
//
// Windows that lie side by side along the minor dimension, channels mostly, are walked in vectors: each lane remembers
// which place of its window it chose, and a second walk over the window adds to that place. Other windows are walked
// one by one. An outermost dimension that no window reaches along is split among threads.
#include <algorithm>

#include "codegen/cpu/fusion.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::cpu {
namespace {

class SelectAndScatter {
 public:
  SelectAndScatter(FusionBody& fusion, const Instruction* root)
      : body_(fusion.body),
        ir_(fusion.ir),
        elements_(fusion.elements),
        root_(root),
        window_(root->attrs().window.value_or(attr::Win(root->shape().rank()))),
        lane_(LaneOf(root->shape(), window_)),
        width_(lane_ < 0 ? 1 : std::min(root->shape().dim(lane_), kWidest)),
        best_(fusion.ir, root->shape().type(), width_),
        source_(fusion.ir, root->shape().type(), width_),
        at_(root->shape().rank(), fusion.ir.I64(0)),
        origin_(at_) {
    mark_type_ = lane_ < 0 ? ir_.b.getInt64Ty() : ir_.b.getInt32Ty();
    marks_ = ir_.Alloca(mark_type_, width_);
  }

  absl::StatusOr<int64_t> Emit() {
    ASSIGN_OR_RETURN(init_, elements_.Emit(root_->operand(2), Index{}));
    const Shape& s = root_->shape();
    const int64_t split = SplitDim();
    const int64_t units = split < 0 ? 1 : s.dim(split), each = s.ElementCount() / std::max<int64_t>(units, 1);
    ir_.Loop(
        ir_.Mul(body_.begin, each), ir_.Mul(body_.end, each), 1,
        [&](llvm::Value* k) { ir_.Store(s.type(), init_, body_.results[0], k); }, true);
    Ints order;
    if (split >= 0) order.push_back(split);
    for (int64_t d : LoopOrder(root_->operand(1)->shape()))
      if (d != split && d != lane_) order.push_back(d);
    Origins(order, split >= 0, 0);
    RETURN_IF_ERROR(status_);
    return units;
  }

 private:
  static constexpr int64_t kWidest = 1024;  // lanes: what they remember stays in the first cache

  static bool Alone(const WindowDim& w) { return w.size == 1 && w.stride == 1 && !w.pad_low && !w.pad_high; }

  static int64_t LaneOf(const Shape& s, const attr::Win& window) {
    if (s.rank() == 0) return -1;
    const int64_t minor = MinorDim(s);
    return s.dim(minor) > 1 && Alone(window[static_cast<size_t>(minor)]) ? minor : -1;
  }

  // The outermost dimension in memory, if threads can share it; or -1.
  int64_t SplitDim() const {
    for (int64_t d : LoopOrder(root_->shape()))
      if (root_->shape().dim(d) != 1) return d != lane_ && Alone(window_[static_cast<size_t>(d)]) ? d : -1;
    return -1;
  }

  void Origins(const Ints& order, bool split, size_t k) {
    if (k == order.size()) return Lanes();
    const auto d = static_cast<size_t>(order[k]);
    const bool units = split && k == 0;
    const int64_t extent = root_->operand(1)->shape().dim(order[k]);
    ir_.Loop(units ? body_.begin : ir_.I64(0), units ? body_.end : ir_.I64(extent), 1, [&](llvm::Value* i) {
      origin_[d] = i;
      Origins(order, split, k + 1);
    });
  }

  void Lanes() {
    if (lane_ < 0) return Window(ir_.I64(0));
    const int64_t n = root_->shape().dim(lane_);
    if (n == width_) return Window(ir_.I64(0));
    ir_.Loop(ir_.I64(0), ir_.I64(n), width_, [&](llvm::Value* from) { Window(from); });
  }

  // The lanes from `from` on.
  void EachLane(llvm::Value* from, const std::function<void(llvm::Value*)>& visit) {
    if (lane_ < 0) return visit(ir_.I64(0));
    const auto d = static_cast<size_t>(lane_);
    const auto one = [&](llvm::Value* j) {
      at_[d] = origin_[d] = ir_.Add(from, j);
      visit(j);
    };
    const int64_t n = root_->shape().dim(lane_);
    if (n == width_) return ir_.VectorLoop(width_, one, true);
    llvm::Value* count =
        ir_.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.I64(width_), ir_.b.CreateSub(ir_.I64(n), from));
    ir_.Loop(ir_.I64(0), count, 1, one, true);
  }

  // Visits the places of the window at the origin that lie in the array, with their numbers.
  void Places(size_t d, llvm::Value* inside, llvm::Value* number, const std::function<void(llvm::Value*)>& visit) {
    if (d == window_.size()) return ir_.If(inside, [&] { visit(number); });
    if (static_cast<int64_t>(d) == lane_) return Places(d + 1, inside, number, visit);
    const WindowDim& w = window_[d];
    llvm::Value* first = ir_.b.CreateSub(ir_.Mul(origin_[d], w.stride), ir_.I64(w.pad_low));
    ir_.Loop(ir_.I64(0), ir_.I64(w.size), 1, [&](llvm::Value* k) {
      at_[d] = ir_.b.CreateAdd(first, k);  // may lie before the array
      llvm::Value* here = inside;
      if (w.pad_low || w.pad_high)
        here =
            ir_.b.CreateAnd(inside, ir_.b.CreateICmpULT(at_[d], ir_.I64(root_->shape().dim(static_cast<int64_t>(d)))));
      Places(d + 1, here, ir_.Add(ir_.Mul(number, w.size), k), visit);
    });
  }

  void Window(llvm::Value* from) {
    EachLane(from, [&](llvm::Value* j) {
      best_.Put(j, init_);
      ir_.b.CreateStore(llvm::ConstantInt::getSigned(mark_type_, -1), Mark(j));
      if (lane_ >= 0) source_.Put(j, Value(1, origin_));
    });
    Places(0, ir_.b.getTrue(), ir_.I64(0),
           [&](llvm::Value* number) { EachLane(from, [&](llvm::Value* j) { Choose(j, number); }); });
    if (lane_ >= 0)
      Places(0, ir_.b.getTrue(), ir_.I64(0),
             [&](llvm::Value* number) { EachLane(from, [&](llvm::Value* j) { AddIfChosen(j, number); }); });
    else
      AddToChosen();
  }

  // The array's element at `at_` against the lane's choice so far.
  void Choose(llvm::Value* j, llvm::Value* number) {
    const Val v = Value(0, at_), best = best_.Get(j);
    const Val keep = Apply(*root_->attrs().select, best, v);
    llvm::Value* mark = ir_.b.CreateLoad(mark_type_, Mark(j));
    llvm::Value* none = ir_.b.CreateICmpSLT(mark, llvm::ConstantInt::get(mark_type_, 0));
    llvm::Value* take = ir_.b.CreateOr(none, ir_.b.CreateNot(keep.re));
    best_.Put(j, Pick(take, v, best));
    llvm::Value* mine =
        lane_ < 0 ? elements_.Offset(root_->shape(), Index{at_}) : ir_.b.CreateTrunc(number, mark_type_);
    ir_.b.CreateStore(ir_.Select(take, mine, mark), Mark(j));
  }

  void AddIfChosen(llvm::Value* j, llvm::Value* number) {
    const PrimitiveType t = root_->shape().type();
    llvm::Value* where = elements_.Offset(root_->shape(), Index{at_});
    const Val old = ir_.Load(t, body_.results[0], where);
    const Val sum = Apply(*root_->attrs().scatter, old, source_.Get(j));
    llvm::Value* chosen =
        ir_.b.CreateICmpEQ(ir_.b.CreateLoad(mark_type_, Mark(j)), ir_.b.CreateTrunc(number, mark_type_));
    ir_.Store(t, Pick(chosen, sum, old), body_.results[0], where);
  }

  void AddToChosen() {
    const PrimitiveType t = root_->shape().type();
    llvm::Value* where = ir_.b.CreateLoad(mark_type_, Mark(ir_.I64(0)));
    ir_.If(ir_.b.CreateICmpSGE(where, ir_.I64(0)), [&] {
      const Val old = ir_.Load(t, body_.results[0], where);
      ir_.Store(t, Apply(*root_->attrs().scatter, old, Value(1, origin_)), body_.results[0], where);
    });
  }

  llvm::Value* Mark(llvm::Value* j) { return ir_.b.CreateInBoundsGEP(mark_type_, marks_, j); }
  Val Pick(llvm::Value* p, const Val& x, const Val& y) {
    return Val{ir_.Select(p, x.re, y.re), x.im ? ir_.Select(p, x.im, y.im) : nullptr};
  }
  // What cannot be emitted is zero, and the kernel an error.
  Val Value(int64_t operand, const std::vector<llvm::Value*>& at) {
    return Known(elements_.Emit(root_->operand(operand), Index{at}));
  }
  Val Apply(const Computation* f, const Val& x, const Val& y) {
    auto r = elements_.Apply(*f, {x, y});
    return r.ok() ? (*r)[0] : Known(r.status());
  }
  Val Known(const absl::StatusOr<Val>& v) {
    if (v.ok()) return *v;
    status_.Update(v.status());
    return init_;
  }

  Body& body_;
  Ir& ir_;
  ElementEmitter& elements_;
  const Instruction* root_;
  const attr::Win window_;
  const int64_t lane_;  // the dimension of the lanes; -1: there is one
  const int64_t width_;
  const Slots best_, source_;
  llvm::Type* mark_type_;
  llvm::Value* marks_;                     // the number of each lane's chosen place, or its offset; -1: none yet
  std::vector<llvm::Value*> at_, origin_;  // in the array, and in the source
  Val init_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<int64_t> EmitSelectAndScatter(FusionBody& fusion, const Instruction* root) {
  return SelectAndScatter(fusion, root).Emit();
}

}  // namespace kiln::cpu
