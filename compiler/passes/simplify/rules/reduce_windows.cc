// Windows that are a pad, a reduction or a count, and what pads and slices around them add.
#include <algorithm>
#include <cmath>

#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/simplify/rules/pattern.h"
#include "compiler/passes/simplify/rules/reducer.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

bool IsPlainWindow(const Instruction* i) {
  return i->Is(Opcode::ReduceWindow) && i->operand_count() == 2 && i->shape().IsArray() && IsStatic(i);
}

attr::Win WindowOf(const Instruction* i) {
  return i->attrs().window.value_or(attr::Win(i->operand(0)->shape().dims().size()));
}

// One element a window, and no holes: the operation with the initial value, and the padding.
Instruction* OfOneElement(Instruction* i) {
  if (!IsPlainWindow(i)) return nullptr;
  const std::optional<Opcode> op = ReducerOf(i);
  if (op != Opcode::Add && op != Opcode::Maximum && op != Opcode::Minimum) return nullptr;
  attr::Padding padding;
  for (const WindowDim& w : WindowOf(i)) {
    if (w.size != 1 || w.stride != 1 || w.lhs_dilate != 1 || w.rhs_dilate != 1 || w.reversed) return nullptr;
    padding.push_back({w.pad_low, w.pad_high, 0});
  }
  Instruction *x = i->operand(0), *initial = i->operand(1);
  Expr value = Binary(*op, BroadcastTo(initial, x->shape().dims()), x);
  const auto nothing = [](const PadDim& p) { return p.low == 0 && p.high == 0; };
  if (std::all_of(padding.begin(), padding.end(), nothing)) return value.get();
  Instruction* pad = i->parent()->Add(Opcode::Pad, i->shape(), {value.get(), initial});
  pad->mutable_attrs().padding = padding;
  return pad;
}

// Each dimension whole in one window, or left alone.
Instruction* OfWholeDimensions(Instruction* i) {
  if (!IsPlainWindow(i)) return nullptr;
  const attr::Win window = WindowOf(i);
  Ints reduced;
  for (size_t d = 0; d < window.size(); ++d) {
    WindowDim alone = window[d];
    alone.size = 1;
    alone.reversed = false;
    if (!(alone == WindowDim())) return nullptr;
    if (window[d].size == 1) continue;
    if (i->shape().dim(static_cast<int64_t>(d)) != 1) return nullptr;
    reduced.push_back(static_cast<int64_t>(d));
  }
  if (reduced.empty()) return nullptr;
  return ReshapeTo(ReduceOf(i->operand(0), i->operand(1), reduced, *i->attrs().to_apply), i->shape().dims()).get();
}

// The dimension that `i` cumulates from its start, with every other left alone; -1: it is no such window.
int64_t RunningDim(const Instruction* i) {
  const attr::Win window = WindowOf(i);
  int64_t dim = -1;
  for (size_t d = 0; d < window.size(); ++d) {
    if (window[d] == WindowDim()) continue;
    WindowDim whole;
    whole.size = i->operand(0)->shape().dim(static_cast<int64_t>(d));
    whole.pad_low = whole.size - 1;
    if (dim >= 0 || !(window[d] == whole)) return -1;
    dim = static_cast<int64_t>(d);
  }
  return dim;
}

// The scalar that every element of `x` is, converted as `x` converts it; nothing if that is not a constant.
std::optional<Expr> RepeatedConstant(Instruction* x) {
  std::vector<PrimitiveType> conversions;
  while (!x->Is(Opcode::Constant)) {
    switch (x->opcode()) {
      case Opcode::Convert:
        conversions.push_back(x->shape().type());
        break;
      case Opcode::Reshape:
      case Opcode::Bitcast:
      case Opcode::Slice:
      case Opcode::Copy:
      case Opcode::Broadcast:
        break;
      default:
        return std::nullopt;
    }
    if (x->Is(Opcode::Bitcast) && x->shape().type() != x->operand(0)->shape().type()) return std::nullopt;
    x = x->operand(0);
  }
  if (x->shape().ElementCount() != 1) return std::nullopt;
  Expr scalar = ReshapeTo(x, {});
  for (auto t = conversions.rbegin(); t != conversions.rend(); ++t) scalar = ConvertTo(*t, scalar);
  return scalar;
}

// The running sum of a constant is the constant times how many there were.
Instruction* RunningSumOfConstant(Instruction* i) {
  if (!IsPlainWindow(i) || ReducerOf(i) != Opcode::Add || !pattern::IsAll(i->operand(1), 0)) return nullptr;
  const int64_t dim = RunningDim(i);
  if (dim < 0) return nullptr;
  const PrimitiveType t = i->shape().type();
  if (IsFloat(t) && !std::isfinite(RoundToType(t, static_cast<double>(i->shape().dim(dim))))) return nullptr;
  const std::optional<Expr> value = RepeatedConstant(i->operand(0));
  if (!value) return nullptr;
  const PrimitiveType counted = BitWidth(t) == 64 && IsIntegral(t) ? PrimitiveType::S64 : PrimitiveType::S32;
  Expr place = IotaOf(i->parent(), counted, i->shape().dims(), dim);
  Expr one = IntegerIn(i->parent(), counted, 1);
  Expr count = ConvertTo(t, place + BroadcastTo(one, i->shape().dims()));
  return (BroadcastTo(*value, i->shape().dims()) * count).get();
}

// A pad, seen through one conversion.
Instruction* PadOf(Instruction* x) {
  if (x->Is(Opcode::Convert)) x = x->operand(0);
  return x->Is(Opcode::Pad) ? x : nullptr;
}

bool IsInitial(const Instruction* pad_value, const Instruction* initial) {
  if (pad_value->shape().type() == initial->shape().type()) return SameScalar(pad_value, initial);
  const Literal *p = pattern::SplatOf(pad_value), *q = pattern::SplatOf(initial);
  if (!p || !q || !IsFloat(p->type()) || !IsFloat(q->type())) return false;
  return pattern::IsAll(initial, RoundToType(q->type(), p->Get(0).re));
}

// A pad of a long running reduction is worth keeping apart: cut into blocks, the reduction is cheaper than its padding.
bool IsWorthFolding(const Instruction* i, const Instruction* pad) {
  constexpr double kLeast = 0.1;
  if (pad == i->operand(0)) return true;
  Ints wide;
  const attr::Win window = WindowOf(i);
  for (size_t d = 0; d < window.size(); ++d)
    if (!(window[d] == WindowDim())) wide.push_back(static_cast<int64_t>(d));
  if (wide.size() != 1) return true;
  const PadDim& p = (*pad->attrs().padding)[static_cast<size_t>(wide[0])];
  return static_cast<double>(p.low + p.high) >= kLeast * static_cast<double>(pad->shape().dim(wide[0]));
}

// Padding with the initial value, where one more of it makes no difference, is the window's own padding.
Instruction* OfPad(Instruction* i) {
  if (!IsPlainWindow(i)) return nullptr;
  Instruction* pad = PadOf(i->operand(0));
  const std::optional<Opcode> op = ReducerOf(i);
  if (!pad || !op || !IsInitial(pad->operand(1), i->operand(1)) ||
      !InitialMayRepeat(*op, i->shape().type(), i->operand(1)) || !IsWorthFolding(i, pad))
    return nullptr;
  attr::Win window = WindowOf(i);
  for (size_t d = 0; d < window.size(); ++d) {
    const PadDim& p = (*pad->attrs().padding)[d];
    WindowDim& w = window[d];
    if (p.low < 0 || p.high < 0 || (p.interior != 0 && w.lhs_dilate != 1)) return nullptr;
    w.pad_low += p.low * w.lhs_dilate;
    w.pad_high += p.high * w.lhs_dilate;
    if (p.interior != 0) w.lhs_dilate = p.interior + 1;
  }
  Expr x = ConvertTo(i->shape().type(), pad->operand(0));
  Instruction* folded = i->parent()->AddClone(i, i->shape(), {x.get(), i->operand(1)});
  folded->mutable_attrs().window = window;
  return folded;
}

// Windows over what is repeated: only once where each has one element of a dimension along which nothing changes.
Instruction* OfRepeats(Instruction* i) {
  if (!IsPlainWindow(i) || !i->operand(0)->Is(Opcode::Broadcast)) return nullptr;
  Instruction* x = i->operand(0);
  const Ints from = x->attrs().dimensions.value_or(Ints());
  Ints kept, operand, result, places;
  attr::Win window;
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    const bool changes = std::find(from.begin(), from.end(), d) != from.end();
    const WindowDim w = WindowOf(i)[static_cast<size_t>(d)];
    if (!changes && w == WindowDim()) continue;
    kept.push_back(d);
    operand.push_back(x->shape().dim(d));
    result.push_back(i->shape().dim(d));
    window.push_back(w);
  }
  if (kept.empty() || static_cast<int64_t>(kept.size()) == x->shape().rank()) return nullptr;
  for (int64_t d : from) places.push_back(std::find(kept.begin(), kept.end(), d) - kept.begin());
  Expr once = BroadcastTo(x->operand(0), operand, places);
  Instruction* windows = i->parent()->AddClone(i, Shape::Array(i->shape().type(), result), {once.get(), i->operand(1)});
  windows->mutable_attrs().window = window;
  return BroadcastTo(windows, i->shape().dims(), kept).get();
}

// A slice of the one window in each reduced dimension that holds all of it: a reduction.
Instruction* SliceOfWindow(Instruction* i) {
  Instruction* w = i->operand(0);
  if (!IsPlainWindow(w) || w->users().size() != 1 || w->IsRoot()) return nullptr;
  const attr::Win window = WindowOf(w);
  Ints reduced;
  for (size_t d = 0; d < window.size(); ++d) {
    const SliceDim& s = (*i->attrs().slice)[d];
    const auto k = static_cast<int64_t>(d);
    if (window[d] == WindowDim() && s.start == 0 && s.stride == 1 && s.limit == w->shape().dim(k)) continue;
    WindowDim whole = window[d];
    whole.pad_low = whole.pad_high = 0;
    WindowDim all;
    all.size = w->operand(0)->shape().dim(k);
    if (!(whole == all) || window[d].pad_low != s.start || i->shape().dim(k) != 1) return nullptr;
    reduced.push_back(k);
  }
  if (reduced.empty()) return nullptr;
  return ReshapeTo(ReduceOf(w->operand(0), w->operand(1), reduced, *w->attrs().to_apply), i->shape().dims()).get();
}

constexpr const char* kRunningSum =
    "z = $T[] constant(0)\n"
    " ROOT r = $T[4,6] reduce-window(p, z), window={size=1x6 pad=0_0x5_0}, to_apply=sum";

const Rule kRules[] = {
    {"window-of-one",
     {Opcode::ReduceWindow},
     kInts | kFloats | kComplex,
     Numerics::Exact,
     "ROOT r = $T[4,7] reduce-window(p, s), window={size=1x1 pad=0_0x1_0}, to_apply=sum",
     kRunningSum,
     OfOneElement,
     true},
    {"window-of-whole-dimensions",
     {Opcode::ReduceWindow},
     kAllTypes,
     Numerics::Exact,
     "ROOT r = $T[4,1] reduce-window(p, s), window={size=1x6}, to_apply=sum",
     kRunningSum,
     OfWholeDimensions,
     true},
    {"running-sum-of-constant",
     {Opcode::ReduceWindow},
     kInts | kFloats,
     Numerics::Order,
     "c = f32[] constant(2)\n b = f32[4,6] broadcast(c), dimensions={}\n x = $T[4,6] convert(b)\n"
     " z = $T[] constant(0)\n ROOT r = $T[4,6] reduce-window(x, z), window={size=4x1 pad=3_0x0_0}, to_apply=sum",
     kRunningSum,
     RunningSumOfConstant,
     true},
    {"window-of-pad",
     {Opcode::ReduceWindow},
     kAllTypes,
     Numerics::Exact,
     "z = $T[] constant(0)\n x = $T[9,8] pad(p, z), padding=1_1_1x0_2\n"
     " ROOT r = $T[8,8] reduce-window(x, z), window={size=2x2 pad=0_0x0_1}, to_apply=sum",
     "z = $T[] constant(0)\n x = $T[9,8] pad(p, s), padding=1_1_1x0_2\n"
     " ROOT r = $T[8,8] reduce-window(x, z), window={size=2x2 pad=0_0x0_1}, to_apply=sum",
     OfPad,
     true},
    {"window-of-broadcast",
     {Opcode::ReduceWindow},
     kAllTypes,
     Numerics::Exact,
     "b = $T[4,6] broadcast(s), dimensions={}\n"
     " ROOT r = $T[4,6] reduce-window(b, s), window={size=1x3 pad=0_0x1_1}, to_apply=sum",
     "b = $T[4,6] broadcast(s), dimensions={}\n"
     " ROOT r = $T[4,6] reduce-window(b, s), window={size=2x3 pad=0_1x1_1}, to_apply=sum",
     OfRepeats,
     true},
    {"slice-of-window",
     {Opcode::Slice},
     kAllTypes,
     Numerics::Exact,
     "w = $T[4,6] reduce-window(p, s), window={size=1x6 pad=0_0x5_0}, to_apply=sum\n"
     " ROOT r = $T[4,1] slice(w), slice={[0:4], [5:6]}",
     "w = $T[4,6] reduce-window(p, s), window={size=1x6 pad=0_0x5_0}, to_apply=sum\n"
     " ROOT r = $T[4,1] slice(w), slice={[0:4], [4:5]}",
     SliceOfWindow,
     true},
};

}  // namespace

absl::Span<const Rule> ReduceWindowRules() { return kRules; }

}  // namespace kiln
