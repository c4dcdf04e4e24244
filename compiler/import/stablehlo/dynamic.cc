// StableHLO operations whose extents, offsets or sizes are operands: each becomes the static operation with the values
// that those operands have.
#include <algorithm>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/import/dense.h"
#include "compiler/import/stablehlo/converter.h"

namespace kiln::stablehlo {
namespace {

// `s` where the text states all of its extents, else with those that are the value of `operand`.
absl::StatusOr<Shape> Stated(Call& call, const Shape& s, size_t operand) {
  if (!Unbounded(s)) return s;
  ASSIGN_OR_RETURN(Ints dims, call.Known(operand));
  if (static_cast<int64_t>(dims.size()) != s.rank())
    return call.Fail(absl::StrCat("operand ", operand, " states ", dims.size(), " extents for rank ", s.rank()));
  for (int64_t d : dims)
    if (d < 0) return call.Fail(absl::StrCat("operand ", operand, " states the extent ", d));
  return Shape::Array(s.type(), dims);
}

bool DependsOnArguments(const Instruction* i, absl::flat_hash_set<const Instruction*>* seen) {
  if (!seen->insert(i).second) return false;
  if (i->Is(Opcode::Parameter)) return true;
  for (const Instruction* o : i->operands())
    if (DependsOnArguments(o, seen)) return true;
  return false;
}

// An integer as a constant and multiples of elements of instructions.
struct Linear {
  std::map<std::pair<Instruction*, int64_t>, int64_t> terms;
  int64_t constant = 0;
  Linear Plus(const Linear& o, int64_t sign) const {
    Linear r = *this;
    r.constant += sign * o.constant;
    for (const auto& [element, n] : o.terms)
      if ((r.terms[element] += sign * n) == 0) r.terms.erase(element);
    return r;
  }
};

// Element `k` of a small integer vector or scalar. What is neither a sum nor a rearrangement is a term of its own.
Linear LinearOf(Converter& converter, Instruction* i, int64_t k) {
  absl::flat_hash_set<const Instruction*> seen;
  if (!DependsOnArguments(i, &seen))
    if (auto v = converter.Evaluate(i); v.ok() && k < v->size()) return {{}, v->Get(k).i};
  switch (i->opcode()) {
    case Opcode::Convert:
    case Opcode::Reshape:
      if (IsIntegral(i->operand(0)->shape().type())) return LinearOf(converter, i->operand(0), k);
      break;
    case Opcode::Add:
    case Opcode::Subtract:
      return LinearOf(converter, i->operand(0), k)
          .Plus(LinearOf(converter, i->operand(1), k), i->Is(Opcode::Add) ? 1 : -1);
    case Opcode::Concatenate:
      if (i->shape().rank() != 1) break;
      for (Instruction* o : i->operands()) {
        if (k < o->shape().dim(0)) return LinearOf(converter, o, k);
        k -= o->shape().dim(0);
      }
      break;
    case Opcode::Slice: {
      if (i->shape().rank() != 1) break;
      const SliceDim& d = (*i->attrs().slice)[0];
      return LinearOf(converter, i->operand(0), d.start + k * d.stride);
    }
    default:
      break;
  }
  return {{{{i, k}, 1}}, 0};
}

// The same, once the elements that are left have values when the program is built.
absl::StatusOr<int64_t> ValueOf(Call& call, const Linear& l) {
  int64_t value = l.constant;
  for (const auto& [element, n] : l.terms) {
    auto v = call.converter.Evaluate(element.first);
    if (!v.ok())
      return call.Fail(absl::StrCat("its limit less its start is an extent, but ", v.status().message()),
                       v.status().code());
    value += n * v->Get(element.second).i;
  }
  return value;
}

}  // namespace

absl::Status TakeShapeOperands(Call& call) {
  const Ints at = call.List("indices_of_shape_operands");
  if (at.empty()) return absl::OkStatus();
  if (at.size() != call.types.size()) return call.Fail("indices_of_shape_operands needs one operand for each result");
  std::vector<bool> states(call.x.size());
  for (size_t k = 0; k < at.size(); ++k) {
    if (at[k] < 0 || at[k] >= static_cast<int64_t>(call.x.size()))
      return call.Fail(absl::StrCat("indices_of_shape_operands: there is no operand ", at[k]));
    states[at[k]] = true;
    ASSIGN_OR_RETURN(call.types[k], Stated(call, call.types[k], static_cast<size_t>(at[k])));
  }
  Values operands;
  for (size_t k = 0; k < states.size(); ++k)
    if (!states[k]) operands.push_back(call.x[k]);
  call.x = std::move(operands);
  return absl::OkStatus();
}

absl::StatusOr<Values> ConvertDynamicRngBitGenerator(Call& call) {
  RETURN_IF_ERROR(call.Need(2));
  if (call.types.size() != 2) return call.Fail("gives a state and an array");
  ASSIGN_OR_RETURN(call.types[1], Stated(call, call.types[1], 1));
  call.x.resize(1);
  return ConvertRngBitGenerator(call);
}

absl::StatusOr<Values> ConvertDynamicApproxTopK(Call& call) {
  // How many are kept is an extent of the results.
  if (call.x.empty()) return call.Fail("needs how many elements to keep");
  call.x.pop_back();
  return ConvertApproxTopK(call);
}

absl::StatusOr<Values> ConvertDynamicBroadcast(Call& call) {
  RETURN_IF_ERROR(call.Need(2));
  ASSIGN_OR_RETURN(Shape s, Stated(call, call.result(), 1));
  call.types = {s};
  call.x.resize(1);
  call.name = "broadcast_in_dim";
  return ConvertBroadcast(call);
}

absl::StatusOr<Values> ConvertDynamicIota(Call& call) {
  RETURN_IF_ERROR(call.Need(1));
  ASSIGN_OR_RETURN(Shape s, Stated(call, call.result(), 0));
  call.types = {s};
  call.x.clear();
  return ConvertIota(call);
}

absl::StatusOr<Values> ConvertDynamicReshape(Call& call) {
  RETURN_IF_ERROR(call.Need(2));
  ASSIGN_OR_RETURN(Shape s, Stated(call, call.result(), 1));
  return Values{call.Add(Opcode::Reshape, s, {call.x[0]})};
}

absl::StatusOr<Values> ConvertDynamicPad(Call& call) {
  RETURN_IF_ERROR(call.Need(5));
  ASSIGN_OR_RETURN(Ints low, call.Known(2));
  ASSIGN_OR_RETURN(Ints high, call.Known(3));
  ASSIGN_OR_RETURN(Ints interior, call.Known(4));
  if (low.size() != high.size() || low.size() != interior.size())
    return call.Fail("low, high and interior differ in length");
  attr::Padding p;
  for (size_t d = 0; d < low.size(); ++d) p.push_back({low[d], high[d], interior[d]});
  Instruction* i = call.Add(Opcode::Pad, call.result(), {call.x[0], call.x[1]});
  i->mutable_attrs().padding = std::move(p);
  return Values{i};
}

absl::StatusOr<Values> ConvertDynamicGather(Call& call) {
  RETURN_IF_ERROR(call.Need(3));
  ASSIGN_OR_RETURN(Ints sizes, call.Known(2));
  call.x.resize(2);
  ASSIGN_OR_RETURN(Values out, ConvertGather(call));
  out[0]->mutable_attrs().slice_sizes = std::move(sizes);
  return out;
}

absl::StatusOr<Values> ConvertDynamicConvolution(Call& call) {
  RETURN_IF_ERROR(call.Need(3));
  ASSIGN_OR_RETURN(Ints padding, call.Known(2));
  call.x.resize(2);
  ASSIGN_OR_RETURN(Values out, ConvertConvolution(call));
  attr::Win& window = *out[0]->mutable_attrs().window;
  if (padding.size() != 2 * window.size())
    return call.Fail(absl::StrCat("the padding has ", padding.size(), " values, not ", 2 * window.size()));
  for (size_t d = 0; d < window.size(); ++d) {
    window[d].pad_low = padding[2 * d];
    window[d].pad_high = padding[2 * d + 1];
  }
  return out;
}

// Starts and limits that no argument decides: a slice. Else a dynamic slice, whose sizes are limits less starts.
absl::StatusOr<Values> ConvertRealDynamicSlice(Call& call) {
  RETURN_IF_ERROR(call.Need(4));
  const Shape& s = call.x[0]->shape();
  const size_t rank = static_cast<size_t>(s.rank());
  ASSIGN_OR_RETURN(Ints stride, call.Known(3));
  for (int k = 1; k < 4; ++k)
    if (call.x[k]->shape().rank() != 1 || call.x[k]->shape().dim(0) != s.rank())
      return call.Fail("as many starts, limits and strides as dimensions are needed");
  absl::flat_hash_set<const Instruction*> seen;
  if (!DependsOnArguments(call.x[1], &seen)) {
    ASSIGN_OR_RETURN(Ints start, call.Known(1));
    ASSIGN_OR_RETURN(Ints limit, call.Known(2));
    attr::Slices r;
    for (size_t d = 0; d < rank; ++d) r.push_back({start[d], limit[d], stride[d]});
    Instruction* i = call.Add(Opcode::Slice, call.result(), {call.x[0]});
    i->mutable_attrs().slice = std::move(r);
    return Values{i};
  }
  Shape result = call.result();
  for (size_t d = 0; d < rank; ++d) {
    const int64_t at = static_cast<int64_t>(d);
    if (result.dim(at) >= 0) continue;
    const Linear size = LinearOf(call.converter, call.x[2], at).Plus(LinearOf(call.converter, call.x[1], at), -1);
    ASSIGN_OR_RETURN(result.mutable_dims()[d], ValueOf(call, size));
    result.set_dynamic(at, false);
  }
  if (std::any_of(stride.begin(), stride.end(), [](int64_t v) { return v != 1; }))
    return call.Fail("run-time starts need strides of 1", absl::StatusCode::kUnimplemented);
  Values operands = {call.x[0]};
  for (size_t d = 0; d < rank; ++d) {
    const int64_t at = static_cast<int64_t>(d);
    operands.push_back(ReshapeTo(SliceOf(call.x[1], {at}, {at + 1}), {}).get());
  }
  Instruction* i = call.Add(Opcode::DynamicSlice, result, operands);
  i->mutable_attrs().dynamic_slice_sizes = result.dims();
  return Values{i};
}

absl::StatusOr<Values> ConvertDimensionSize(Call& call) {
  const bool get = call.name == "get_dimension_size";
  RETURN_IF_ERROR(call.Need(get ? 1 : 2));
  const int64_t d = call.op.Has("dim") ? call.One("dim", 0) : call.One("dimension", 0);
  const Shape& s = call.x[0]->shape();
  if (d < 0 || d >= s.rank()) return call.Fail(absl::StrCat("dimension ", d, " is out of range for rank ", s.rank()));
  if (get && !s.is_dynamic(d))
    return Values{call.Finish(call.c->AddConstant(Literal::Int(PrimitiveType::S32, s.dim(d))))};
  Shape result = get ? Shape::Scalar(PrimitiveType::S32) : s;
  if (!get) {
    // A size that is known and full makes the dimension static again. An argument may have another size in every run:
    // only extents make it one of which the program knows the value.
    bool full = false;
    if (!call.converter.DependsOnOtherArgument(call.x[1]))
      if (auto n = call.converter.Evaluate(call.x[1]); n.ok()) full = n->Get(0).i == s.dim(d);
    result.set_dynamic(d, !full);
  }
  Instruction* i = call.Add(get ? Opcode::GetDimensionSize : Opcode::SetDimensionSize, result, call.x);
  i->mutable_attrs().dimensions = Ints{d};
  return Values{i};
}

}  // namespace kiln::stablehlo
