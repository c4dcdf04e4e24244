// Evaluator: operations that move elements.
#include <algorithm>
#include <cstring>

#include "compiler/eval/families.h"
#include "compiler/eval/scalar.h"

namespace kiln {
namespace {

using Operands = std::vector<const Literal*>;

void CopyElement(const Literal& from, int64_t k, Literal* to, int64_t n) {
  if (from.type() != to->type()) return to->Set(n, from.Get(k));  // mixed precision
  const int64_t w = ByteWidth(from.type());
  std::memcpy(to->mutable_data() + n * w, from.data() + k * w, w);
}

// Start index of a dynamic slice, clamped so that the window fits; unsigned 64-bit starts are huge, not negative.
int64_t ClampStart(const Literal& l, int64_t n, int64_t extent, int64_t window) {
  const int64_t v = l.Get(n).i;
  const int64_t hi = extent - window;
  if (v < 0) return IsUnsigned(l.type()) ? hi : 0;
  return std::min(v, hi);
}

absl::StatusOr<Literal> Reshape(const Instruction& i, const Shape& shape, const Operands& x) {
  const int64_t n = shape.ElementCount();
  if (x[0]->size() != n) return Internal(i.name(), ": reshapes ", x[0]->size(), " elements to ", n);
  return x[0]->Reshaped(shape);
}

// Where each element of an array lies: byte offsets, in the order of its elements.
Ints BytesOf(const Shape& s) {
  const IndexSpace space(s.dims());
  const Ints strides = s.Strides();
  Ints out(s.ElementCount());
  for (int64_t k = 0; k < s.ElementCount(); ++k) {
    const Ints at = space.At(k);
    for (int64_t d = 0; d < s.rank(); ++d) out[k] += at[d] * strides[d] * ByteWidth(s.type());
  }
  return out;
}

// The same bytes under the result's type and layout.
absl::StatusOr<Literal> Bitcast(const Instruction& i, const Shape& shape, const Operands& x) {
  const Shape &from = i.operand(0)->shape(), &to = i.shape();
  if (from.type() == to.type() && from.HasDefaultLayout() && to.HasDefaultLayout()) return Reshape(i, shape, x);
  Literal out(to);
  if (x[0]->size() != from.ElementCount() || x[0]->byte_size() != out.byte_size())
    return Internal(i.name(), ": its bytes do not fill its shape");
  std::vector<uint8_t> memory(static_cast<size_t>(out.byte_size()));
  const int64_t read = ByteWidth(from.type()), written = ByteWidth(to.type());
  const Ints source = BytesOf(from), target = BytesOf(to);
  for (size_t k = 0; k < source.size(); ++k)
    std::memcpy(memory.data() + source[k], x[0]->data() + static_cast<int64_t>(k) * read, read);
  for (size_t k = 0; k < target.size(); ++k)
    std::memcpy(out.mutable_data() + static_cast<int64_t>(k) * written, memory.data() + target[k], written);
  return out;
}

absl::StatusOr<Literal> BitcastConvert(const Instruction& i, const Shape& shape, const Operands& x) {
  Literal out(shape);
  const int64_t n = out.size();
  const int from = InfoOf(x[0]->type()).bits, to = InfoOf(out.type()).bits;
  if (x[0]->size() * from != n * to) return Internal(i.name(), ": its bits do not fill its shape");
  if (from >= 8 && to >= 8) {
    if (n) std::memcpy(out.mutable_data(), x[0]->data(), out.byte_size());
    return out;
  }
  // Narrow elements lie in bytes of their own; their bits follow each other, the lowest first.
  auto bit = [&](int64_t at) {
    const int64_t byte = from < 8 ? at / from : at / 8;
    return x[0]->data()[byte] >> (from < 8 ? at % from : at % 8) & 1;
  };
  for (int64_t k = 0; k < n * to; ++k) {
    const int64_t byte = to < 8 ? k / to : k / 8;
    out.mutable_data()[byte] |= static_cast<uint8_t>(bit(k) << (to < 8 ? k % to : k % 8));
  }
  for (int64_t k = 0; to < 8 && k < n; ++k) out.Set(k, out.Get(k));  // sign extension
  return out;
}

// Each element of the result is the operand's at the place that `source` makes of its own; elsewhere zeros.
template <typename Source>
Literal Rearranged(const Shape& shape, const Literal& x, Source source) {
  Literal out(shape);
  const IndexSpace to(shape.dims()), from(x.shape().dims());
  for (int64_t k = 0; k < out.size(); ++k) {
    const Ints at = source(to.At(k));
    if (from.Holds(at)) CopyElement(x, from.Linear(at), &out, k);
  }
  return out;
}

// Dimension d of `x` is the result's dimension to[d]; along others the result repeats.
Literal Spread(const Shape& shape, const Literal& x, const Ints& to) {
  bool fits = x.type() == shape.type() && shape.rank() > 0;
  Ints steps(shape.rank(), 0);
  for (int64_t d = x.shape().rank() - 1, step = 1; d >= 0; step *= x.shape().dim(d--)) {
    steps[to[d]] = step;
    fits = fits && x.shape().dim(d) == shape.dim(to[d]);
  }
  if (!fits)
    return Rearranged(shape, x, [&](const Ints& at) {
      Ints from;
      for (int64_t d : to) from.push_back(at[d]);
      return from;
    });
  Literal out(shape);
  if (out.size() == 0) return out;
  const int64_t w = ByteWidth(shape.type()), row = shape.dims().back(), step = steps.back() * w;
  uint8_t* written = out.mutable_data();
  Ints at(shape.rank() - 1, 0);
  for (int64_t k = 0; k < out.size(); k += row) {
    const uint8_t* read = x.data();
    for (size_t d = 0; d < at.size(); ++d) read += at[d] * steps[d] * w;
    for (int64_t e = 0; e < row; ++e, written += w, read += step) std::memcpy(written, read, static_cast<size_t>(w));
    for (size_t d = at.size(); d-- > 0 && ++at[d] == shape.dim(static_cast<int64_t>(d));) at[d] = 0;
  }
  return out;
}

absl::StatusOr<Literal> Broadcast(const Instruction& i, const Shape& shape, const Operands& x) {
  return Spread(shape, *x[0], *i.attrs().dimensions);
}

absl::StatusOr<Literal> Transpose(const Instruction& i, const Shape& shape, const Operands& x) {
  Ints to(shape.rank());
  for (int64_t d = 0; d < shape.rank(); ++d) to[(*i.attrs().dimensions)[d]] = d;
  return Spread(shape, *x[0], to);
}

absl::StatusOr<Literal> Reverse(const Instruction& i, const Shape& shape, const Operands& x) {
  return Rearranged(shape, *x[0], [&](Ints at) {
    for (int64_t d : *i.attrs().dimensions) at[d] = shape.dim(d) - 1 - at[d];
    return at;
  });
}

absl::StatusOr<Literal> Slice(const Instruction& i, const Shape& shape, const Operands& x) {
  const attr::Slices& slices = *i.attrs().slice;
  return Rearranged(shape, *x[0], [&](Ints at) {
    for (size_t d = 0; d < at.size(); ++d) at[d] = slices[d].start + at[d] * slices[d].stride;
    return at;
  });
}

absl::StatusOr<Literal> Pad(const Instruction& i, const Shape& shape, const Operands& x) {
  Literal out(shape);
  for (int64_t k = 0; k < out.size(); ++k) CopyElement(*x[1], 0, &out, k);
  const IndexSpace from(x[0]->shape().dims()), to(shape.dims());
  for (int64_t k = 0; k < x[0]->size(); ++k) {
    Ints at = from.At(k);
    for (size_t d = 0; d < at.size(); ++d) {
      const PadDim& pad = (*i.attrs().padding)[d];
      at[d] = pad.low + at[d] * (pad.interior + 1);
    }
    if (to.Holds(at)) CopyElement(*x[0], k, &out, to.Linear(at));
  }
  return out;
}

absl::StatusOr<Literal> Concatenate(const Instruction& i, const Shape& shape, const Operands& x) {
  Literal out(shape);
  const IndexSpace to(shape.dims());
  const int64_t d = (*i.attrs().dimensions)[0];
  int64_t base = 0;
  for (const Literal* l : x) {
    const IndexSpace from(l->shape().dims());
    for (int64_t k = 0; k < l->size(); ++k) {
      Ints at = from.At(k);
      at[d] += base;
      CopyElement(*l, k, &out, to.Linear(at));
    }
    base += l->shape().dim(d);
  }
  return out;
}

absl::StatusOr<Literal> Iota(const Instruction& i, const Shape& shape, const Operands&) {
  Literal out(shape);
  const IndexSpace to(shape.dims());
  for (int64_t k = 0; k < out.size(); ++k) {
    Element e;
    e.i = shape.rank() ? to.At(k)[i.attrs().iota_dimension.value_or(0)] : 0;
    out.Set(k, ConvertElement(e, PrimitiveType::S64, shape.type()));
  }
  return out;
}

// Where the window of a dynamic slice begins: the indices from operand `first` on, one vector or a scalar for each
// dimension, clamped by the bounds of the array and of the window.
Ints Starts(const Operands& x, size_t first, const Shape& array, const Shape& window) {
  const bool vector = x.size() == first + 1 && x[first]->shape().rank() == 1;
  Ints start;
  for (int64_t d = 0; d < window.rank(); ++d)
    start.push_back(ClampStart(vector ? *x[first] : *x[first + d], vector ? d : 0, array.dim(d), window.dim(d)));
  return start;
}

Ints Sum(Ints a, const Ints& b) {
  for (size_t d = 0; d < a.size(); ++d) a[d] += b[d];
  return a;
}

absl::StatusOr<Literal> DynamicSlice(const Instruction& i, const Shape& shape, const Operands& x) {
  const Ints start = Starts(x, 1, i.operand(0)->shape(), i.shape());
  return Rearranged(shape, *x[0], [&](Ints at) { return Sum(std::move(at), start); });
}

absl::StatusOr<Literal> DynamicUpdateSlice(const Instruction& i, const Shape&, const Operands& x) {
  const Ints start = Starts(x, 2, i.operand(0)->shape(), i.operand(1)->shape());
  Literal out = *x[0];
  const IndexSpace to(x[0]->shape().dims()), from(x[1]->shape().dims());
  for (int64_t k = 0; k < x[1]->size(); ++k)
    if (const Ints at = Sum(from.At(k), start); to.Holds(at)) CopyElement(*x[1], k, &out, to.Linear(at));
  return out;
}

bool In(const Ints& list, int64_t d) { return std::find(list.begin(), list.end(), d) != list.end(); }

// How a gather or a scatter addresses an array: positions of the result (of the updates) are divided into those of an
// index vector and those in its window.
struct Windows {
  Ints window_dims;     // of the result
  Ints left_out;        // dimensions of the array that windows have not: collapsed or inserted
  Ints batching;        // the same, taken from the index vector's position
  Ints index_batching;  // dimensions of the indices for these
  Ints indexed;         // dimensions of the array that an index vector's elements are for
  int64_t index_vector_dim;

  void Split(const Ints& at, Ints* batch, Ints* window) const {
    for (size_t d = 0; d < at.size(); ++d)
      (In(window_dims, static_cast<int64_t>(d)) ? window : batch)->push_back(at[d]);
  }
  // Place of element `c` of the index vector at `batch`.
  int64_t IndexAt(const Shape& indices, Ints batch, size_t c) const {
    if (index_vector_dim < indices.rank()) batch.insert(batch.begin() + index_vector_dim, static_cast<int64_t>(c));
    return IndexSpace(indices.dims()).Linear(batch);
  }
  // Of the array's dimensions, in order.
  bool HasWindow(int64_t d) const { return !In(left_out, d) && !In(batching, d); }
  // The window's start, moved to the place in the array.
  void Move(const Ints& batch, const Ints& window, Ints* at) const {
    for (size_t c = 0; c < batching.size(); ++c)
      (*at)[batching[c]] = batch[index_batching[c] - (index_batching[c] > index_vector_dim ? 1 : 0)];
    size_t next = 0;
    for (size_t d = 0; d < at->size(); ++d)
      if (HasWindow(static_cast<int64_t>(d))) (*at)[d] += window[next++];
  }
};

absl::StatusOr<Literal> Gather(const Instruction& i, const Shape& shape, const Operands& x) {
  const Attributes& a = i.attrs();
  const Windows w = {*a.offset_dims,
                     *a.collapsed_slice_dims,
                     a.operand_batching_dims.value_or(Ints()),
                     a.start_indices_batching_dims.value_or(Ints()),
                     *a.start_index_map,
                     *a.index_vector_dim};
  if (x[0]->size() == 0) return Literal(shape);  // windows without elements: zeros
  return Rearranged(shape, *x[0], [&](const Ints& to) {
    Ints batch, window, from(x[0]->shape().rank(), 0);
    w.Split(to, &batch, &window);
    for (size_t c = 0; c < w.indexed.size(); ++c) {
      const int64_t d = w.indexed[c];
      from[d] =
          ClampStart(*x[1], w.IndexAt(x[1]->shape(), batch, c), i.operand(0)->shape().dim(d), (*a.slice_sizes)[d]);
    }
    w.Move(batch, window, &from);
    return from;
  });
}

absl::StatusOr<Literal> Scatter(const Instruction& i, const Shape& shape, const Operands& x) {
  const Attributes& a = i.attrs();
  const Windows w = {*a.update_window_dims,
                     *a.inserted_window_dims,
                     a.input_batching_dims.value_or(Ints()),
                     a.scatter_indices_batching_dims.value_or(Ints()),
                     *a.scatter_dims_to_operand_dims,
                     *a.index_vector_dim};
  const size_t count = x.size() / 2;
  std::vector<Literal> results;
  for (size_t c = 0; c < count; ++c) results.push_back(*x[c]);
  const Literal& indices = *x[count];
  const IndexSpace array(x[0]->shape().dims()), updates(x[count + 1]->shape().dims());
  // Windows fit by bounds, not by sizes.
  const Shape& bound = i.operand(0)->shape();
  const Shape& reach = i.operand(static_cast<int64_t>(count) + 1)->shape();
  Ints window_extent(bound.rank(), 1);
  size_t next = 0;
  for (int64_t d = 0; d < bound.rank(); ++d)
    if (w.HasWindow(d)) window_extent[d] = reach.dim(w.window_dims[next++]);
  for (int64_t k = 0; k < x[count + 1]->size(); ++k) {
    Ints batch, window, to(bound.rank(), 0);
    w.Split(updates.At(k), &batch, &window);
    bool inside = true;
    for (size_t c = 0; c < w.indexed.size(); ++c) {
      const int64_t d = w.indexed[c];
      to[d] = indices.Get(w.IndexAt(indices.shape(), batch, c)).i;
      // A window with any part outside is skipped whole.
      inside = inside && to[d] >= 0 && to[d] <= bound.dim(d) - window_extent[d];
    }
    if (!inside) continue;
    w.Move(batch, window, &to);
    if (!array.Holds(to)) continue;
    const int64_t at = array.Linear(to);
    std::vector<Element> args;
    for (size_t c = 0; c < count; ++c) args.push_back(results[c].Get(at));
    for (size_t c = 0; c < count; ++c) args.push_back(x[count + 1 + c]->Get(k));
    ASSIGN_OR_RETURN(Literal r, CallScalar(**a.to_apply, args));
    for (size_t c = 0; c < count; ++c) results[c].Set(at, r.shape().IsTuple() ? r.elements()[c].Get(0) : r.Get(0));
  }
  return shape.IsTuple() ? Literal::Tuple(std::move(results)) : results[0];
}

constexpr Meaning kShapeOps[] = {
    {Opcode::Bitcast, Bitcast},
    {Opcode::BitcastConvert, BitcastConvert},
    {Opcode::Broadcast, Broadcast},
    {Opcode::Concatenate, Concatenate},
    {Opcode::DynamicSlice, DynamicSlice},
    {Opcode::DynamicUpdateSlice, DynamicUpdateSlice},
    {Opcode::Gather, Gather},
    {Opcode::Iota, Iota},
    {Opcode::Pad, Pad},
    {Opcode::Reshape, Reshape},
    {Opcode::Reverse, Reverse},
    {Opcode::Scatter, Scatter},
    {Opcode::Slice, Slice},
    {Opcode::Transpose, Transpose},
};

}  // namespace

absl::StatusOr<Literal> EvalShapeOp(const Instruction& i, const Shape& shape, const std::vector<const Literal*>& x) {
  if (!shape.IsArray() && !(shape.IsTuple() && i.Is(Opcode::Scatter))) return absl::NotFoundError("");
  return EvaluateBy(kShapeOps, i, shape, x);
}

}  // namespace kiln
