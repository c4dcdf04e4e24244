// Reshapes of dynamic dimensions: elements keep their row-major order among those that count.
#include <algorithm>

#include "compiler/passes/dynamic_padder/sized_computation.h"

namespace kiln::padding {
namespace {

// The sizes of the result: stated by a dynamic-reshape, else what is left for its one dynamic dimension.
absl::Status SizesOf(SizedComputation& f, Instruction* i, const std::vector<Expr>& in, Sizes* sizes) {
  const Shape& to = i->shape();
  int64_t open = -1;
  for (int64_t d = 0; d < to.rank(); ++d) {
    if (!to.is_dynamic(d)) continue;
    if (i->Is(Opcode::DynamicReshape)) {
      (*sizes)[d] = i->operand(d + 1);
      continue;
    }
    if (open >= 0)
      return ErrorAt(i, "a reshape to two dynamic dimensions does not say their sizes",
                     absl::StatusCode::kUnimplemented);
    open = d;
  }
  if (i->Is(Opcode::DynamicReshape)) return absl::OkStatus();
  if (open < 0) return ErrorAt(i, "a reshape of a dynamic dimension to static ones", absl::StatusCode::kUnimplemented);
  Expr total = f.Int(1);
  for (const Expr& e : in) total = total * e;
  int64_t rest = 1;
  for (int64_t d = 0; d < to.rank(); ++d)
    if (d != open) rest *= to.dim(d);
  (*sizes)[open] = (total / static_cast<double>(std::max<int64_t>(rest, 1))).get();
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
