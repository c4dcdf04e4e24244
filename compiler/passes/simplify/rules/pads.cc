// Pads of nothing, of broadcasts, and those that also cut off.
#include <algorithm>

#include "compiler/passes/simplify/rules/rule.h"
#include "compiler/passes/simplify/rules/terms.h"

namespace kiln {
namespace {

Instruction* OfEmpty(Instruction* i) {
  return i->operand(0)->shape().ElementCount() == 0 ? Spread(i->operand(1), i->shape().dims()) : nullptr;
}

Instruction* PadAs(const Shape& shape, Instruction* x, Instruction* value, attr::Padding padding) {
  Instruction* out = x->parent()->Add(Opcode::Pad, shape, {x, value});
  out->mutable_attrs().padding = std::move(padding);
  return out;
}

// Nothing lies between the elements of a dimension that has one.
Instruction* WithoutIdleInterior(Instruction* i) {
  attr::Padding p = *i->attrs().padding;
  for (size_t d = 0; d < p.size(); ++d)
    if (i->operand(0)->shape().dim(static_cast<int64_t>(d)) == 1) p[d].interior = 0;
  return p == *i->attrs().padding ? nullptr : PadAs(i->shape(), i->operand(0), i->operand(1), std::move(p));
}

// A negative edge cuts off: what is left of the array is padded.
Instruction* CutApart(Instruction* i) {
  attr::Padding p = *i->attrs().padding;
  const Shape& from = i->operand(0)->shape();
  if (i->shape().ElementCount() == 0 || HasOwnLayout(i)) return nullptr;
  Ints first, end, dims;
  for (size_t d = 0; d < p.size(); ++d) {
    const int64_t n = i->shape().dim(static_cast<int64_t>(d)), step = p[d].interior + 1;
    const auto places = [step](int64_t before) { return before <= 0 ? 0 : (before + step - 1) / step; };
    first.push_back(places(-p[d].low));
    end.push_back(std::min(from.dim(static_cast<int64_t>(d)), places(n - p[d].low)));
    if (first.back() >= end.back()) return Spread(i->operand(1), i->shape().dims());
    dims.push_back(end.back() - first.back());
    p[d].low += first.back() * step;
    p[d].high = n - p[d].low - (dims.back() - 1) * step - 1;
  }
  if (dims == from.dims()) return nullptr;
  return PadAs(i->shape(), SliceOf(i->operand(0), first, end).get(), i->operand(1), std::move(p));
}

// Where some dimensions are padded and the others only repeat, the smaller array is padded.
Instruction* OfBroadcast(Instruction* i) {
  const Instruction* b = i->operand(0);
  if (!b->Is(Opcode::Broadcast) || !HasOneUser(b) || HasOwnLayout(i)) return nullptr;
  Ints padded, dims, out_dims, map;
  attr::Padding padding;
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    if ((*i->attrs().padding)[d] == PadDim{}) continue;
    padded.push_back(d);
    padding.push_back((*i->attrs().padding)[d]);
    dims.push_back(b->shape().dim(d));
    out_dims.push_back(i->shape().dim(d));
  }
  if (padded.empty() || static_cast<int64_t>(padded.size()) == i->shape().rank()) return nullptr;
  for (int64_t d : *b->attrs().dimensions) {
    const auto at = std::find(padded.begin(), padded.end(), d);
    if (at == padded.end()) return nullptr;
    map.push_back(at - padded.begin());
  }
  const Expr small = BroadcastTo(b->operand(0), dims, map);
  Instruction* pad = PadAs(Shape::Array(i->shape().type(), out_dims), small.get(), i->operand(1), std::move(padding));
  return BroadcastTo(pad, i->shape().dims(), padded).get();
}

const Rule kRules[] = {
    {"pad-of-empty",
     {Opcode::Pad},
     kAllTypes,
     Numerics::Exact,
     "n = $T[0,6] slice(p), slice={[0:0], [0:6]}\n ROOT r = $T[3,6] pad(n, s), padding=1_2x0_0",
     "ROOT r = $T[7,6] pad(p, s), padding=1_2x0_0",
     OfEmpty},
    {"pad-idle-interior",
     {Opcode::Pad},
     kAllTypes,
     Numerics::Exact,
     "b = $T[4,1,6] reshape(p)\n ROOT r = $T[4,2,6] pad(b, s), padding=0_0x0_1_3x0_0",
     "ROOT r = $T[7,6] pad(p, s), padding=0_0_1x0_0",
     WithoutIdleInterior},
    {"pad-that-cuts",
     {Opcode::Pad},
     kAllTypes,
     Numerics::Exact,
     "ROOT r = $T[5,4] pad(p, s), padding=-1_2x0_-2",
     "ROOT r = $T[7,6] pad(p, s), padding=1_2x0_0",
     CutApart},
    {"pad-of-broadcast",
     {Opcode::Pad},
     kAllTypes,
     Numerics::Exact,
     "b = $T[3,4,6] broadcast(p), dimensions={1,2}\n ROOT r = $T[3,7,8] pad(b, s), padding=0_0x1_2x1_1",
     "b = $T[3,4,6] broadcast(p), dimensions={1,2}\n ROOT r = $T[3,7,6] pad(b, s), padding=0_0x1_2x0_0",
     OfBroadcast},
};

}  // namespace

absl::Span<const Rule> PadRules() { return kRules; }

}  // namespace kiln
