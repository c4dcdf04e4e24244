#include "compiler/eval/runtime_shape.h"

#include <algorithm>

namespace kiln {
namespace {

using Operands = std::vector<const Literal*>;

bool Has(const Ints& list, int64_t d) { return std::find(list.begin(), list.end(), d) != list.end(); }

// Whether dimension `d` of operand `k` has a size, not only an extent.
bool Sized(const Instruction& i, const Operands& x, size_t k, int64_t d) {
  const Shape& bound = i.operand(static_cast<int64_t>(k))->shape();
  return bound.is_dynamic(d) || x[k]->shape().dim(d) != bound.dim(d);
}

// How many places a window has over an extent.
int64_t Places(int64_t extent, const WindowDim& w) {
  const int64_t dilated = extent ? (extent - 1) * w.lhs_dilate + 1 : 0;
  const int64_t room = dilated + w.pad_low + w.pad_high - w.DilatedSize();
  return room < 0 ? 0 : room / w.stride + 1;
}

bool AnySized(const Instruction& i, const Operands& x) {
  for (size_t k = 0; k < x.size(); ++k)
    for (int64_t d = 0; d < x[k]->shape().rank(); ++d)
      if (Sized(i, x, k, d)) return true;
  return false;
}

absl::Status Refuse(const Instruction& i) {
  return ErrorAt(&i, "the reference evaluator does not know what this means on a dynamic dimension",
                 absl::StatusCode::kUnimplemented);
}

// The size of a dimension that several operands share: (operand, its dimension). Those with an extent alone agree with
// any size; sizes agree with each other.
absl::StatusOr<int64_t> Shared(const Instruction& i, const Operands& x,
                               const std::vector<std::pair<size_t, int64_t>>& dims) {
  int64_t size = -1;
  for (const auto& [k, d] : dims) {
    if (!Sized(i, x, k, d)) continue;
    const int64_t n = x[k]->shape().dim(d);
    if (size >= 0 && n != size) return ErrorAt(&i, absl::StrCat("its operands have sizes ", size, " and ", n));
    size = n;
  }
  return size >= 0 ? size : x[dims[0].first]->shape().dim(dims[0].second);
}

// Operands and result of one rank and the same extents.
absl::StatusOr<Ints> Alike(const Instruction& i, const Operands& x, size_t operands, const Shape& result) {
  Ints out = result.dims();
  for (int64_t d = 0; d < result.rank(); ++d) {
    std::vector<std::pair<size_t, int64_t>> dims;
    for (size_t k = 0; k < operands; ++k)
      if (x[k]->shape().rank() == result.rank()) dims.push_back({k, d});
    if (dims.empty()) continue;
    ASSIGN_OR_RETURN(out[d], Shared(i, x, dims));
  }
  return out;
}

// Runs of operand and result dimensions whose bounds have equal products keep their elements to themselves. Of the
// result's dimensions in a run one may be dynamic: the rest of the run's elements is its size.
absl::StatusOr<Ints> Reshaped(const Instruction& i, const Shape& x) {
  const Shape &from = i.operand(0)->shape(), &to = i.shape();
  Ints out = to.dims();
  for (int64_t p = 0, q = 0; p < from.rank() || q < to.rank();) {
    const int64_t first = p, start = q;
    int64_t left = 1, right = 1, total = 1;
    auto take_from = [&] {
      total *= x.dim(p);
      left *= from.dim(p++);
    };
    if (p < from.rank()) take_from();
    if (q < to.rank()) right *= to.dim(q++);
    while (left != right && (p < from.rank() || q < to.rank())) {
      if (p < from.rank() && (left < right || q == to.rank()))
        take_from();
      else
        right *= to.dim(q++);
    }
    // Extents of one that follow belong to this run if their dimension is dynamic.
    while (p < from.rank() && from.dim(p) == 1) total *= x.dim(p++);
    while (q < to.rank() && to.dim(q) == 1 && (p == from.rank() || from.dim(p) != 1)) ++q;
    if (p - first == q - start &&
        std::equal(from.dims().begin() + first, from.dims().begin() + p, to.dims().begin() + start)) {
      for (int64_t d = 0; d < p - first; ++d) out[start + d] = x.dim(first + d);
      continue;
    }
    int64_t open = -1, rest = 1;
    for (int64_t d = start; d < q; ++d) {
      if (to.is_dynamic(d) && open >= 0)
        return ErrorAt(&i, "a reshape to two dynamic dimensions does not say their sizes",
                       absl::StatusCode::kUnimplemented);
      if (to.is_dynamic(d))
        open = d;
      else
        rest *= to.dim(d);
    }
    if (open >= 0 && rest > 0 && total % rest == 0)
      out[open] = total / rest;
    else if (open < 0 ? total != rest : total != 0)
      return ErrorAt(&i, absl::StrCat("its ", total, " elements do not fill ", to.ToString(false)));
  }
  return out;
}

absl::StatusOr<Ints> DotExtents(const Instruction& i, const Operands& x) {
  const Attributes& a = i.attrs();
  const Ints lb = a.lhs_batch_dims.value_or(Ints()), rb = a.rhs_batch_dims.value_or(Ints());
  const Ints lc = a.lhs_contracting_dims.value_or(Ints()), rc = a.rhs_contracting_dims.value_or(Ints());
  Ints out;
  for (size_t k = 0; k < lb.size(); ++k) {
    ASSIGN_OR_RETURN(const int64_t n, Shared(i, x, {{0, lb[k]}, {1, rb[k]}}));
    out.push_back(n);
  }
  for (size_t k = 0; k < lc.size(); ++k) RETURN_IF_ERROR(Shared(i, x, {{0, lc[k]}, {1, rc[k]}}).status());
  for (int64_t d = 0; d < x[0]->shape().rank(); ++d)
    if (!Has(lb, d) && !Has(lc, d)) out.push_back(x[0]->shape().dim(d));
  for (int64_t d = 0; d < x[1]->shape().rank(); ++d)
    if (!Has(rb, d) && !Has(rc, d)) out.push_back(x[1]->shape().dim(d));
  return out;
}

absl::StatusOr<Ints> ConvolutionExtents(const Instruction& i, const Operands& x) {
  const ConvDimensionNumbers& n = *i.attrs().dim_labels;
  const bool batches = i.attrs().batch_group_count.value_or(1) != 1;
  const bool grouped = batches || i.attrs().feature_group_count.value_or(1) != 1;
  for (int64_t d = 0; d < x[1]->shape().rank(); ++d)
    if (Sized(i, x, 1, d) && (grouped || (d != n.kernel_input && d != n.kernel_output))) return Refuse(i);
  if (Sized(i, x, 0, n.input_feature) && grouped) return Refuse(i);
  if (!grouped) RETURN_IF_ERROR(Shared(i, x, {{0, n.input_feature}, {1, n.kernel_input}}).status());
  Ints out = i.shape().dims();
  out[n.output_feature] = x[1]->shape().dim(n.kernel_output);
  if (Sized(i, x, 0, n.input_batch)) {
    if (batches) return Refuse(i);
    out[n.output_batch] = x[0]->shape().dim(n.input_batch);
  }
  for (size_t k = 0; k < n.input_spatial.size(); ++k)
    out[n.output_spatial[k]] = Places(x[0]->shape().dim(n.input_spatial[k]), (*i.attrs().window)[k]);
  return out;
}

absl::StatusOr<Ints> GatherExtents(const Instruction& i, const Operands& x) {
  const Attributes& a = i.attrs();
  const Ints offset = a.offset_dims.value_or(Ints()), collapsed = a.collapsed_slice_dims.value_or(Ints()),
             batching = a.operand_batching_dims.value_or(Ints());
  Ints windows;  // the operand dimensions that offset dimensions walk
  for (int64_t d = 0; d < x[0]->shape().rank(); ++d)
    if (!Has(collapsed, d) && !Has(batching, d)) windows.push_back(d);
  Ints out = i.shape().dims();
  size_t window = 0;
  int64_t index = 0;
  for (int64_t d = 0; d < i.shape().rank(); ++d) {
    if (Has(offset, d)) {
      const int64_t from = windows[window++];
      // A slice of everything there is has the size; any other is static.
      if ((*a.slice_sizes)[from] == i.operand(0)->shape().dim(from)) out[d] = x[0]->shape().dim(from);
      continue;
    }
    if (index == a.index_vector_dim.value_or(-1)) ++index;
    out[d] = x[1]->shape().dim(index++);
  }
  return out;
}

absl::StatusOr<Ints> TopKExtents(const Instruction& i, const Operands& x, Ints out) {
  const Shape& s = x[0]->shape();
  if (Sized(i, x, 0, s.rank() - 1)) return Refuse(i);
  for (int64_t d = 0; d + 1 < s.rank(); ++d) out[d] = s.dim(d);
  return out;
}

absl::StatusOr<Ints> Extents(const Instruction& i, const Operands& x, const Shape& result) {
  const Attributes& a = i.attrs();
  const Shape& s = x[0]->shape();
  Ints out = result.dims();
  switch (i.opcode()) {
    case Opcode::Broadcast:
      for (int64_t d = 0; d < s.rank(); ++d) out[(*a.dimensions)[d]] = s.dim(d);
      return out;
    case Opcode::Transpose:
      for (int64_t d = 0; d < result.rank(); ++d) out[d] = s.dim((*a.dimensions)[d]);
      return out;
    case Opcode::Reshape:
    case Opcode::Bitcast:
      return Reshaped(i, s);
    case Opcode::BitcastConvert:
      for (int64_t d = 0; d < std::min(s.rank(), result.rank()); ++d) out[d] = s.dim(d);
      return out;
    case Opcode::Reduce: {
      const size_t n = x.size() / 2;
      ASSIGN_OR_RETURN(const Ints in, Alike(i, x, n, s));
      out.clear();
      for (int64_t d = 0; d < s.rank(); ++d)
        if (!Has(*a.dimensions, d)) out.push_back(in[d]);
      return out;
    }
    case Opcode::ReduceWindow: {
      ASSIGN_OR_RETURN(const Ints in, Alike(i, x, x.size() / 2, s));
      for (int64_t d = 0; a.window && d < s.rank(); ++d) out[d] = Places(in[d], (*a.window)[d]);
      return out;
    }
    case Opcode::Dot:
      return DotExtents(i, x);
    case Opcode::Convolution:
      return ConvolutionExtents(i, x);
    case Opcode::Concatenate: {
      const int64_t along = (*a.dimensions)[0];
      int64_t total = 0;
      std::vector<std::pair<size_t, int64_t>> dims;
      for (size_t k = 0; k < x.size(); ++k) {
        total += x[k]->shape().dim(along);
        dims.push_back({k, 0});
      }
      for (int64_t d = 0; d < s.rank(); ++d) {
        for (auto& [k, at] : dims) at = d;
        if (d == along) continue;
        ASSIGN_OR_RETURN(out[d], Shared(i, x, dims));
      }
      out[along] = total;
      return out;
    }
    case Opcode::Slice:
      for (int64_t d = 0; d < s.rank(); ++d) {
        const SliceDim& r = (*a.slice)[d];
        // A part of a dynamic dimension may be static: it is within the size, or reads what is not there.
        if (!result.is_dynamic(d)) continue;
        out[d] = std::max<int64_t>(0, (std::min(s.dim(d), r.limit) - r.start + r.stride - 1) / r.stride);
      }
      return out;
    case Opcode::Pad:
      for (int64_t d = 0; d < s.rank(); ++d) {
        const PadDim& p = (*a.padding)[d];
        out[d] = std::max<int64_t>(0, s.dim(d) + std::max<int64_t>(s.dim(d) - 1, 0) * p.interior + p.low + p.high);
      }
      return out;
    case Opcode::DynamicSlice:
      for (int64_t d = 0; d < s.rank(); ++d)
        if (result.dim(d) == i.operand(0)->shape().dim(d)) out[d] = s.dim(d);
      return out;
    case Opcode::Gather:
      return GatherExtents(i, x);
    case Opcode::DynamicUpdateSlice:
    case Opcode::Reverse:
    case Opcode::SelectAndScatter:
    case Opcode::AllReduce:
    case Opcode::AllReduceStart:
    case Opcode::Cholesky:
      return s.dims();
    case Opcode::TriangularSolve:
      return x[1]->shape().dims();
    case Opcode::TopK:
      return TopKExtents(i, x, std::move(out));
    case Opcode::AllGather: {
      // As many parts as there are bounds of one in the result.
      const int64_t d = (*a.dimensions)[0], bound = i.operand(0)->shape().dim(d);
      if (Sized(i, x, 0, d) && x.size() == 1)
        return ErrorAt(&i, "gathers along a dynamic dimension", absl::StatusCode::kUnimplemented);
      out = s.dims();
      out[d] = bound ? s.dim(d) * (result.dim(d) / bound) : 0;
      return out;
    }
    case Opcode::Map:
    case Opcode::Sort:
    case Opcode::Scatter:
      return Alike(i, x, i.Is(Opcode::Scatter) ? x.size() / 2 : x.size(), s);
    default:
      if (i.IsElementwise()) return Alike(i, x, x.size(), result);
      return Refuse(i);
  }
}

// Operations that hand on what they are given, or that the evaluator of the operation answers for.
bool HandsOn(Opcode op) {
  switch (op) {
    case Opcode::Tuple:
    case Opcode::GetTupleElement:
    case Opcode::OptimizationBarrier:
    case Opcode::AddDependency:
    case Opcode::Domain:
    case Opcode::AfterAll:
    case Opcode::Call:
    case Opcode::Fusion:
    case Opcode::While:
    case Opcode::Conditional:
    case Opcode::AsyncStart:
    case Opcode::AsyncUpdate:
    case Opcode::AsyncDone:
    case Opcode::CopyStart:
    case Opcode::CopyDone:
    case Opcode::AllReduceDone:
    case Opcode::AllGatherDone:
    case Opcode::CollectivePermuteDone:
    case Opcode::Send:
    case Opcode::SendDone:
    case Opcode::Recv:
    case Opcode::RecvDone:
    case Opcode::Infeed:
    case Opcode::Outfeed:
    case Opcode::GetDimensionSize:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<Shape> RuntimeShape(const Instruction& i, const Operands& x) {
  if (HandsOn(i.opcode())) return i.shape();
  const Attributes& a = i.attrs();
  if (i.Is(Opcode::SetDimensionSize)) {
    Ints out = x[0]->shape().dims();
    const int64_t d = (*a.dimensions)[0], n = x[1]->Get(0).i, bound = i.operand(0)->shape().dim(d);
    if (n < 0 || n > bound) return ErrorAt(&i, absl::StrCat("size ", n, " is not within 0 and ", bound));
    out[d] = n;
    return Shape::Array(i.shape().type(), out);
  }
  if (i.Is(Opcode::DynamicReshape)) {
    Ints out = i.shape().dims();
    for (int64_t d = 0; d < i.shape().rank(); ++d)
      if (i.shape().is_dynamic(d)) out[d] = x[d + 1]->Get(0).i;
    if (Product(out) != x[0]->size())
      return ErrorAt(&i, absl::StrCat("its ", x[0]->size(), " elements do not fill the sizes given"));
    return Shape::Array(i.shape().type(), out);
  }
  if (x.empty() || !AnySized(i, x)) return i.shape();
  const Shape& first = i.shape().IsTuple() ? i.shape().tuple()[0] : i.shape();
  ASSIGN_OR_RETURN(const Ints dims, Extents(i, x, first));
  if (!i.shape().IsTuple()) return Shape::Array(i.shape().type(), dims);
  std::vector<Shape> parts;
  for (const Shape& s : i.shape().tuple()) parts.push_back(Shape::Array(s.type(), dims));
  return Shape::Tuple(std::move(parts));
}

}  // namespace kiln
