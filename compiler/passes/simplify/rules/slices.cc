// Slices of everything, of slices, broadcasts, pads, reversals and concatenations.
#include "compiler/passes/simplify/rules/rule.h"
#include "compiler/passes/simplify/rules/terms.h"

namespace kiln {
namespace {

Instruction* SliceAs(const Instruction* like, Instruction* x, attr::Slices slice) {
  Instruction* out = like->parent()->Add(Opcode::Slice, like->shape(), {x});
  out->mutable_attrs().slice = std::move(slice);
  return out;
}

Instruction* OfSlice(Instruction* i) {
  const Instruction* inner = i->operand(0);
  if (!inner->Is(Opcode::Slice) || i->shape().ElementCount() == 0) return nullptr;
  attr::Slices s = *i->attrs().slice;
  for (size_t d = 0; d < s.size(); ++d) {
    const SliceDim& in = (*inner->attrs().slice)[d];
    s[d].start = in.start + s[d].start * in.stride;
    s[d].stride *= in.stride;
    s[d].limit = s[d].start + (i->shape().dim(d) - 1) * s[d].stride + 1;
  }
  return SliceAs(i, inner->operand(0), std::move(s));
}

// The index in the operand of the last element that dimension `d` of the slice takes.
int64_t LastOf(const Instruction* slice, size_t d) {
  const SliceDim& s = (*slice->attrs().slice)[d];
  return s.start + (slice->shape().dim(static_cast<int64_t>(d)) - 1) * s.stride;
}

// What is repeated is sliced, if a dimension of it is.
Instruction* OfBroadcast(Instruction* i) {
  Instruction* b = i->operand(0);
  if (!b->Is(Opcode::Broadcast) || i->shape().ElementCount() == 0) return nullptr;
  const Ints& map = *b->attrs().dimensions;
  Instruction* x = b->operand(0);
  attr::Slices slice;
  Ints dims;
  for (int64_t d : map) {
    slice.push_back((*i->attrs().slice)[d]);
    dims.push_back(i->shape().dim(d));
  }
  if (dims != x->shape().dims()) {
    Instruction* part = i->parent()->Add(Opcode::Slice, Shape::Array(i->shape().type(), dims), {x});
    part->mutable_attrs().slice = std::move(slice);
    x = part;
  }
  return BroadcastTo(x, i->shape().dims(), map).get();
}

// Of padding alone, of what was padded exactly, and of a part of it.
Instruction* OfPad(Instruction* i) {
  const Instruction* pad = i->operand(0);
  if (!pad->Is(Opcode::Pad) || i->shape().ElementCount() == 0) return nullptr;
  Instruction* x = pad->operand(0);
  attr::Slices inner = *i->attrs().slice;
  bool whole = i->shape().dims() == x->shape().dims(), within = true;
  for (size_t d = 0; d < inner.size(); ++d) {
    const PadDim& p = (*pad->attrs().padding)[d];
    SliceDim& s = inner[d];
    const int64_t n = x->shape().dim(static_cast<int64_t>(d)), last = LastOf(i, d);
    if (n == 0 || last < p.low || s.start > p.low + (n - 1) * (p.interior + 1))
      return Spread(pad->operand(1), i->shape().dims());
    whole = whole && s.start == p.low && s.stride == p.interior + 1;
    within = within && s.start >= p.low && last < p.low + n && s.stride == 1 && p.interior == 0;
    s = {s.start - p.low, last + 1 - p.low, s.stride};
  }
  if (whole) return x;
  return within ? SliceAs(i, x, std::move(inner)) : nullptr;
}

// What is left is reversed.
Instruction* OfReverse(Instruction* i) {
  const Instruction* reverse = i->operand(0);
  if (!reverse->Is(Opcode::Reverse) || i->shape().ElementCount() == 0) return nullptr;
  attr::Slices s = *i->attrs().slice;
  for (int64_t d : *reverse->attrs().dimensions) {
    const int64_t n = reverse->shape().dim(d), last = LastOf(i, static_cast<size_t>(d));
    s[d] = {n - 1 - last, n - s[d].start, s[d].stride};
  }
  Instruction* part =
      i->parent()->Add(Opcode::Slice, Shape::Array(i->shape().type(), i->shape().dims()), {reverse->operand(0)});
  part->mutable_attrs().slice = std::move(s);
  Instruction* out = i->parent()->Add(Opcode::Reverse, i->shape(), {part});
  out->mutable_attrs().dimensions = reverse->attrs().dimensions;
  return out;
}

// A dimension of which one element is taken needs no stride.
Instruction* WithoutIdleStrides(Instruction* i) {
  attr::Slices s = *i->attrs().slice;
  for (size_t d = 0; d < s.size(); ++d)
    if (s[d].stride > 1 && i->shape().dim(static_cast<int64_t>(d)) == 1) s[d] = {s[d].start, s[d].start + 1, 1};
  return s == *i->attrs().slice ? nullptr : SliceAs(i, i->operand(0), std::move(s));
}

// A reshape that keeps all but the first dimension of the slice's operand together: the rows are taken from the rows
// of what was reshaped.
Instruction* OfReshape(Instruction* i) {
  const Instruction* reshape = i->operand(0);
  if (!reshape->Is(Opcode::Reshape) || HasOwnLayout(i) || i->shape().rank() == 0 || i->shape().ElementCount() == 0)
    return nullptr;
  Instruction* x = reshape->operand(0);
  if (x->shape().rank() == 0) return nullptr;
  for (size_t d = 0; d < i->attrs().slice->size(); ++d) {
    if ((*i->attrs().slice)[d].stride != 1) return nullptr;
    if (d > 0 && i->shape().dim(static_cast<int64_t>(d)) != reshape->shape().dim(static_cast<int64_t>(d)))
      return nullptr;
  }
  const int64_t row = reshape->shape().ElementCount() / reshape->shape().dim(0);
  const int64_t inner = x->shape().ElementCount() / x->shape().dim(0);
  const int64_t start = (*i->attrs().slice)[0].start * row, size = i->shape().ElementCount();
  if (start % inner != 0 || size % inner != 0) return nullptr;
  Ints from(static_cast<size_t>(x->shape().rank())), to = x->shape().dims();
  from[0] = start / inner;
  to[0] = from[0] + size / inner;
  return ReshapeTo(SliceOf(x, from, to), i->shape().dims()).get();
}

// A concatenation of the operands that the slice touches.
Instruction* OfFewerOperands(Instruction* i) {
  const Instruction* x = i->operand(0);
  if (!x->Is(Opcode::Concatenate) || i->shape().ElementCount() == 0) return nullptr;
  const int64_t d = (*x->attrs().dimensions)[0];
  attr::Slices moved = *i->attrs().slice;
  const int64_t last = LastOf(i, static_cast<size_t>(d));
  std::vector<Expr> touched;
  int64_t base = 0, skipped = 0;
  for (Instruction* part : x->operands()) {
    const int64_t n = part->shape().dim(d);
    if (base > last) break;
    if (base + n <= moved[d].start)
      skipped += n;
    else
      touched.emplace_back(part);
    base += n;
  }
  if (static_cast<int64_t>(touched.size()) == x->operand_count() || touched.size() < 2) return nullptr;
  moved[d] = {moved[d].start - skipped, last + 1 - skipped, moved[d].stride};
  return SliceAs(i, ConcatOf(touched, d).get(), std::move(moved));
}

Instruction* OfOneOperand(Instruction* i) {
  const Instruction* x = i->operand(0);
  if (!x->Is(Opcode::Concatenate)) return nullptr;
  const int64_t d = (*x->attrs().dimensions)[0];
  const SliceDim& s = (*i->attrs().slice)[d];
  int64_t base = 0;
  for (Instruction* part : x->operands()) {
    const int64_t n = part->shape().dim(d);
    if (s.start >= base && s.limit <= base + n) {
      attr::Slices moved = *i->attrs().slice;
      moved[d].start -= base;
      moved[d].limit -= base;
      return SliceAs(i, part, std::move(moved));
    }
    base += n;
  }
  return nullptr;
}

const Rule kRules[] = {
    {"slice-of-everything",
     {Opcode::Slice},
     kAllTypes,
     Numerics::Exact,
     "ROOT r = $T[4,6] slice(p), slice={[0:4], [0:6]}",
     "ROOT r = $T[4,5] slice(p), slice={[0:4], [0:5]}",
     [](Instruction* i) { return i->shape().dims() == i->operand(0)->shape().dims() ? i->operand(0) : nullptr; }},
    {"slice-of-slice",
     {Opcode::Slice},
     kAllTypes,
     Numerics::Exact,
     "a = $T[4,3] slice(p), slice={[0:4], [1:6:2]}\n ROOT r = $T[2,2] slice(a), slice={[1:4:2], [1:3]}",
     "ROOT r = $T[4,5] slice(p), slice={[0:4], [0:5]}",
     OfSlice},
    {"slice-of-broadcast",
     {Opcode::Slice},
     kAllTypes,
     Numerics::Exact,
     "b = $T[4,3,6] broadcast(p), dimensions={0,2}\n ROOT r = $T[2,2,6] slice(b), slice={[1:3], [0:2], [0:6]}",
     "ROOT r = $T[4,5] slice(p), slice={[0:4], [0:5]}",
     OfBroadcast},
    {"slice-of-pad",
     {Opcode::Slice},
     kAllTypes,
     Numerics::Exact,
     "b = $T[9,6] pad(p, s), padding=2_3x0_0\n ROOT r = $T[2,5] slice(b), slice={[3:5], [0:5]}",
     "b = $T[9,6] pad(p, s), padding=2_3x0_0\n ROOT r = $T[3,5] slice(b), slice={[1:4], [0:5]}",
     OfPad},
    {"slice-of-reverse",
     {Opcode::Slice},
     kAllTypes,
     Numerics::Exact,
     "b = $T[4,6] reverse(p), dimensions={1}\n ROOT r = $T[2,3] slice(b), slice={[1:3], [1:6:2]}",
     "ROOT r = $T[2,3] slice(p), slice={[1:3], [1:6:2]}",
     OfReverse},
    {"slice-of-reshape",
     {Opcode::Slice},
     kAllTypes,
     Numerics::Exact,
     "b = $T[24] reshape(p)\n ROOT r = $T[12] slice(b), slice={[6:18]}",
     "b = $T[24] reshape(p)\n ROOT r = $T[12] slice(b), slice={[5:17]}",
     OfReshape},
    {"slice-idle-stride",
     {Opcode::Slice},
     kAllTypes,
     Numerics::Exact,
     "ROOT r = $T[4,1] slice(p), slice={[0:4], [3:6:4]}",
     "ROOT r = $T[4,2] slice(p), slice={[0:4], [1:6:4]}",
     WithoutIdleStrides},
    {"slice-of-fewer-operands",
     {Opcode::Slice},
     kAllTypes,
     Numerics::Exact,
     "c = $T[12,6] concatenate(p, q, p), dimensions={0}\n ROOT r = $T[4,6] slice(c), slice={[6:10], [0:6]}",
     "c = $T[12,6] concatenate(p, q, p), dimensions={0}\n ROOT r = $T[8,6] slice(c), slice={[2:10], [0:6]}",
     OfFewerOperands},
    {"slice-of-operand",
     {Opcode::Slice},
     kAllTypes,
     Numerics::Exact,
     "c = $T[8,6] concatenate(p, q), dimensions={0}\n ROOT r = $T[2,6] slice(c), slice={[5:7], [0:6]}",
     "c = $T[8,6] concatenate(p, q), dimensions={0}\n ROOT r = $T[4,6] slice(c), slice={[3:7], [0:6]}",
     OfOneOperand},
};

}  // namespace

absl::Span<const Rule> SliceRules() { return kRules; }

}  // namespace kiln
