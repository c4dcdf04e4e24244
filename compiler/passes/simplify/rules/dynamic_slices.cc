// Dynamic slices: of what was broadcast, moved or counted, and at places that are known.
#include <algorithm>

#include "compiler/passes/simplify/rules/permutation.h"
#include "compiler/passes/simplify/rules/rule.h"
#include "compiler/passes/simplify/rules/terms.h"

namespace kiln {
namespace {

using namespace pattern;

// The scalar starts behind the first `first` operands; none if they come as one vector.
std::vector<Expr> StartsOf(const Instruction* i, int64_t first, int64_t rank) {
  std::vector<Expr> out;
  if (i->operand_count() != first + rank) return out;
  for (int64_t k = 0; k < rank; ++k) out.emplace_back(i->operand(first + k));
  return out;
}

bool IsScalarZero(const Instruction* i) { return i->Is(Opcode::Constant) && i->literal().Get(0).i == 0; }

// Where a dimension is taken whole, only start 0 is left: it says so.
Instruction* IdleStarts(Instruction* i, int64_t first, const Ints& sizes) {
  const Ints& dims = i->operand(0)->shape().dims();
  if (StartsOf(i, first, i->shape().rank()).empty()) return nullptr;
  std::vector<Instruction*> operands = i->operands();
  bool changed = false;
  for (size_t d = 0; d < dims.size(); ++d) {
    Instruction*& start = operands[static_cast<size_t>(first) + d];
    if (sizes[d] != dims[d] || IsScalarZero(start)) continue;
    start = IntegerIn(i->parent(), start->shape().type(), 0).get();
    changed = true;
  }
  return changed ? Over(i, std::move(operands)) : nullptr;
}

// The start that a constant means: within what the sizes leave.
std::optional<int64_t> KnownStart(const Instruction* start, int64_t extent, int64_t size) {
  if (!start->Is(Opcode::Constant)) return std::nullopt;
  const int64_t v = start->literal().Get(0).i;
  const bool huge = IsUnsigned(start->shape().type()) && v < 0;
  return huge ? extent - size : std::clamp<int64_t>(v, 0, extent - size);
}

std::optional<Ints> KnownStarts(const Instruction* i, int64_t first, const Ints& sizes) {
  const Ints& dims = i->operand(0)->shape().dims();
  if (i->operand_count() != first + static_cast<int64_t>(dims.size())) return std::nullopt;
  Ints out;
  for (size_t d = 0; d < dims.size(); ++d) {
    const std::optional<int64_t> s = KnownStart(i->operand(first + static_cast<int64_t>(d)), dims[d], sizes[d]);
    if (!s) return std::nullopt;
    out.push_back(*s);
  }
  return out;
}

Instruction* AtKnownPlace(Instruction* i) {
  if (i->operand(0)->Is(Opcode::Constant) || HasOwnLayout(i)) return nullptr;
  const std::optional<Ints> from = KnownStarts(i, 1, i->shape().dims());
  if (!from) return nullptr;
  Ints to = *from;
  for (size_t d = 0; d < to.size(); ++d) to[d] += i->shape().dims()[d];
  return SliceOf(i->operand(0), *from, to).get();
}

// Of what is repeated, in the dimensions that are not.
Instruction* OfBroadcast(Instruction* i) {
  const Instruction* b = i->operand(0);
  const std::vector<Expr> starts = StartsOf(i, 1, i->shape().rank());
  if (!b->Is(Opcode::Broadcast) || starts.empty()) return nullptr;
  const Ints& map = *b->attrs().dimensions;
  std::vector<Expr> kept;
  Ints sizes;
  for (int64_t d : map) {
    kept.push_back(starts[static_cast<size_t>(d)]);
    sizes.push_back(i->shape().dim(d));
  }
  Instruction* x = b->operand(0);
  if (sizes != x->shape().dims()) x = DynamicSliceOf(x, kept, sizes).get();
  return BroadcastTo(x, i->shape().dims(), map).get();
}

Instruction* OfTranspose(Instruction* i) {
  const Instruction* t = i->operand(0);
  const std::vector<Expr> starts = StartsOf(i, 1, i->shape().rank());
  if (!t->Is(Opcode::Transpose) || starts.empty() || HasOwnLayout(i)) return nullptr;
  const Ints& p = *t->attrs().dimensions;
  std::vector<Expr> moved = starts;
  Ints sizes(p.size());
  for (size_t k = 0; k < p.size(); ++k) {
    moved[static_cast<size_t>(p[k])] = starts[k];
    sizes[static_cast<size_t>(p[k])] = i->shape().dims()[k];
  }
  return TransposeBy(DynamicSliceOf(t->operand(0), moved, sizes), p).get();
}

// Of a reshape that only inserts or drops extents 1, whose start is 0.
Instruction* OfReshape(Instruction* i) {
  const Instruction* reshape = i->operand(0);
  const std::vector<Expr> starts = StartsOf(i, 1, i->shape().rank());
  if (!reshape->Is(Opcode::Reshape) || starts.empty() || HasOwnLayout(i)) return nullptr;
  Instruction* x = reshape->operand(0);
  const Expr zero = IntegerIn(i->parent(), starts[0].type(), 0);
  std::vector<Expr> moved;
  Ints sizes;
  int64_t d = 0;
  const auto skip_ones = [&] {
    while (d < i->shape().rank() && reshape->shape().dim(d) == 1) ++d;
  };
  for (int64_t n : x->shape().dims()) {
    if (n != 1) skip_ones();
    if (n != 1 && (d == i->shape().rank() || reshape->shape().dim(d) != n)) return nullptr;
    moved.push_back(n == 1 ? zero : starts[static_cast<size_t>(d)]);
    sizes.push_back(n == 1 ? 1 : i->shape().dim(d));
    if (n != 1) ++d;
  }
  skip_ones();
  if (d != i->shape().rank() || Product(sizes) != i->shape().ElementCount() || moved.empty()) return nullptr;
  return ReshapeTo(DynamicSliceOf(x, moved, sizes), i->shape().dims()).get();
}

// clamp(0, start, most), in the type of `start`.
Expr Clamped(Instruction* start, int64_t most) {
  Computation* c = start->parent();
  const PrimitiveType t = start->shape().type();
  return c->Add(Opcode::Clamp, Shape::Scalar(t), {IntegerIn(c, t, 0).get(), start, IntegerIn(c, t, most).get()});
}

bool Holds(PrimitiveType t, int64_t value) {
  const int bits = static_cast<int>(BitWidth(t)) - (IsSigned(t) ? 1 : 0);
  return bits >= 63 || value < (int64_t{1} << bits);
}

// One element of 0, 1, 2, ... or of its multiples is the index itself.
Instruction* OfIota(Instruction* i) {
  Instruction *x = i->operand(0), *factor = nullptr;
  if (i->shape().rank() != 1 || i->shape().dim(0) != 1 || i->operand_count() != 2) return nullptr;
  if (x->Is(Opcode::Multiply) && x->operand(1)->Is(Opcode::Broadcast) &&
      x->operand(1)->operand(0)->shape().IsScalar()) {
    factor = x->operand(1)->operand(0);
    x = x->operand(0);
  }
  Instruction* start = i->operand(1);
  const auto narrow = [](PrimitiveType t) { return t == PrimitiveType::S32 || t == PrimitiveType::U32; };
  const int64_t most = x->shape().dim(0) - 1;
  if (!x->Is(Opcode::Iota) || !narrow(i->shape().type()) || !narrow(start->shape().type()) ||
      start->shape().rank() != 0 || !Holds(start->shape().type(), most))
    return nullptr;
  const Expr index = ConvertTo(i->shape().type(), Clamped(start, most));
  return ReshapeTo(factor ? index * factor : index, {1}).get();
}

// Two starts that add up: both are clamped before, as each slice clamps its own.
Instruction* OfDynamicSlice(Instruction* i) {
  const Instruction* inner = i->operand(0);
  const int64_t rank = i->shape().rank();
  if (!inner->Is(Opcode::DynamicSlice) || HasOwnLayout(i)) return nullptr;
  const std::vector<Expr> outer_starts = StartsOf(i, 1, rank), inner_starts = StartsOf(inner, 1, rank);
  if (outer_starts.empty() || inner_starts.empty()) return nullptr;
  const Shape& whole = inner->operand(0)->shape();
  std::vector<Expr> starts;
  for (int64_t d = 0; d < rank; ++d) {
    const Expr a = inner_starts[static_cast<size_t>(d)], b = outer_starts[static_cast<size_t>(d)];
    if (!Holds(a.type(), whole.dim(d)) || !Holds(b.type(), inner->shape().dim(d))) return nullptr;
    starts.push_back(Clamped(a.get(), whole.dim(d) - inner->shape().dim(d)) +
                     ConvertTo(a.type(), Clamped(b.get(), inner->shape().dim(d) - i->shape().dim(d))));
  }
  return DynamicSliceOf(inner->operand(0), starts, i->shape().dims()).get();
}

// An update of one value everywhere, at a known place, pads.
Instruction* UpdateAsPad(Instruction* i) {
  Instruction *x = i->operand(0), *u = i->operand(1);
  if (!x->Is(Opcode::Broadcast) || !x->operand(0)->shape().IsScalar() || HasOwnLayout(i)) return nullptr;
  const std::optional<Ints> starts = KnownStarts(i, 2, u->shape().dims());
  if (!starts) return nullptr;
  attr::Padding padding;
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    const int64_t low = (*starts)[static_cast<size_t>(d)];
    padding.push_back({low, i->shape().dim(d) - low - u->shape().dim(d), 0});
  }
  Instruction* out = i->parent()->Add(Opcode::Pad, i->shape(), {u, x->operand(0)});
  out->mutable_attrs().padding = std::move(padding);
  return out;
}

// update(a, update(slice(a, at), c, to), at) writes c alone.
Instruction* UpdateOfPart(Instruction* i) {
  Instruction *a = i->operand(0), *part = i->operand(1);
  const int64_t rank = i->shape().rank();
  if (!part->Is(Opcode::DynamicUpdateSlice) || !part->operand(0)->Is(Opcode::DynamicSlice) || HasOwnLayout(i))
    return nullptr;
  const Instruction* slice = part->operand(0);
  const std::vector<Expr> outer = StartsOf(i, 2, rank), to = StartsOf(part, 2, rank), at = StartsOf(slice, 1, rank);
  if (slice->operand(0) != a || outer.empty() || to.empty() || at.empty()) return nullptr;
  Instruction* c = part->operand(1);
  std::vector<Expr> starts;
  for (size_t d = 0; d < outer.size(); ++d) {
    const int64_t n = i->shape().dims()[d], size = part->shape().dims()[d];
    if (outer[d].get() != at[d].get() || to[d].type() != at[d].type() || !Holds(at[d].type(), n)) return nullptr;
    starts.push_back(Clamped(at[d].get(), n - size) + Clamped(to[d].get(), size - c->shape().dims()[d]));
  }
  return UpdateOf(a, c, starts).get();
}

#define STARTS                                                                                     \
  "f = f32[4,6] convert(p)\n g = f32[1,1] slice(f), slice={[1:2], [1:2]}\n h = f32[] reshape(g)\n" \
  " n = s32[] convert(h)\n "

const Rule kRules[] = {
    {"dynamic-slice-idle-start",
     {Opcode::DynamicSlice},
     kReal,
     Numerics::Exact,
     STARTS "ROOT r = $T[4,3] dynamic-slice(p, n, n), dynamic_slice_sizes={4,3}",
     STARTS "ROOT r = $T[2,3] dynamic-slice(p, n, n), dynamic_slice_sizes={2,3}",
     [](Instruction* i) { return IdleStarts(i, 1, i->shape().dims()); }},
    {"dynamic-slice-at-known-place",
     {Opcode::DynamicSlice},
     kAllTypes,
     Numerics::Exact,
     "n = s32[] constant(-2)\n m = s32[] constant(9)\n"
     " ROOT r = $T[2,3] dynamic-slice(p, n, m), dynamic_slice_sizes={2,3}",
     "c = $T[2,2] constant({{0, 1}, {1, 0}})\n n = s32[] constant(1)\n"
     " ROOT r = $T[1,1] dynamic-slice(c, n, n), dynamic_slice_sizes={1,1}",
     AtKnownPlace},
    {"dynamic-slice-of-broadcast",
     {Opcode::DynamicSlice},
     kReal,
     Numerics::Exact,
     STARTS "b = $T[3,4,6] broadcast(p), dimensions={1,2}\n"
            " ROOT r = $T[1,2,6] dynamic-slice(b, n, n, n), dynamic_slice_sizes={1,2,6}",
     STARTS "ROOT r = $T[2,3] dynamic-slice(p, n, n), dynamic_slice_sizes={2,3}",
     OfBroadcast},
    {"dynamic-slice-of-transpose",
     {Opcode::DynamicSlice},
     kReal,
     Numerics::Exact,
     STARTS "b = $T[6,4] transpose(p), dimensions={1,0}\n"
            " ROOT r = $T[2,3] dynamic-slice(b, n, n), dynamic_slice_sizes={2,3}",
     STARTS "ROOT r = $T[2,3] dynamic-slice(p, n, n), dynamic_slice_sizes={2,3}",
     OfTranspose},
    {"dynamic-slice-of-reshape",
     {Opcode::DynamicSlice},
     kReal,
     Numerics::Exact,
     STARTS "b = $T[4,1,6] reshape(p)\n"
            " ROOT r = $T[2,1,3] dynamic-slice(b, n, n, n), dynamic_slice_sizes={2,1,3}",
     STARTS "b = $T[2,2,6] reshape(p)\n"
            " ROOT r = $T[2,1,3] dynamic-slice(b, n, n, n), dynamic_slice_sizes={2,1,3}",
     OfReshape},
    {"dynamic-slice-of-iota",
     {Opcode::DynamicSlice},
     kInts,
     Numerics::Exact,
     STARTS "b = s32[9] iota(), iota_dimension=0\n ROOT r = s32[1] dynamic-slice(b, n), dynamic_slice_sizes={1}",
     STARTS "b = s32[9] iota(), iota_dimension=0\n ROOT r = s32[2] dynamic-slice(b, n), dynamic_slice_sizes={2}",
     OfIota},
    {"dynamic-slice-of-dynamic-slice",
     {Opcode::DynamicSlice},
     kReal,
     Numerics::Exact,
     STARTS "b = $T[3,5] dynamic-slice(p, n, n), dynamic_slice_sizes={3,5}\n"
            " ROOT r = $T[2,3] dynamic-slice(b, n, n), dynamic_slice_sizes={2,3}",
     STARTS "ROOT r = $T[2,3] dynamic-slice(p, n, n), dynamic_slice_sizes={2,3}",
     OfDynamicSlice},
    {"dynamic-update-idle-start",
     {Opcode::DynamicUpdateSlice},
     kReal,
     Numerics::Exact,
     STARTS "u = $T[4,3] slice(q), slice={[0:4], [0:3]}\n ROOT r = $T[4,6] dynamic-update-slice(p, u, n, n)",
     STARTS "u = $T[2,3] slice(q), slice={[0:2], [0:3]}\n ROOT r = $T[4,6] dynamic-update-slice(p, u, n, n)",
     [](Instruction* i) { return IdleStarts(i, 2, i->operand(1)->shape().dims()); }},
    {"dynamic-update-with-nothing",
     {Opcode::DynamicUpdateSlice},
     kReal,
     Numerics::Exact,
     STARTS "u = $T[0,3] slice(q), slice={[0:0], [0:3]}\n ROOT r = $T[4,6] dynamic-update-slice(p, u, n, n)",
     STARTS "u = $T[2,3] slice(q), slice={[0:2], [0:3]}\n ROOT r = $T[4,6] dynamic-update-slice(p, u, n, n)",
     [](Instruction* i) { return i->operand(1)->shape().ElementCount() == 0 ? i->operand(0) : nullptr; }},
    {"dynamic-update-of-splat",
     {Opcode::DynamicUpdateSlice},
     kAllTypes,
     Numerics::Exact,
     "b = $T[4,6] broadcast(s), dimensions={}\n n = s32[] constant(9)\n u = $T[2,3] slice(q), slice={[0:2], [0:3]}\n"
     " ROOT r = $T[4,6] dynamic-update-slice(b, u, n, n)",
     "n = s32[] constant(9)\n u = $T[2,3] slice(q), slice={[0:2], [0:3]}\n"
     " ROOT r = $T[4,6] dynamic-update-slice(p, u, n, n)",
     UpdateAsPad},
    {"dynamic-update-of-part",
     {Opcode::DynamicUpdateSlice},
     kReal,
     Numerics::Exact,
     STARTS "b = $T[3,5] dynamic-slice(p, n, n), dynamic_slice_sizes={3,5}\n"
            " u = $T[2,3] slice(q), slice={[0:2], [0:3]}\n d = $T[3,5] dynamic-update-slice(b, u, n, n)\n"
            " ROOT r = $T[4,6] dynamic-update-slice(p, d, n, n)",
     STARTS "b = $T[3,5] dynamic-slice(q, n, n), dynamic_slice_sizes={3,5}\n"
            " u = $T[2,3] slice(q), slice={[0:2], [0:3]}\n d = $T[3,5] dynamic-update-slice(b, u, n, n)\n"
            " ROOT r = $T[4,6] dynamic-update-slice(p, d, n, n)",
     UpdateOfPart},
};

}  // namespace

absl::Span<const Rule> DynamicSliceRules() { return kRules; }

}  // namespace kiln
