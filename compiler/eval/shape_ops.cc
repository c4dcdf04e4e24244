// Evaluator: operations that move elements.
#include <algorithm>
#include <cstring>

#include "compiler/eval/families.h"
#include "compiler/eval/scalar.h"

namespace kiln {
namespace {

void CopyElement(const Literal& from, int64_t k, Literal* to, int64_t n) {
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

}  // namespace

absl::StatusOr<Literal> EvalShapeOp(const Instruction& i, const Shape& shape, const std::vector<const Literal*>& x) {
  const Attributes& a = i.attrs();
  if (shape.IsTuple()) {
    if (!i.Is(Opcode::Scatter)) return absl::NotFoundError("");
  } else if (!shape.IsArray()) {
    return absl::NotFoundError("");
  }
  const bool tuple = shape.IsTuple();
  Literal out = tuple ? Literal() : Literal(shape);
  const IndexSpace os(tuple ? Ints() : shape.dims());
  const int64_t n = tuple ? 0 : out.size();
  switch (i.opcode()) {
    case Opcode::Reshape:
    case Opcode::Bitcast:
      if (x[0]->size() != n) return Internal(i.name(), ": reshapes ", x[0]->size(), " elements to ", n);
      return x[0]->Reshaped(shape);
    case Opcode::BitcastConvert: {
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
    case Opcode::Broadcast: {
      const IndexSpace is(x[0]->shape().dims());
      for (int64_t k = 0; k < n; ++k) {
        const Ints o = os.At(k);
        Ints from;
        for (int64_t d : *a.dimensions) from.push_back(o[d]);
        CopyElement(*x[0], is.Linear(from), &out, k);
      }
      return out;
    }
    case Opcode::Transpose: {
      const IndexSpace is(x[0]->shape().dims());
      for (int64_t k = 0; k < n; ++k) {
        const Ints o = os.At(k);
        Ints from(o.size());
        for (size_t d = 0; d < o.size(); ++d) from[(*a.dimensions)[d]] = o[d];
        CopyElement(*x[0], is.Linear(from), &out, k);
      }
      return out;
    }
    case Opcode::Reverse: {
      for (int64_t k = 0; k < n; ++k) {
        Ints o = os.At(k);
        for (int64_t d : *a.dimensions) o[d] = shape.dim(d) - 1 - o[d];
        CopyElement(*x[0], os.Linear(o), &out, k);
      }
      return out;
    }
    case Opcode::Slice: {
      const IndexSpace is(x[0]->shape().dims());
      for (int64_t k = 0; k < n; ++k) {
        Ints o = os.At(k);
        for (size_t d = 0; d < o.size(); ++d) o[d] = (*a.slice)[d].start + o[d] * (*a.slice)[d].stride;
        if (is.Holds(o)) CopyElement(*x[0], is.Linear(o), &out, k);
      }
      return out;
    }
    case Opcode::Pad: {
      for (int64_t k = 0; k < n; ++k) CopyElement(*x[1], 0, &out, k);
      const IndexSpace is(x[0]->shape().dims());
      for (int64_t k = 0; k < x[0]->size(); ++k) {
        Ints p = is.At(k);
        bool inside = true;
        for (size_t d = 0; d < p.size(); ++d) {
          const PadDim& q = (*a.padding)[d];
          p[d] = q.low + p[d] * (q.interior + 1);
          inside = inside && p[d] >= 0 && p[d] < shape.dim(d);
        }
        if (inside) CopyElement(*x[0], k, &out, os.Linear(p));
      }
      return out;
    }
    case Opcode::Concatenate: {
      const int64_t d = (*a.dimensions)[0];
      int64_t base = 0;
      for (const Literal* l : x) {
        const IndexSpace is(l->shape().dims());
        for (int64_t k = 0; k < l->size(); ++k) {
          Ints p = is.At(k);
          p[d] += base;
          CopyElement(*l, k, &out, os.Linear(p));
        }
        base += l->shape().dim(d);
      }
      return out;
    }
    case Opcode::Iota: {
      for (int64_t k = 0; k < n; ++k) {
        Element e;
        e.i = shape.rank() ? os.At(k)[a.iota_dimension.value_or(0)] : 0;
        out.Set(k, ConvertElement(e, PrimitiveType::S64, shape.type()));
      }
      return out;
    }
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice: {
      // Starts are clamped by bounds: the window's and the array's.
      const bool slice = i.Is(Opcode::DynamicSlice);
      const Shape &bound = i.operand(0)->shape(), &reach = slice ? i.shape() : i.operand(1)->shape();
      const Shape& window = slice ? shape : x[1]->shape();
      const IndexSpace big(x[0]->shape().dims()), small(window.dims());
      Ints start;
      for (int64_t d = 0; d < window.rank(); ++d) {
        const size_t first = slice ? 1 : 2;
        const bool vec = x.size() == first + 1 && x[first]->shape().rank() == 1;
        start.push_back(ClampStart(vec ? *x[first] : *x[first + d], vec ? d : 0, bound.dim(d), reach.dim(d)));
      }
      if (!slice) out = *x[0];
      for (int64_t k = 0; k < window.ElementCount(); ++k) {
        Ints p = small.At(k);
        for (size_t d = 0; d < p.size(); ++d) p[d] += start[d];
        if (!big.Holds(p)) continue;
        if (slice)
          CopyElement(*x[0], big.Linear(p), &out, k);
        else
          CopyElement(*x[1], k, &out, big.Linear(p));
      }
      return out;
    }
    case Opcode::Gather: {
      const Shape& s = x[0]->shape();
      const Shape& idx = x[1]->shape();
      const IndexSpace is(s.dims()), xs(idx.dims());
      const Ints ob = a.operand_batching_dims.value_or(Ints()), sb = a.start_indices_batching_dims.value_or(Ints());
      if (x[0]->size() == 0) return out;  // windows without elements: zeros
      for (int64_t k = 0; k < n; ++k) {
        const Ints o = os.At(k);
        Ints batch, window;
        for (int64_t d = 0; d < shape.rank(); ++d)
          (std::find(a.offset_dims->begin(), a.offset_dims->end(), d) != a.offset_dims->end() ? window : batch)
              .push_back(o[d]);
        Ints from(s.rank(), 0);
        for (size_t c = 0; c < a.start_index_map->size(); ++c) {
          Ints p = batch;
          if (*a.index_vector_dim < idx.rank()) p.insert(p.begin() + *a.index_vector_dim, static_cast<int64_t>(c));
          const int64_t d = (*a.start_index_map)[c];
          from[d] = ClampStart(*x[1], xs.Linear(p), i.operand(0)->shape().dim(d), (*a.slice_sizes)[d]);
        }
        for (size_t c = 0; c < ob.size(); ++c) from[ob[c]] = batch[sb[c] - (sb[c] > *a.index_vector_dim ? 1 : 0)];
        size_t w = 0;
        for (int64_t d = 0; d < s.rank(); ++d) {
          if (std::find(a.collapsed_slice_dims->begin(), a.collapsed_slice_dims->end(), d) !=
                  a.collapsed_slice_dims->end() ||
              std::find(ob.begin(), ob.end(), d) != ob.end())
            continue;
          from[d] += window[w++];
        }
        if (is.Holds(from)) CopyElement(*x[0], is.Linear(from), &out, k);
      }
      return out;
    }
    case Opcode::Scatter: {
      const size_t count = x.size() / 2;
      std::vector<Literal> results;
      for (size_t c = 0; c < count; ++c) results.push_back(*x[c]);
      const Literal& idx = *x[count];
      const Shape& s = x[0]->shape();
      const Shape &u = x[count + 1]->shape(), &bound = i.operand(0)->shape();
      const Shape& reach = i.operand(static_cast<int64_t>(count) + 1)->shape();
      const IndexSpace is(s.dims()), xs(idx.shape().dims()), us(u.dims());
      const Ints ib = a.input_batching_dims.value_or(Ints()), sb = a.scatter_indices_batching_dims.value_or(Ints());
      Ints window_extent(s.rank(), 1);
      size_t wd = 0;
      for (int64_t d = 0; d < s.rank(); ++d) {
        if (std::find(a.inserted_window_dims->begin(), a.inserted_window_dims->end(), d) !=
                a.inserted_window_dims->end() ||
            std::find(ib.begin(), ib.end(), d) != ib.end())
          continue;
        window_extent[d] = reach.dim((*a.update_window_dims)[wd++]);
      }
      for (int64_t k = 0; k < u.ElementCount(); ++k) {
        const Ints p = us.At(k);
        Ints batch, window;
        for (int64_t d = 0; d < u.rank(); ++d)
          (std::find(a.update_window_dims->begin(), a.update_window_dims->end(), d) != a.update_window_dims->end()
               ? window
               : batch)
              .push_back(p[d]);
        Ints to(s.rank(), 0);
        bool inside = true;
        for (size_t c = 0; c < a.scatter_dims_to_operand_dims->size(); ++c) {
          Ints q = batch;
          if (*a.index_vector_dim < idx.shape().rank())
            q.insert(q.begin() + *a.index_vector_dim, static_cast<int64_t>(c));
          const int64_t d = (*a.scatter_dims_to_operand_dims)[c];
          to[d] = idx.Get(xs.Linear(q)).i;
          // A window with any part outside is skipped whole.
          inside = inside && to[d] >= 0 && to[d] <= bound.dim(d) - window_extent[d];
        }
        if (!inside) continue;
        for (size_t c = 0; c < ib.size(); ++c) to[ib[c]] = batch[sb[c] - (sb[c] > *a.index_vector_dim ? 1 : 0)];
        size_t w = 0;
        for (int64_t d = 0; d < s.rank(); ++d) {
          if (std::find(a.inserted_window_dims->begin(), a.inserted_window_dims->end(), d) !=
                  a.inserted_window_dims->end() ||
              std::find(ib.begin(), ib.end(), d) != ib.end())
            continue;
          to[d] += window[w++];
        }
        if (!is.Holds(to)) continue;
        const int64_t at = is.Linear(to);
        std::vector<Element> args;
        for (size_t c = 0; c < count; ++c) args.push_back(results[c].Get(at));
        for (size_t c = 0; c < count; ++c) args.push_back(x[count + 1 + c]->Get(k));
        ASSIGN_OR_RETURN(Literal r, CallScalar(**a.to_apply, args));
        for (size_t c = 0; c < count; ++c) results[c].Set(at, r.shape().IsTuple() ? r.elements()[c].Get(0) : r.Get(0));
      }
      return tuple ? Literal::Tuple(std::move(results)) : results[0];
    }
    default:
      return absl::NotFoundError("");
  }
}

}  // namespace kiln
