// Slices of everything, of slices, broadcasts, pads, reversals and concatenations.
#include <algorithm>
#include <optional>

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

// What a slice takes of a dimension that is padded: which elements of the operand, and where they are in the slice.
struct Taken {
  SliceDim of_operand;
  PadDim padding;
};

// None if it takes padding alone; false where elements that it takes are not a slice of the operand.
bool TakenOf(const SliceDim& s, const PadDim& p, int64_t n, int64_t taken, std::optional<Taken>* out) {
  const int64_t step = p.interior + 1;
  if (step % s.stride != 0 && s.stride % step != 0) return false;
  int64_t first = 0;  // place in the slice that is an element, not what is between
  while (first < std::min(taken, step) && ((s.start + first * s.stride - p.low) % step + step) % step != 0) ++first;
  const int64_t every = std::max<int64_t>(1, step / s.stride), apart = std::max<int64_t>(1, s.stride / step);
  int64_t at = s.start + first * s.stride - p.low;  // of the padded array, from its first element on
  if (at < 0) {
    const int64_t skipped = (-at + every * s.stride - 1) / (every * s.stride);
    first += skipped * every;
    at += skipped * every * s.stride;
  }
  out->reset();
  if (first >= taken || at % step != 0 || at / step >= n) return true;
  const int64_t count = std::min((taken - 1 - first) / every, (n - 1 - at / step) / apart) + 1;
  *out = Taken{{at / step, at / step + (count - 1) * apart + 1, apart},
               {first, taken - 1 - first - (count - 1) * every, every - 1}};
  return true;
}

// The part of the operand that is left, padded by what is left of the padding.
Instruction* OfPad(Instruction* i) {
  Instruction* pad = i->operand(0);
  if (!pad->Is(Opcode::Pad) || i->shape().ElementCount() == 0 || HasOwnLayout(i)) return nullptr;
  Instruction* x = pad->operand(0);
  attr::Slices inner;
  attr::Padding padding;
  Ints dims;
  for (size_t d = 0; d < pad->attrs().padding->size(); ++d) {
    const auto k = static_cast<int64_t>(d);
    std::optional<Taken> taken;
    if (!TakenOf((*i->attrs().slice)[d], (*pad->attrs().padding)[d], x->shape().dim(k), i->shape().dim(k), &taken))
      return nullptr;
    if (!taken) return Spread(pad->operand(1), i->shape().dims());
    inner.push_back(taken->of_operand);
    padding.push_back(taken->padding);
    dims.push_back((inner.back().limit - inner.back().start - 1) / inner.back().stride + 1);
  }
  const bool padded = std::any_of(padding.begin(), padding.end(), [](const PadDim& p) { return p != PadDim{}; });
  if (padded && !HasOneUser(pad)) return nullptr;
  if (dims != x->shape().dims()) {
    const Shape part = Shape::Array(x->shape().type(), dims);
    Instruction* slice = i->parent()->Add(Opcode::Slice, part, {x});
    slice->mutable_attrs().slice = std::move(inner);
    x = slice;
  }
  if (!padded) return x;
  Instruction* out = i->parent()->Add(Opcode::Pad, i->shape(), {x, pad->operand(1)});
  out->mutable_attrs().padding = std::move(padding);
  return out;
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

// A concatenation of what the slice takes of the operands that it touches, where nothing else reads what they make and
// a good part of it is not taken. Slices that are nearly whole, as those of a stencil are, leave what they may share.
Instruction* OfConcatenation(Instruction* i) {
  const Instruction* x = i->operand(0);
  if (!x->Is(Opcode::Concatenate) || i->shape().ElementCount() == 0 || !HasOneUser(x) || HasOwnLayout(i))
    return nullptr;
  const int64_t d = (*x->attrs().dimensions)[0], last = LastOf(i, static_cast<size_t>(d));
  const SliceDim& s = (*i->attrs().slice)[d];
  struct Part {
    Instruction* of;
    int64_t from, to;  // its first and its last element that is taken
  };
  std::vector<Part> taken;
  int64_t base = 0;
  for (Instruction* part : x->operands()) {
    const int64_t n = part->shape().dim(d), skipped = s.start >= base ? 0 : (base - s.start + s.stride - 1) / s.stride;
    const int64_t from = s.start + skipped * s.stride - base, to = std::min(last - base, n - 1);
    if (from <= to) taken.push_back({part, from, to});
    base += n;
  }
  constexpr int64_t kOf = 4, kAtMost = 3;
  if (taken.size() < 2 || i->shape().ElementCount() * kOf > x->shape().ElementCount() * kAtMost) return nullptr;
  std::vector<Expr> parts;
  for (const auto& [part, from, to] : taken) {
    attr::Slices moved = *i->attrs().slice;
    moved[d] = {from, to + 1, s.stride};
    Ints dims = i->shape().dims();
    dims[d] = (to - from) / s.stride + 1;
    parts.emplace_back(i->parent()->Add(Opcode::Slice, Shape::Array(i->shape().type(), dims), {part}));
    parts.back().get()->mutable_attrs().slice = std::move(moved);
  }
  return ConcatOf(parts, d).get();
}

// A concatenation of the operands that the slice touches, which other slices may share.
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

// A transpose moves no more than what is taken of it.
Instruction* OfTranspose(Instruction* i) {
  const Instruction* t = i->operand(0);
  if (!t->Is(Opcode::Transpose) || !HasOneUser(t) || HasOwnLayout(i)) return nullptr;
  const Ints& p = *t->attrs().dimensions;
  attr::Slices moved(p.size());
  Ints dims(p.size());
  for (size_t k = 0; k < p.size(); ++k) {
    moved[static_cast<size_t>(p[k])] = (*i->attrs().slice)[k];
    dims[static_cast<size_t>(p[k])] = i->shape().dims()[k];
  }
  Instruction* taken = i->parent()->Add(Opcode::Slice, Shape::Array(i->shape().type(), dims), {t->operand(0)});
  taken->mutable_attrs().slice = std::move(moved);
  return TransposeBy(taken, p).get();
}

// Whether elements of it are elements of pieces, and nothing else reads them.
bool IsMadeOfPieces(const Instruction* x) {
  return (x->Is(Opcode::Concatenate) || x->Is(Opcode::Pad)) && HasOneUser(x);
}

// What is computed of pieces is computed of what the slice takes of them.
Instruction* OfElementwise(Instruction* i) {
  const Instruction* f = i->operand(0);
  if (!f->IsElementwise() || !HasOneUser(f) || f->HasSideEffect() || HasOwnLayout(i)) return nullptr;
  const Ints& dims = f->shape().dims();
  bool pieces = false;
  for (const Instruction* o : f->operands()) {
    if (o->shape().dims() != dims) return nullptr;
    pieces = pieces || IsMadeOfPieces(o);
  }
  if (!pieces) return nullptr;
  std::vector<Instruction*> parts;
  for (Instruction* o : f->operands()) {
    parts.push_back(i->parent()->Add(Opcode::Slice, Shape::Array(o->shape().type(), i->shape().dims()), {o}));
    parts.back()->mutable_attrs().slice = i->attrs().slice;
  }
  return i->parent()->AddClone(f, i->shape(), std::move(parts));
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
     "b = $T[9,13] pad(p, s), padding=2_3x1_1_1\n ROOT r = $T[5,9] slice(b), slice={[0:9:2], [3:12]}",
     "b = $T[9,6] pad(p, s), padding=2_3x0_0\n t = $T[3,6] slice(b), slice={[1:4], [0:6]}\n"
     " ROOT r = $T[12,6] concatenate(t, b), dimensions={0}",
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
    {"slice-of-concatenation",
     {Opcode::Slice},
     kAllTypes,
     Numerics::Exact,
     "c = $T[12,6] concatenate(p, q, p), dimensions={0}\n ROOT r = $T[4,3] slice(c), slice={[1:11:3], [1:6:2]}",
     "c = $T[8,6] concatenate(p, q), dimensions={0}\n t = $T[6,6] slice(c), slice={[1:7], [0:6]}\n"
     " ROOT r = $T[14,6] concatenate(t, c), dimensions={0}",
     OfConcatenation},
    {"slice-of-fewer-operands",
     {Opcode::Slice},
     kAllTypes,
     Numerics::Exact,
     "c = $T[12,6] concatenate(p, q, p), dimensions={0}\n t = $T[4,6] slice(c), slice={[6:10], [0:6]}\n"
     " ROOT r = $T[4,6] slice(c), slice={[6:10], [0:6]}",
     "c = $T[8,6] concatenate(p, q), dimensions={0}\n t = $T[6,6] slice(c), slice={[1:7], [0:6]}\n"
     " ROOT r = $T[14,6] concatenate(t, c), dimensions={0}",
     OfFewerOperands},
    {"slice-of-operand",
     {Opcode::Slice},
     kAllTypes,
     Numerics::Exact,
     "c = $T[8,6] concatenate(p, q), dimensions={0}\n ROOT r = $T[2,6] slice(c), slice={[5:7], [0:6]}",
     "c = $T[8,6] concatenate(p, q), dimensions={0}\n ROOT r = $T[4,6] slice(c), slice={[3:7], [0:6]}",
     OfOneOperand},
    {"slice-of-transpose",
     {Opcode::Slice},
     kAllTypes,
     Numerics::Exact,
     "t = $T[6,4] transpose(p), dimensions={1,0}\n ROOT r = $T[2,3] slice(t), slice={[1:5:2], [0:3]}",
     "t = $T[6,4] transpose(p), dimensions={1,0}\n u = $T[2,4] slice(t), slice={[1:3], [0:4]}\n"
     " ROOT r = $T[8,4] concatenate(u, t), dimensions={0}",
     OfTranspose},
    {"slice-of-elementwise",
     {Opcode::Slice},
     kInts | kFloats | kPred,
     Numerics::Exact,
     "c = $T[8,6] concatenate(p, q), dimensions={0}\n m = $T[8,6] maximum(c, c)\n"
     " ROOT r = $T[4,6] slice(m), slice={[3:7], [0:6]}",
     "m = $T[4,6] maximum(p, q)\n ROOT r = $T[2,6] slice(m), slice={[1:3], [0:6]}",
     OfElementwise},
};

}  // namespace

absl::Span<const Rule> SliceRules() { return kRules; }

}  // namespace kiln
