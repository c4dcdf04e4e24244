// Reshapes of dynamic dimensions: elements keep their row-major order among those that count.
#include <algorithm>

#include "compiler/passes/dynamic_padder/sized_computation.h"

namespace kiln::padding {
namespace {

// Of dimensions [first, last) of the operand and [start, end) of the result, which hold the same elements: extents that
// stay what they are keep their sizes; otherwise one dimension of the result may be dynamic, and takes what is left.
absl::Status SizesOfRun(SizedComputation& f, Instruction* i, const std::vector<Expr>& in, int64_t first, int64_t last,
                        int64_t start, int64_t end, Sizes* sizes) {
  const Shape &from = i->operand(0)->shape(), &to = i->shape();
  if (std::equal(from.dims().begin() + first, from.dims().begin() + last, to.dims().begin() + start,
                 to.dims().begin() + end)) {
    for (int64_t d = start; d < end; ++d)
      if (f.Of(i->operand(0)).contains(first + d - start)) (*sizes)[d] = in[first + d - start].get();
    return absl::OkStatus();
  }
  int64_t open = -1, rest = 1;
  for (int64_t d = start; d < end; ++d) {
    if (!to.is_dynamic(d)) {
      rest *= to.dim(d);
    } else if (open < 0) {
      open = d;
    } else {
      return ErrorAt(i, "a reshape to two dynamic dimensions does not say their sizes",
                     absl::StatusCode::kUnimplemented);
    }
  }
  if (open < 0) {
    for (int64_t d = first; d < last; ++d)
      if (f.Of(i->operand(0)).contains(d))
        return ErrorAt(i, "a reshape of a dynamic dimension to static ones", absl::StatusCode::kUnimplemented);
    return absl::OkStatus();
  }
  Expr total = f.Int(1);
  for (int64_t d = first; d < last; ++d) total = total * in[d];
  (*sizes)[open] = (total / static_cast<double>(std::max<int64_t>(rest, 1))).get();
  return absl::OkStatus();
}

// The sizes of the result: stated by a dynamic-reshape, else those of the operand, run of dimensions by run.
absl::Status SizesOf(SizedComputation& f, Instruction* i, const std::vector<Expr>& in, Sizes* sizes) {
  const Shape &from = i->operand(0)->shape(), &to = i->shape();
  if (i->Is(Opcode::DynamicReshape)) {
    for (int64_t d = 0; d < to.rank(); ++d)
      if (to.is_dynamic(d)) (*sizes)[d] = i->operand(d + 1);
    return absl::OkStatus();
  }
  for (int64_t p = 0, q = 0; p < from.rank() || q < to.rank();) {
    const int64_t first = p, start = q;
    int64_t left = p < from.rank() ? from.dim(p++) : 1, right = q < to.rank() ? to.dim(q++) : 1;
    while (left != right && (p < from.rank() || q < to.rank())) {
      if (p < from.rank() && (left < right || q == to.rank()))
        left *= from.dim(p++);
      else
        right *= to.dim(q++);
    }
    while (p < from.rank() && from.dim(p) == 1 && (q == to.rank() || to.dim(q) != 1)) ++p;
    while (q < to.rank() && to.dim(q) == 1 && (p == from.rank() || from.dim(p) != 1)) ++q;
    RETURN_IF_ERROR(SizesOfRun(f, i, in, first, p, start, q, sizes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PadReshape(SizedComputation& f, Instruction* i) {
  Instruction* x = i->operand(0);
  const Shape to = i->shape();
  const Ints dims = to.dims();
  std::vector<Expr> in, out;
  for (int64_t d = 0; d < x->shape().rank(); ++d) in.push_back(f.SizeOf(x, d));
  for (int64_t d = 0; d < to.rank(); ++d) out.push_back(f.Int(to.dim(d)));
  Sizes sizes;
  RETURN_IF_ERROR(SizesOf(f, i, in, &sizes));
  if (!i->Is(Opcode::DynamicReshape) && x->shape().dims() == dims) return f.Replace(i, x, {{{}, sizes}});
  for (const auto& [d, s] : sizes) out[d] = s;
  // Position by position, where each element comes from.
  Expr linear = BroadcastTo(f.Int(0), dims);
  for (int64_t d = 0; d < to.rank(); ++d)
    linear = linear * BroadcastTo(out[d], dims) + IotaOf(f.computation(), PrimitiveType::S32, dims, d);
  Expr flat = BroadcastTo(f.Int(0), dims);
  int64_t stride = 1;
  for (int64_t d = x->shape().rank() - 1; d >= 0; --d) {
    const Expr size = BroadcastTo(Binary(Opcode::Maximum, in[d], f.Int(1)), dims);
    flat = flat + Binary(Opcode::Remainder, linear, size) * static_cast<double>(stride);
    linear = linear / size;
    stride *= x->shape().dim(d);
  }
  const Expr source = ReshapeTo(x, {stride});
  Instruction* g = f.computation()->Add(Opcode::Gather, Shape::Array(to.type(), dims), {source.get(), flat.get()});
  g->mutable_attrs().offset_dims = Ints{};
  g->mutable_attrs().collapsed_slice_dims = Ints{0};
  g->mutable_attrs().start_index_map = Ints{0};
  g->mutable_attrs().index_vector_dim = to.rank();
  g->mutable_attrs().slice_sizes = Ints{1};
  g->set_loc(i->loc());
  return f.Replace(i, g, {{{}, sizes}});
}

}  // namespace kiln::padding
