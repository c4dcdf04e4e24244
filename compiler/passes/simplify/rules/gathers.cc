// Gathers of what is one element, very few, or padded.
#include <algorithm>

#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/simplify/dot_form.h"
#include "compiler/passes/simplify/rules/reducer.h"
#include "compiler/passes/simplify/rules/rule.h"
#include "compiler/passes/simplify/rules/terms.h"

namespace kiln {
namespace {

Instruction* OfScalar(Instruction* i) {
  if (!IsStatic(i) || i->operand(0)->shape().ElementCount() != 1) return nullptr;
  return BroadcastTo(ReshapeTo(i->operand(0), {}), i->shape().dims()).get();
}

// Of up to four numbers: comparisons with the index. An index past either end takes the number there, as a gather does.
Instruction* OfFewNumbers(Instruction* i) {
  constexpr int64_t kFew = 4;
  const Shape& x = i->operand(0)->shape();
  Instruction* index = i->operand(1);
  if (!IsStatic(i) || x.rank() != 1 || x.dim(0) > kFew || x.dim(0) == 0 ||
      *i->attrs().index_vector_dim != index->shape().rank() || i->attrs().collapsed_slice_dims != Ints{0})
    return nullptr;
  const auto number = [&](int64_t k) {
    return BroadcastTo(ReshapeTo(SliceOf(i->operand(0), {k}, {k + 1}), {}), i->shape().dims());
  };
  Expr value = number(0);
  for (int64_t k = 1; k < x.dim(0); ++k) {
    Expr bound = BroadcastTo(IntegerIn(i->parent(), index->shape().type(), k), index->shape().dims());
    value = SelectExpr(CompareExpr(Direction::GE, index, bound), number(k), value);
  }
  return value.get();
}

struct Gather {
  const Instruction* i;
  Ints Of(const std::optional<Ints>& v) const { return v.value_or(Ints()); }
  bool IsBatching(int64_t d) const { return Holds(Of(i->attrs().operand_batching_dims), d); }
  bool IsCollapsed(int64_t d) const { return Holds(Of(i->attrs().collapsed_slice_dims), d); }
};

// The dimension of the result that `d` of the operand passes through to, whole and at no index; -1: none.
int64_t PassedThrough(const Gather& g, int64_t d) {
  if (g.IsBatching(d) || g.IsCollapsed(d) || Holds(g.Of(g.i->attrs().start_index_map), d)) return -1;
  if ((*g.i->attrs().slice_sizes)[static_cast<size_t>(d)] != g.i->operand(0)->shape().dim(d)) return -1;
  size_t offset = 0;
  for (int64_t k = 0; k < d; ++k)
    if (!g.IsBatching(k) && !g.IsCollapsed(k)) ++offset;
  return (*g.i->attrs().offset_dims)[offset];
}

// The dimension of the result that `d` of the indices, not the index vector's, becomes.
int64_t OfIndices(const Gather& g, int64_t d) {
  if (d > *g.i->attrs().index_vector_dim) --d;
  for (int64_t out = 0; out < g.i->shape().rank(); ++out)
    if (!Holds(*g.i->attrs().offset_dims, out) && d-- == 0) return out;
  return -1;
}

// Padding of the operand that the result shows at one of its own dimensions.
struct Moved {
  int64_t operand, result;
  PadDim padding;
};

Ints PaddedDims(const Instruction* pad) {
  Ints out;
  for (size_t d = 0; d < pad->attrs().padding->size(); ++d)
    if (!((*pad->attrs().padding)[d] == PadDim{})) out.push_back(static_cast<int64_t>(d));
  return out;
}

// The gather of `x` and `indices`, with the extents of before the padding, and the padding behind it.
Instruction* PadGather(Instruction* i, Expr x, Instruction* indices, Instruction* value,
                       const std::vector<Moved>& moved) {
  Ints dims = i->shape().dims(), sizes = *i->attrs().slice_sizes;
  attr::Padding padding(dims.size());
  for (const Moved& m : moved) {
    dims[static_cast<size_t>(m.result)] = x.shape().dim(m.operand);
    if (!Gather{i}.IsBatching(m.operand)) sizes[static_cast<size_t>(m.operand)] = x.shape().dim(m.operand);
    padding[static_cast<size_t>(m.result)] = m.padding;
  }
  Instruction* gather = i->parent()->AddClone(i, Shape::Array(i->shape().type(), dims), {x.get(), indices});
  gather->mutable_attrs().slice_sizes = sizes;
  Instruction* pad = i->parent()->Add(Opcode::Pad, Shape::Array(i->shape().type(), i->shape().dims()), {gather, value});
  pad->mutable_attrs().padding = padding;
  return pad;
}

// The dimension of the indices that counts along batching dimension `d` of the operand.
int64_t IndicesBatchingDim(const Gather& g, int64_t d) {
  const Ints& batching = *g.i->attrs().operand_batching_dims;
  const auto k = static_cast<size_t>(std::find(batching.begin(), batching.end(), d) - batching.begin());
  return (*g.i->attrs().start_indices_batching_dims)[k];
}

// gather(pad(x)) is pad(gather(x)), where the padded dimensions pass through, or are of a batch whose indices are
// padded alike and nowhere else.
Instruction* OfPad(Instruction* i) {
  Instruction *pad = i->operand(0), *indices = i->operand(1);
  if (!IsStatic(i) || !pad->Is(Opcode::Pad)) return nullptr;
  const Gather g{i};
  std::vector<Moved> moved;
  size_t batching = 0;
  for (int64_t d : PaddedDims(pad)) {
    const PadDim& p = (*pad->attrs().padding)[static_cast<size_t>(d)];
    if (const int64_t out = PassedThrough(g, d); out >= 0) {
      moved.push_back({d, out, p});
      continue;
    }
    if (!g.IsBatching(d) || !indices->Is(Opcode::Pad)) return nullptr;
    const int64_t k = IndicesBatchingDim(g, d);
    if (!((*indices->attrs().padding)[static_cast<size_t>(k)] == p)) return nullptr;
    moved.push_back({d, OfIndices(g, k), p});
    ++batching;
  }
  if (moved.empty() || (batching && PaddedDims(indices).size() != batching)) return nullptr;
  return PadGather(i, pad->operand(0), batching ? indices->operand(0) : indices, pad->operand(1), moved);
}

// The same through a reshape that leaves the padded dimensions alone.
Instruction* OfReshapedPad(Instruction* i) {
  const Instruction* reshape = i->operand(0);
  if (!IsStatic(i) || !reshape->Is(Opcode::Reshape) || !reshape->operand(0)->Is(Opcode::Pad)) return nullptr;
  Instruction* pad = reshape->operand(0);
  if (pad->shape().ElementCount() == 0) return nullptr;
  const auto kept = DimsKeptByReshape(pad->shape().dims(), reshape->shape().dims());
  Ints dims = reshape->shape().dims();
  std::vector<Moved> moved;
  for (int64_t d : PaddedDims(pad)) {
    const auto pair = std::find_if(kept.begin(), kept.end(), [&](const auto& k) { return k.first == d; });
    const int64_t out = pair == kept.end() ? -1 : PassedThrough({i}, pair->second);
    if (out < 0) return nullptr;
    dims[static_cast<size_t>(pair->second)] = pad->operand(0)->shape().dim(d);
    moved.push_back({pair->second, out, (*pad->attrs().padding)[static_cast<size_t>(d)]});
  }
  if (moved.empty()) return nullptr;
  return PadGather(i, ReshapeTo(pad->operand(0), dims), i->operand(1), pad->operand(1), moved);
}

constexpr const char* kRows =
    "ENTRY e { x = $T[4,6] parameter(0)\n i = s32[5,1] parameter(1)\n"
    " ROOT r = $T[5,6] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},"
    " index_vector_dim=1, slice_sizes={1,6} }";

const Rule kRules[] = {
    {"gather-of-nothing",
     {Opcode::Gather},
     kAllTypes,
     Numerics::Exact,
     "ENTRY e { x = $T[4,0] parameter(0)\n i = s32[5,1] parameter(1)\n"
     " ROOT r = $T[5,0] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},"
     " index_vector_dim=1, slice_sizes={1,0} }",
     kRows,
     [](Instruction* i) { return i->operand(0)->shape().ElementCount() == 0 ? Filled(i, 0) : nullptr; },
     true},
    {"gather-of-scalar",
     {Opcode::Gather},
     kAllTypes,
     Numerics::Exact,
     "ENTRY e { x = $T[1,1] parameter(0)\n i = s32[5,2] parameter(1)\n"
     " ROOT r = $T[5] gather(x, i), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0,1},"
     " index_vector_dim=1, slice_sizes={1,1} }",
     kRows,
     OfScalar,
     true},
    {"gather-of-few",
     {Opcode::Gather},
     kAllTypes,
     Numerics::Exact,
     "ENTRY e { x = $T[3] parameter(0)\n i = s32[50] parameter(1)\n"
     " ROOT r = $T[50] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0},"
     " index_vector_dim=1, slice_sizes={1} }",
     kRows,
     OfFewNumbers,
     true},
    {"gather-of-pad",
     {Opcode::Gather},
     kAllTypes,
     Numerics::Exact,
     "ENTRY e { x = $T[4,6] parameter(0)\n i = s32[5,1] parameter(1)\n s = $T[] parameter(2)\n"
     " p = $T[4,9] pad(x, s), padding=0_0x1_2\n"
     " ROOT r = $T[5,9] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},"
     " index_vector_dim=1, slice_sizes={1,9} }",
     "ENTRY e { x = $T[4,6] parameter(0)\n i = s32[5,1] parameter(1)\n s = $T[] parameter(2)\n"
     " p = $T[7,6] pad(x, s), padding=1_2x0_0\n"
     " ROOT r = $T[5,6] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},"
     " index_vector_dim=1, slice_sizes={1,6} }",
     OfPad,
     true},
    {"gather-of-batch-pad",
     {Opcode::Gather},
     kAllTypes,
     Numerics::Exact,
     "ENTRY e { x = $T[4,6] parameter(0)\n i = s32[5,4,1] parameter(1)\n s = $T[] parameter(2)\n z = s32[] "
     "constant(7)\n"
     " p = $T[7,6] pad(x, s), padding=1_2x0_0\n j = s32[5,7,1] pad(i, z), padding=0_0x1_2x0_0\n"
     " ROOT r = $T[5,7,1] gather(p, j), offset_dims={2}, collapsed_slice_dims={}, start_index_map={1},"
     " operand_batching_dims={0}, start_indices_batching_dims={1}, index_vector_dim=2, slice_sizes={1,1} }",
     kRows,
     OfPad,
     true},
    {"gather-of-reshaped-pad",
     {Opcode::Gather},
     kAllTypes,
     Numerics::Exact,
     "ENTRY e { x = $T[2,2,6] parameter(0)\n i = s32[5,1] parameter(1)\n s = $T[] parameter(2)\n"
     " p = $T[2,2,9] pad(x, s), padding=0_0x0_0x1_2\n m = $T[4,9] reshape(p)\n"
     " ROOT r = $T[5,9] gather(m, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},"
     " index_vector_dim=1, slice_sizes={1,9} }",
     kRows,
     OfReshapedPad,
     true},
};

}  // namespace

absl::Span<const Rule> GatherRules() { return kRules; }

}  // namespace kiln
