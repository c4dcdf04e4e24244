#include "compiler/passes/expand/rows.h"

namespace kiln {
namespace {

Ints FromTo(int64_t first, int64_t end) {
  Ints dims;
  for (int64_t d = first; d < end; ++d) dims.push_back(d);
  return dims;
}

}  // namespace

Expr GatherRows(Expr from, Expr places) {
  Ints dims = from.shape().dims();
  dims[0] = places.shape().dim(0);
  Instruction* g = from.computation()->Add(Opcode::Gather, Shape::Array(from.type(), dims), {from.get(), places.get()});
  dims[0] = 1;
  g->mutable_attrs().slice_sizes = dims;
  g->mutable_attrs().offset_dims = FromTo(1, from.shape().rank());
  g->mutable_attrs().collapsed_slice_dims = Ints{0};
  g->mutable_attrs().start_index_map = Ints{0};
  g->mutable_attrs().index_vector_dim = 1;
  return g;
}

Expr ScatterRows(Expr to, Expr places, Expr updates, Computation* combine) {
  Instruction* s = to.computation()->Add(Opcode::Scatter, to.shape(), {to.get(), places.get(), updates.get()});
  s->mutable_attrs().update_window_dims = FromTo(1, to.shape().rank());
  s->mutable_attrs().inserted_window_dims = Ints{0};
  s->mutable_attrs().scatter_dims_to_operand_dims = Ints{0};
  s->mutable_attrs().index_vector_dim = 1;
  s->mutable_attrs().to_apply = combine;
  return s;
}

}  // namespace kiln
