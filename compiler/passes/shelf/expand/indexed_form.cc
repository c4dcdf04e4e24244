#include "compiler/passes/shelf/expand/indexed_form.h"

#include <algorithm>

namespace kiln {
namespace {

bool Has(const Ints& v, int64_t x) { return std::find(v.begin(), v.end(), x) != v.end(); }

Ints ListOf(const std::optional<Ints>& v) { return v.value_or(Ints()); }

Ints IndexDims(const Shape& indices, int64_t vector_dim) {
  Ints out;
  for (int64_t d = 0; d < indices.rank(); ++d)
    if (d != vector_dim) out.push_back(indices.dim(d));
  return out;
}

}  // namespace

Instruction* WithoutBatching(Instruction* i) {
  const bool gather = i->Is(Opcode::Gather);
  const Ints operand_dims = ListOf(gather ? i->attrs().operand_batching_dims : i->attrs().input_batching_dims);
  if (operand_dims.empty()) return i;
  const Ints index_dims =
      ListOf(gather ? i->attrs().start_indices_batching_dims : i->attrs().scatter_indices_batching_dims);
  const int64_t count = gather ? 1 : i->operand_count() / 2;
  Expr indices = i->operand(count);
  const int64_t vector_dim = *i->attrs().index_vector_dim;
  PrimitiveType t = indices.type();
  if (BitWidth(t) < 32) indices = ConvertTo(t = PrimitiveType::S32, indices);
  Ints dims = indices.shape().dims();
  if (vector_dim == indices.shape().rank()) {
    dims.push_back(1);
    indices = ReshapeTo(indices, dims);
  }
  Ints column = dims;
  column[vector_dim] = 1;
  std::vector<Expr> parts;
  for (int64_t d : index_dims) parts.push_back(IotaOf(i->parent(), t, column, d));
  if (dims[vector_dim] > 0) parts.push_back(indices);
  std::vector<Instruction*> operands = i->operands();
  operands[static_cast<size_t>(count)] = ConcatOf(parts, vector_dim).get();
  Instruction* n = i->parent()->AddClone(i, i->shape(), operands);
  Attributes& a = n->mutable_attrs();
  Ints& map = gather ? *a.start_index_map : *a.scatter_dims_to_operand_dims;
  map.insert(map.begin(), operand_dims.begin(), operand_dims.end());
  std::optional<Ints>& gone = gather ? a.collapsed_slice_dims : a.inserted_window_dims;
  Ints all = ListOf(gone);
  all.insert(all.end(), operand_dims.begin(), operand_dims.end());
  std::sort(all.begin(), all.end());
  gone = all;
  a.operand_batching_dims.reset();
  a.start_indices_batching_dims.reset();
  a.input_batching_dims.reset();
  a.scatter_indices_batching_dims.reset();
  return n;
}

Expr IndexRows(Expr indices, int64_t vector_dim) {
  const Shape s = indices.shape();
  const int64_t k = vector_dim == s.rank() ? 1 : s.dim(vector_dim);
  Ints order;
  for (int64_t d = 0; d < s.rank(); ++d)
    if (d != vector_dim) order.push_back(d);
  if (vector_dim < s.rank()) order.push_back(vector_dim);
  if (!std::is_sorted(order.begin(), order.end())) indices = TransposeBy(indices, order);
  return ReshapeTo(indices, {Product(IndexDims(s, vector_dim)), k});
}

Ints WindowOf(const Instruction* scatter) {
  const Shape &operand = scatter->operand(0)->shape(), &update = scatter->operands().back()->shape();
  const Ints window = ListOf(scatter->attrs().update_window_dims), gone = ListOf(scatter->attrs().inserted_window_dims);
  Ints out;
  size_t next = 0;
  for (int64_t d = 0; d < operand.rank(); ++d) out.push_back(Has(gone, d) ? 1 : update.dim(window[next++]));
  return out;
}

Expr UpdateRows(const Instruction* scatter, Expr update) {
  const Ints window = ListOf(scatter->attrs().update_window_dims);
  Ints order;
  int64_t n = 1;
  for (int64_t d = 0; d < update.shape().rank(); ++d) {
    if (Has(window, d)) continue;
    order.push_back(d);
    n *= update.shape().dim(d);
  }
  order.insert(order.end(), window.begin(), window.end());
  if (!std::is_sorted(order.begin(), order.end())) update = TransposeBy(update, order);
  Ints dims = WindowOf(scatter);
  dims.insert(dims.begin(), n);
  return ReshapeTo(update, dims);
}

Expr FromRows(const Instruction* gather, Expr rows) {
  const Ints offset = ListOf(gather->attrs().offset_dims), gone = ListOf(gather->attrs().collapsed_slice_dims);
  const Ints index = IndexDims(gather->operand(1)->shape(), *gather->attrs().index_vector_dim);
  Ints dims = index;
  for (int64_t d = 0; d < gather->operand(0)->shape().rank(); ++d)
    if (!Has(gone, d)) dims.push_back((*gather->attrs().slice_sizes)[d]);
  Expr flat = ReshapeTo(rows, dims);
  Ints order;
  int64_t next_index = 0, next_offset = static_cast<int64_t>(index.size());
  for (int64_t d = 0; d < gather->shape().rank(); ++d) order.push_back(Has(offset, d) ? next_offset++ : next_index++);
  return std::is_sorted(order.begin(), order.end()) ? flat : TransposeBy(flat, order);
}

}  // namespace kiln
