#include "compiler/passes/layout/normal_form.h"

#include <algorithm>
#include <cstring>

#include "compiler/hlo/physical_shape.h"

namespace kiln {
namespace {

// `values`, one for each dimension of `s`, in the order of memory.
template <typename T>
std::vector<T> InMemoryOrder(const std::vector<T>& values, const Shape& s) {
  std::vector<T> out;
  for (int64_t d : MajorToMinor(s)) out.push_back(values[d]);
  return out;
}

// Dimensions of `s` as those of its physical shape.
Ints Places(const Ints& dims, const Shape& s) {
  const Ints place = InversePermutation(MajorToMinor(s));
  Ints out;
  for (int64_t d : dims) out.push_back(place[d]);
  return out;
}

int64_t Place(int64_t dim, const Shape& s) { return Places({dim}, s)[0]; }

// Whether the first `n` operands lie in the order of the result.
bool KeepsOrder(const Instruction* i, int64_t n) {
  for (int64_t k = 0; k < n; ++k)
    if (!SameOrderInMemory(i->operand(k)->shape(), i->shape())) return false;
  return true;
}

// `i` with its first `n` operands in normal form, and the result likewise. Attributes that name dimensions are the
// caller's to change; a sharding speaks of the dimensions of `i` and stays there.
Instruction* Over(Instruction* i, int64_t n) {
  std::vector<Instruction*> operands = i->operands();
  for (int64_t k = 0; k < n; ++k) operands[k] = NormalOf(operands[k]);
  Instruction* out = i->parent()->AddClone(i, PhysicalShape(i->shape()), std::move(operands));
  if (out->attrs().sharding) out->mutable_attrs().sharding.reset();
  return out;
}

Instruction* NormalElementwise(Instruction* i) {
  for (const Instruction* o : i->operands())
    if (o->shape().rank() > 0 && !SameOrderInMemory(o->shape(), i->shape())) return nullptr;
  return Over(i, i->operand_count());
}

// A copy into another layout is a transpose of what lies in memory.
Instruction* NormalCopy(Instruction* i) {
  const Shape &from = i->operand(0)->shape(), &to = i->shape();
  if (SameOrderInMemory(from, to)) return Over(i, 1);
  if (from.LiesInSlowMemory() != to.LiesInSlowMemory()) return nullptr;
  Instruction* out = i->parent()->Add(Opcode::Transpose, PhysicalShape(to), {NormalOf(i->operand(0))});
  out->mutable_attrs().dimensions = Places(MajorToMinor(to), from);
  return out;
}

Instruction* NormalTranspose(Instruction* i) {
  const Shape& from = i->operand(0)->shape();
  const Ints dims = Places(InMemoryOrder(*i->attrs().dimensions, i->shape()), from);
  // What was a transpose of values only leaves the memory as it is.
  if (std::is_sorted(dims.begin(), dims.end())) return NormalOf(i->operand(0));
  Instruction* out = Over(i, 1);
  out->mutable_attrs().dimensions = dims;
  return out;
}

Instruction* NormalBroadcast(Instruction* i) {
  const Ints dims = InMemoryOrder(*i->attrs().dimensions, i->operand(0)->shape());
  Instruction* out = Over(i, 1);
  out->mutable_attrs().dimensions = Places(dims, i->shape());
  return out;
}

Instruction* NormalIota(Instruction* i) {
  Instruction* out = Over(i, 0);
  out->mutable_attrs().iota_dimension = Place(i->attrs().iota_dimension.value_or(0), i->shape());
  return out;
}

// A dimension of pieces of elements has to be the fastest, and the others as they are on the other side.
Instruction* NormalBitcastConvert(Instruction* i) {
  const Shape &from = i->operand(0)->shape(), &to = i->shape();
  if (from.rank() == to.rank()) return NormalElementwise(i);
  const Shape &wide = from.rank() < to.rank() ? from : to, &pieces = from.rank() < to.rank() ? to : from;
  Ints order = MajorToMinor(pieces);
  if (order.back() != pieces.rank() - 1) return nullptr;
  order.pop_back();
  return order == MajorToMinor(wide) ? Over(i, 1) : nullptr;
}

Instruction* NormalReshape(Instruction* i) {
  return ReshapeKeepsMemory(i->operand(0)->shape(), i->shape()) ? Over(i, 1) : nullptr;
}

Instruction* NormalConcatenate(Instruction* i) {
  if (!KeepsOrder(i, i->operand_count())) return nullptr;
  Instruction* out = Over(i, i->operand_count());
  out->mutable_attrs().dimensions = Places(*i->attrs().dimensions, i->shape());
  return out;
}

Instruction* NormalReverse(Instruction* i) {
  if (!KeepsOrder(i, 1)) return nullptr;
  Ints dims = Places(*i->attrs().dimensions, i->shape());
  std::sort(dims.begin(), dims.end());
  Instruction* out = Over(i, 1);
  out->mutable_attrs().dimensions = dims;
  return out;
}

Instruction* NormalSlice(Instruction* i) {
  if (!KeepsOrder(i, 1)) return nullptr;
  Instruction* out = Over(i, 1);
  out->mutable_attrs().slice = InMemoryOrder(*i->attrs().slice, i->shape());
  return out;
}

Instruction* NormalPad(Instruction* i) {
  if (!KeepsOrder(i, 1)) return nullptr;
  Instruction* out = Over(i, 1);
  out->mutable_attrs().padding = InMemoryOrder(*i->attrs().padding, i->shape());
  return out;
}

Instruction* NormalReduceWindow(Instruction* i) {
  const int64_t arrays = i->operand_count() / 2;
  if (!KeepsOrder(i, arrays) || static_cast<int64_t>(i->attrs().window->size()) != i->shape().rank()) return nullptr;
  Instruction* out = Over(i, arrays);
  out->mutable_attrs().window = InMemoryOrder(*i->attrs().window, i->shape());
  return out;
}

// Makes the starts, which are the operands from `first` on, follow the order in memory.
bool OrderStarts(Instruction* out, const Instruction* i, int64_t first) {
  if (i->operand_count() != first + i->shape().rank()) return false;
  const std::vector<Instruction*> starts(i->operands().begin() + first, i->operands().end());
  const std::vector<Instruction*> ordered = InMemoryOrder(starts, i->shape());
  for (size_t k = 0; k < ordered.size(); ++k) out->ReplaceOperand(first + static_cast<int64_t>(k), ordered[k]);
  return true;
}

Instruction* NormalDynamicSlice(Instruction* i) {
  if (!KeepsOrder(i, 1)) return nullptr;
  Instruction* out = Over(i, 1);
  out->mutable_attrs().dynamic_slice_sizes = InMemoryOrder(*i->attrs().dynamic_slice_sizes, i->shape());
  return OrderStarts(out, i, 1) ? out : nullptr;
}

Instruction* NormalDynamicUpdateSlice(Instruction* i) {
  if (!KeepsOrder(i, 2)) return nullptr;
  Instruction* out = Over(i, 2);
  return OrderStarts(out, i, 2) ? out : nullptr;
}

// The dimensions of an update's window go with those of the array that they are windows of, in its order.
Instruction* NormalScatter(Instruction* i) {
  const Attributes& a = i->attrs();
  const Shape &array = i->operand(0)->shape(), &indices = i->operand(1)->shape(), &update = i->operand(2)->shape();
  const bool batching = a.input_batching_dims && !a.input_batching_dims->empty();
  // Dimensions of indices and updates that are neither window nor vector correspond by their order: one is the most
  // that any order keeps.
  const int64_t scattered = update.rank() - static_cast<int64_t>(a.update_window_dims->size());
  if (i->operand_count() != 3 || batching || scattered > 1 || !KeepsOrder(i, 1) ||
      *a.index_vector_dim >= indices.rank())
    return nullptr;
  Ints window_of(array.rank(), -1);
  size_t next = 0;
  for (int64_t d = 0; d < array.rank(); ++d)
    if (std::find(a.inserted_window_dims->begin(), a.inserted_window_dims->end(), d) == a.inserted_window_dims->end())
      window_of[d] = Place((*a.update_window_dims)[next++], update);
  Ints windows, inserted;
  const Ints ordered = InMemoryOrder(window_of, array);
  for (int64_t d = 0; d < array.rank(); ++d) {
    if (ordered[d] < 0) inserted.push_back(d);
    if (ordered[d] >= 0) windows.push_back(ordered[d]);
  }
  if (!std::is_sorted(windows.begin(), windows.end())) return nullptr;
  Instruction* out = Over(i, 3);
  Attributes& to = out->mutable_attrs();
  to.update_window_dims = windows;
  to.inserted_window_dims = inserted;
  to.scatter_dims_to_operand_dims = Places(*a.scatter_dims_to_operand_dims, array);
  to.index_vector_dim = Place(*a.index_vector_dim, indices);
  return out;
}

// Roles of dimensions move with the dimensions: a convolution takes each of its arrays in any order.
Instruction* NormalConvolution(Instruction* i) {
  const Shape &input = i->operand(0)->shape(), &kernel = i->operand(1)->shape();
  ConvDimensionNumbers n = *i->attrs().dim_labels;
  if (n.input_others + n.kernel_others + n.output_others > 0) return nullptr;
  n.input_batch = Place(n.input_batch, input);
  n.input_feature = Place(n.input_feature, input);
  n.input_spatial = Places(n.input_spatial, input);
  n.kernel_input = Place(n.kernel_input, kernel);
  n.kernel_output = Place(n.kernel_output, kernel);
  n.kernel_spatial = Places(n.kernel_spatial, kernel);
  n.output_batch = Place(n.output_batch, i->shape());
  n.output_feature = Place(n.output_feature, i->shape());
  n.output_spatial = Places(n.output_spatial, i->shape());
  Instruction* out = Over(i, 2);
  out->mutable_attrs().dim_labels = n;
  return out;
}

Instruction* NormalConstant(Instruction* i) {
  const Shape to = PhysicalShape(i->shape());
  const Ints strides = i->shape().Strides();
  const Literal& from = i->literal();
  const int64_t width = ByteWidth(from.type()), n = from.size();
  Literal l(to);
  for (int64_t k = 0; k < n; ++k) {
    int64_t left = k, at = 0;
    for (int64_t d = i->shape().rank() - 1; d >= 0; --d) {
      at += left % i->shape().dim(d) * strides[d];
      left /= i->shape().dim(d);
    }
    std::memcpy(l.mutable_data() + at * width, from.data() + k * width, static_cast<size_t>(width));
  }
  Instruction* out = i->parent()->AddConstant(std::move(l));
  out->mutable_shape() = to;
  return out;
}

}  // namespace

Instruction* NormalOf(Instruction* x) {
  if (x->shape().HasDefaultLayout()) return x;
  const Shape normal = PhysicalShape(x->shape());
  if (x->Is(Opcode::Bitcast) && x->operand(0)->shape() == normal) return x->operand(0);
  for (Instruction* u : x->users())
    if (u->Is(Opcode::Bitcast) && u->shape() == normal) return u;
  return x->parent()->Add(Opcode::Bitcast, normal, {x});
}

Instruction* NormalForm(Instruction* i) {
  switch (i->opcode()) {
    case Opcode::BitcastConvert:
      return NormalBitcastConvert(i);
    case Opcode::Broadcast:
      return NormalBroadcast(i);
    case Opcode::Concatenate:
      return NormalConcatenate(i);
    case Opcode::Constant:
      return NormalConstant(i);
    case Opcode::Convolution:
      return NormalConvolution(i);
    case Opcode::Copy:
      return NormalCopy(i);
    case Opcode::DynamicSlice:
      return NormalDynamicSlice(i);
    case Opcode::DynamicUpdateSlice:
      return NormalDynamicUpdateSlice(i);
    case Opcode::Iota:
      return NormalIota(i);
    case Opcode::Pad:
      return NormalPad(i);
    case Opcode::ReduceWindow:
      return NormalReduceWindow(i);
    case Opcode::Reshape:
      return NormalReshape(i);
    case Opcode::Reverse:
      return NormalReverse(i);
    case Opcode::Scatter:
      return NormalScatter(i);
    case Opcode::Slice:
      return NormalSlice(i);
    case Opcode::Transpose:
      return NormalTranspose(i);
    default:
      return i->IsElementwise() ? NormalElementwise(i) : nullptr;
  }
}

}  // namespace kiln
