// Pads, concatenations, reversals and dynamic slices that do nothing, or less than they say.
#include <algorithm>

#include "compiler/passes/simplify/rules/rule.h"
#include "compiler/passes/simplify/rules/terms.h"

namespace kiln {
namespace {

Instruction* PadOfNothing(Instruction* i) {
  for (const PadDim& p : *i->attrs().padding)
    if (p != PadDim{}) return nullptr;
  return i->operand(0);
}

Instruction* WithoutEmptyOperands(Instruction* i) {
  const int64_t d = (*i->attrs().dimensions)[0];
  std::vector<Instruction*> kept;
  for (Instruction* o : i->operands())
    if (o->shape().dim(d) != 0) kept.push_back(o);
  if (kept.size() == i->operands().size()) return nullptr;
  if (kept.empty()) return i->operand(0);
  if (kept.size() == 1) return kept[0];
  Instruction* n = i->parent()->Add(Opcode::Concatenate, i->shape(), kept);
  n->mutable_attrs().dimensions = i->attrs().dimensions;
  return n;
}

// Concatenations along the same dimension are one.
Instruction* Flatten(Instruction* i) {
  if (HasOwnLayout(i)) return nullptr;
  std::vector<Instruction*> parts;
  for (Instruction* o : i->operands())
    if (o->Is(Opcode::Concatenate) && o->attrs().dimensions == i->attrs().dimensions)
      parts.insert(parts.end(), o->operands().begin(), o->operands().end());
    else
      parts.push_back(o);
  return parts.size() == i->operands().size() ? nullptr : Over(i, std::move(parts));
}

// Concatenations that are stacked, as the layers of a cache of keys and values are: one concatenation of all pieces,
// seen as the stack.
Instruction* OfStacks(Instruction* i) {
  if (HasOwnLayout(i)) return nullptr;
  const int64_t d = (*i->attrs().dimensions)[0];
  std::vector<Expr> pieces;
  for (Instruction* o : i->operands()) {
    if (!o->Is(Opcode::Reshape) || !HasOneUser(o)) return nullptr;
    Instruction* c = o->operand(0);
    Ints stacked = c->shape().dims();
    stacked.insert(stacked.begin() + std::min<ptrdiff_t>(d, std::ssize(stacked)), 1);
    if (!c->Is(Opcode::Concatenate) || !HasOneUser(c) || (*c->attrs().dimensions)[0] != d ||
        stacked != o->shape().dims())
      return nullptr;
    pieces.insert(pieces.end(), c->operands().begin(), c->operands().end());
  }
  return i->operand_count() < 2 ? nullptr : ReshapeTo(ConcatOf(pieces, d), i->shape().dims()).get();
}

// Whether `next` is the part of the same array that follows `slice` along dimension `d`.
bool Follows(const Instruction* slice, const Instruction* next, int64_t d) {
  if (!slice->Is(Opcode::Slice) || !next->Is(Opcode::Slice) || slice->operand(0) != next->operand(0)) return false;
  for (int64_t k = 0; k < slice->shape().rank(); ++k) {
    const SliceDim &a = (*slice->attrs().slice)[k], &b = (*next->attrs().slice)[k];
    if (a.stride != 1 || b.stride != 1 || (k == d ? a.limit != b.start : a != b)) return false;
  }
  return true;
}

// Slices that were neighbours are one slice again.
Instruction* JoinSlices(Instruction* i) {
  if (HasOwnLayout(i)) return nullptr;
  const int64_t d = (*i->attrs().dimensions)[0];
  std::vector<Expr> parts;
  for (size_t k = 0; k < i->operands().size();) {
    size_t end = k + 1;
    while (end < i->operands().size() && Follows(i->operands()[end - 1], i->operands()[end], d)) ++end;
    Instruction* part = i->operands()[k];
    if (end - k > 1) {
      Ints from, to;
      for (const SliceDim& s : *part->attrs().slice) {
        from.push_back(s.start);
        to.push_back(s.limit);
      }
      to[d] = (*i->operands()[end - 1]->attrs().slice)[d].limit;
      part = SliceOf(part->operand(0), from, to).get();
    }
    parts.emplace_back(part);
    k = end;
  }
  return parts.size() == i->operands().size() ? nullptr : ConcatOf(parts, d).get();
}

// Of two operands, one value that is repeated is padding of the other.
Instruction* AsPad(Instruction* i) {
  if (i->operand_count() != 2 || HasOwnLayout(i)) return nullptr;
  const int64_t d = (*i->attrs().dimensions)[0];
  for (int64_t side = 0; side < 2; ++side) {
    const Instruction* edge = i->operand(side);
    if (!edge->Is(Opcode::Broadcast) || !edge->operand(0)->shape().IsScalar()) continue;
    attr::Padding padding(static_cast<size_t>(i->shape().rank()));
    (side == 0 ? padding[d].low : padding[d].high) = edge->shape().dim(d);
    Instruction* out = i->parent()->Add(Opcode::Pad, i->shape(), {i->operand(1 - side), edge->operand(0)});
    out->mutable_attrs().padding = std::move(padding);
    return out;
  }
  return nullptr;
}

// More than two times the same slab of extent 1.
Instruction* AsBroadcast(Instruction* i) {
  const int64_t d = (*i->attrs().dimensions)[0];
  Instruction* x = i->operand(0);
  if (i->operand_count() < 3 || x->shape().dim(d) != 1 || HasOwnLayout(i)) return nullptr;
  for (const Instruction* o : i->operands())
    if (o != x) return nullptr;
  Ints dims, map;
  for (int64_t k = 0; k < i->shape().rank(); ++k)
    if (k != d) {
      dims.push_back(i->shape().dim(k));
      map.push_back(k);
    }
  return BroadcastTo(ReshapeTo(x, dims), i->shape().dims(), map).get();
}

Instruction* ReverseBy(Instruction* x, const Ints& dims) {
  Instruction* out = x->parent()->Add(Opcode::Reverse, Shape::Array(x->shape().type(), x->shape().dims()), {x});
  out->mutable_attrs().dimensions = dims;
  return out;
}

// What is reversed twice is not reversed.
Instruction* OfReverse(Instruction* i) {
  const Instruction* inner = i->operand(0);
  if (!inner->Is(Opcode::Reverse) || HasOwnLayout(i)) return nullptr;
  const Ints &a = *i->attrs().dimensions, &b = *inner->attrs().dimensions;
  Ints dims;
  for (int64_t d = 0; d < i->shape().rank(); ++d)
    if ((std::find(a.begin(), a.end(), d) == a.end()) != (std::find(b.begin(), b.end(), d) == b.end()))
      dims.push_back(d);
  return dims.empty() ? inner->operand(0) : ReverseBy(inner->operand(0), dims);
}

// What is padded is reversed, and padded from the other side.
Instruction* OfPad(Instruction* i) {
  const Instruction* pad = i->operand(0);
  if (!pad->Is(Opcode::Pad) || !HasOneUser(pad) || HasOwnLayout(i)) return nullptr;
  attr::Padding padding = *pad->attrs().padding;
  for (int64_t d : *i->attrs().dimensions) std::swap(padding[d].low, padding[d].high);
  Instruction* x = ReverseBy(pad->operand(0), *i->attrs().dimensions);
  Instruction* out = i->parent()->Add(Opcode::Pad, i->shape(), {x, pad->operand(1)});
  out->mutable_attrs().padding = std::move(padding);
  return out;
}

// Pieces are reversed, the last one first where they follow each other.
Instruction* OfConcatenation(Instruction* i) {
  const Instruction* c = i->operand(0);
  if (!c->Is(Opcode::Concatenate) || !HasOneUser(c) || HasOwnLayout(i)) return nullptr;
  const Ints& dims = *i->attrs().dimensions;
  std::vector<Expr> parts;
  for (Instruction* o : c->operands()) parts.emplace_back(ReverseBy(o, dims));
  const int64_t d = (*c->attrs().dimensions)[0];
  if (std::find(dims.begin(), dims.end(), d) != dims.end()) std::reverse(parts.begin(), parts.end());
  return ConcatOf(parts, d).get();
}

// f(x, s) with one value for s is reversed in x.
Instruction* OfBinaryWithScalar(Instruction* i) {
  Instruction* f = i->operand(0);
  if (!f->IsElementwise() || f->operand_count() != 2 || f->Is(Opcode::Compare) || f->HasSideEffect() ||
      !HasOneUser(f) || HasOwnLayout(i))
    return nullptr;
  for (int64_t k = 0; k < 2; ++k) {
    const Instruction* b = f->operand(k);
    if (!b->Is(Opcode::Broadcast) || !b->operand(0)->shape().IsScalar()) continue;
    std::vector<Instruction*> operands = f->operands();
    operands[1 - k] = ReverseBy(operands[1 - k], *i->attrs().dimensions);
    return Over(f, std::move(operands));
  }
  return nullptr;
}

// Reversed one value, which stays as it is.
Instruction* OfScalarBroadcast(Instruction* i) {
  Instruction* b = i->operand(0);
  return b->Is(Opcode::Broadcast) && b->operand(0)->shape().IsScalar() ? b : nullptr;
}

// Extents 1 that a reshape inserted have no order: the reshape comes last.
Instruction* OfInsertedOnes(Instruction* i) {
  const Instruction* reshape = i->operand(0);
  if (!reshape->Is(Opcode::Reshape) || HasOwnLayout(i)) return nullptr;
  Instruction* x = reshape->operand(0);
  const Ints& reversed = *i->attrs().dimensions;
  Ints dims;
  int64_t from = 0;
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    const bool kept = from < x->shape().rank() && x->shape().dim(from) == i->shape().dim(d);
    if (!kept && i->shape().dim(d) != 1) return nullptr;
    if (kept && std::find(reversed.begin(), reversed.end(), d) != reversed.end()) dims.push_back(from);
    from += kept;
  }
  if (from != x->shape().rank() || from == i->shape().rank()) return nullptr;
  return ReshapeTo(ReverseBy(x, dims), i->shape().dims()).get();
}

Instruction* ReversesExtentsOfOne(Instruction* i) {
  for (int64_t d : *i->attrs().dimensions)
    if (i->operand(0)->shape().dim(d) != 1) return nullptr;
  return i->operand(0);
}

Instruction* OperandOfSameExtents(Instruction* i, int64_t operand) {
  Instruction* x = i->operand(operand);
  return i->shape().dims() == x->shape().dims() ? x : nullptr;
}

const Rule kRules[] = {
    {"pad-of-nothing",
     {Opcode::Pad},
     kAllTypes,
     Numerics::Exact,
     "ROOT r = $T[4,6] pad(p, s), padding=0_0x0_0",
     "ROOT r = $T[4,7] pad(p, s), padding=0_0x0_1",
     PadOfNothing},
    {"concatenate-one",
     {Opcode::Concatenate},
     kAllTypes,
     Numerics::Exact,
     "ROOT r = $T[4,6] concatenate(p), dimensions={0}",
     "ROOT r = $T[8,6] concatenate(p, q), dimensions={0}",
     [](Instruction* i) { return i->operand_count() == 1 ? i->operand(0) : nullptr; }},
    {"concatenate-empty",
     {Opcode::Concatenate},
     kAllTypes,
     Numerics::Exact,
     "n = $T[0,6] slice(p), slice={[0:0], [0:6]}\n ROOT r = $T[8,6] concatenate(p, n, q), dimensions={0}",
     "ROOT r = $T[8,6] concatenate(p, q), dimensions={0}",
     WithoutEmptyOperands},
    {"reverse-extent-one",
     {Opcode::Reverse},
     kAllTypes,
     Numerics::Exact,
     "b = $T[4,1,6] reshape(p)\n ROOT r = $T[4,1,6] reverse(b), dimensions={1}",
     "ROOT r = $T[4,6] reverse(p), dimensions={1}",
     ReversesExtentsOfOne},
    {"concatenate-flatten",
     {Opcode::Concatenate},
     kAllTypes,
     Numerics::Exact,
     "c = $T[8,6] concatenate(p, q), dimensions={0}\n ROOT r = $T[12,6] concatenate(p, c), dimensions={0}",
     "c = $T[4,12] concatenate(p, q), dimensions={1}\n ROOT r = $T[8,12] concatenate(c, c), dimensions={0}",
     Flatten},
    {"concatenate-of-stacks",
     {Opcode::Concatenate},
     kAllTypes,
     Numerics::Exact,
     "a = $T[8,6] concatenate(p, q), dimensions={0}\n b = $T[8,6] concatenate(q, p), dimensions={0}\n"
     " c = $T[1,8,6] reshape(a)\n d = $T[1,8,6] reshape(b)\n ROOT r = $T[2,8,6] concatenate(c, d), dimensions={0}",
     "a = $T[4,12] concatenate(p, q), dimensions={1}\n b = $T[4,12] concatenate(q, p), dimensions={1}\n"
     " c = $T[1,4,12] reshape(a)\n d = $T[1,4,12] reshape(b)\n ROOT r = $T[2,4,12] concatenate(c, d), dimensions={0}",
     OfStacks,
     true},
    {"concatenate-slices",
     {Opcode::Concatenate},
     kAllTypes,
     Numerics::Exact,
     "a = $T[1,6] slice(p), slice={[0:1], [0:6]}\n b = $T[2,6] slice(p), slice={[1:3], [0:6]}\n"
     " ROOT r = $T[7,6] concatenate(a, b, q), dimensions={0}",
     "a = $T[1,6] slice(p), slice={[0:1], [0:6]}\n b = $T[2,6] slice(p), slice={[2:4], [0:6]}\n"
     " ROOT r = $T[3,6] concatenate(a, b), dimensions={0}",
     JoinSlices},
    {"concatenate-same",
     {Opcode::Concatenate},
     kAllTypes,
     Numerics::Exact,
     "a = $T[1,6] slice(p), slice={[0:1], [0:6]}\n ROOT r = $T[3,6] concatenate(a, a, a), dimensions={0}",
     "ROOT r = $T[12,6] concatenate(p, p, p), dimensions={0}",
     AsBroadcast},
    {"concatenate-with-splat",
     {Opcode::Concatenate},
     kAllTypes,
     Numerics::Exact,
     "b = $T[2,6] broadcast(s), dimensions={}\n ROOT r = $T[6,6] concatenate(b, p), dimensions={0}",
     "b = $T[2,6] broadcast(s), dimensions={}\n ROOT r = $T[10,6] concatenate(p, b, q), dimensions={0}",
     AsPad},
    {"reverse-of-reverse",
     {Opcode::Reverse},
     kAllTypes,
     Numerics::Exact,
     "b = $T[4,6] reverse(p), dimensions={0,1}\n ROOT r = $T[4,6] reverse(b), dimensions={1}",
     "ROOT r = $T[4,6] reverse(p), dimensions={1}",
     OfReverse},
    {"reverse-of-splat",
     {Opcode::Reverse},
     kAllTypes,
     Numerics::Exact,
     "b = $T[4,6] broadcast(s), dimensions={}\n ROOT r = $T[4,6] reverse(b), dimensions={1}",
     "ROOT r = $T[4,6] reverse(p), dimensions={1}",
     OfScalarBroadcast},
    {"reverse-of-binary",
     {Opcode::Reverse},
     kInts | kFloats | kPred,
     Numerics::Exact,
     "b = $T[4,6] broadcast(s), dimensions={}\n a = $T[4,6] maximum(p, b)\n"
     " ROOT r = $T[4,6] reverse(a), dimensions={1}",
     "a = $T[4,6] maximum(p, q)\n ROOT r = $T[4,6] reverse(a), dimensions={1}",
     OfBinaryWithScalar},
    {"reverse-of-pad",
     {Opcode::Reverse},
     kAllTypes,
     Numerics::Exact,
     "b = $T[7,13] pad(p, s), padding=1_2x1_1_1\n ROOT r = $T[7,13] reverse(b), dimensions={0}",
     "b = $T[7,6] pad(p, s), padding=1_2x0_0\n t = $T[7,6] reverse(b), dimensions={0}\n"
     " ROOT r = $T[14,6] concatenate(t, b), dimensions={0}",
     OfPad},
    {"reverse-of-concatenation",
     {Opcode::Reverse},
     kAllTypes,
     Numerics::Exact,
     "t = $T[2,6] slice(p), slice={[1:3], [0:6]}\n b = $T[6,6] concatenate(q, t), dimensions={0}\n"
     " ROOT r = $T[6,6] reverse(b), dimensions={0,1}",
     "b = $T[8,6] concatenate(p, q), dimensions={0}\n t = $T[8,6] reverse(b), dimensions={0}\n"
     " ROOT r = $T[16,6] concatenate(t, b), dimensions={0}",
     OfConcatenation},
    {"reverse-of-inserted-ones",
     {Opcode::Reverse},
     kAllTypes,
     Numerics::Exact,
     "b = $T[4,1,6] reshape(p)\n ROOT r = $T[4,1,6] reverse(b), dimensions={1,2}",
     "b = $T[2,2,6] reshape(p)\n ROOT r = $T[2,2,6] reverse(b), dimensions={1,2}",
     OfInsertedOnes},
    {"dynamic-slice-of-everything",
     {Opcode::DynamicSlice},
     kAllTypes,
     Numerics::Exact,
     "a = s32[] constant(3)\n ROOT r = $T[4,6] dynamic-slice(p, a, a), dynamic_slice_sizes={4,6}",
     "a = s32[] constant(3)\n ROOT r = $T[4,5] dynamic-slice(p, a, a), dynamic_slice_sizes={4,5}",
     [](Instruction* i) { return OperandOfSameExtents(i, 0); }},
    {"dynamic-update-of-everything",
     {Opcode::DynamicUpdateSlice},
     kAllTypes,
     Numerics::Exact,
     "a = s32[] constant(3)\n ROOT r = $T[4,6] dynamic-update-slice(p, q, a, a)",
     "a = s32[] constant(3)\n u = $T[4,5] slice(q), slice={[0:4], [0:5]}\n"
     " ROOT r = $T[4,6] dynamic-update-slice(p, u, a, a)",
     [](Instruction* i) { return OperandOfSameExtents(i, 1); }},
};

}  // namespace

absl::Span<const Rule> PieceRules() { return kRules; }

}  // namespace kiln
