// Slices of everything, of slices, of one value and of one operand of a concatenation.
#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/simplify/rules/pattern.h"
#include "compiler/passes/simplify/rules/rule.h"

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

Instruction* OfSplat(Instruction* i) {
  Instruction* x = i->operand(0);
  if (!x->Is(Opcode::Broadcast) || !pattern::SplatOf(x)) return nullptr;
  return BroadcastTo(ReshapeTo(x->operand(0), {}), i->shape().dims()).get();
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
    {"slice-of-splat",
     {Opcode::Slice},
     kAllTypes,
     Numerics::Exact,
     "z = $T[] constant(1)\n b = $T[4,6] broadcast(z), dimensions={}\n ROOT r = $T[4,5] slice(b), slice={[0:4], [0:5]}",
     "b = $T[4,6] broadcast(s), dimensions={}\n ROOT r = $T[4,5] slice(b), slice={[0:4], [0:5]}",
     OfSplat},
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
