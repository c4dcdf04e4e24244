// StableHLO operations that move values: constants, broadcasts, slices, gathers and tuples.
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "compiler/import/dense.h"
#include "compiler/import/stablehlo/converter.h"

namespace kiln::stablehlo {

absl::StatusOr<Values> ConvertConstant(Call& call) {
  auto lit = ParseDense(call.op.Attr("value"), call.result());
  if (!lit.ok()) return call.Fail(lit.status().message());
  return Values{call.Finish(call.c->AddConstant(std::move(*lit)))};
}

absl::StatusOr<Values> ConvertBroadcast(Call& call) {
  RETURN_IF_ERROR(call.Need(1));
  Ints map = call.Dims();
  const Shape& s = call.x[0]->shape();
  if (call.name == "broadcast") {
    map.clear();
    for (int64_t d = 0; d < s.rank(); ++d) map.push_back(call.result().rank() - s.rank() + d);
  }
  if (static_cast<int64_t>(map.size()) != s.rank())
    return call.Fail(absl::StrCat("dims has ", map.size(), " entries for rank ", s.rank()));
  // Extent 1 that grows is dropped first: HLO's broadcast only adds dimensions.
  Ints kept_dims, kept_map;
  for (int64_t d = 0; d < s.rank(); ++d) {
    if (map[d] < 0 || map[d] >= call.result().rank()) return call.Fail("dims is out of range");
    if (s.dim(d) == 1 && call.result().dim(map[d]) != 1) continue;
    kept_dims.push_back(s.dim(d));
    kept_map.push_back(map[d]);
  }
  Instruction* from = call.x[0];
  if (kept_dims != s.dims()) from = call.Add(Opcode::Reshape, Shape::Array(s.type(), kept_dims), {from});
  Instruction* b = call.Add(Opcode::Broadcast, call.result(), {from});
  b->mutable_attrs().dimensions = kept_map;
  return Values{b};
}

absl::StatusOr<Values> ConvertIota(Call& call) {
  Instruction* i = call.Add(Opcode::Iota, call.result(), {});
  i->mutable_attrs().iota_dimension = call.op.Has("dim") ? call.One("dim", 0) : call.One("iota_dimension", 0);
  return Values{i};
}

absl::StatusOr<Values> ConvertSlice(Call& call) {
  RETURN_IF_ERROR(call.Need(1));
  attr::Slices r;
  if (call.op.Has("brackets")) {
    for (absl::string_view part :
         absl::StrSplit(call.op.Attr("brackets"), absl::ByAnyChar("[], "), absl::SkipEmpty())) {
      const std::vector<absl::string_view> n = absl::StrSplit(part, ':');
      SliceDim d;
      if (n.size() < 2 || !absl::SimpleAtoi(n[0], &d.start) || !absl::SimpleAtoi(n[1], &d.limit) ||
          (n.size() > 2 && !absl::SimpleAtoi(n[2], &d.stride)))
        return call.Fail(absl::StrCat("range '", part, "' is not start:limit:stride"));
      r.push_back(d);
    }
  } else {
    const Ints start = call.List("start_indices"), limit = call.List("limit_indices"), stride = call.List("strides");
    if (start.size() != limit.size() || start.size() != stride.size())
      return call.Fail("start, limit and strides differ in length");
    for (size_t k = 0; k < start.size(); ++k) r.push_back({start[k], limit[k], stride[k]});
  }
  Instruction* i = call.Add(Opcode::Slice, call.result(), call.x);
  i->mutable_attrs().slice = std::move(r);
  return Values{i};
}

absl::StatusOr<Values> ConvertPad(Call& call) {
  RETURN_IF_ERROR(call.Need(2));
  Instruction* i = call.Add(Opcode::Pad, call.result(), call.x);
  const Ints low = call.op.Has("low") ? call.List("low") : call.List("edge_padding_low"),
             high = call.op.Has("high") ? call.List("high") : call.List("edge_padding_high"),
             in = call.op.Has("interior") ? call.List("interior") : call.List("interior_padding");
  if (low.size() != high.size() || low.size() != in.size()) return call.Fail("low, high and interior differ in length");
  attr::Padding p;
  for (size_t k = 0; k < low.size(); ++k) p.push_back({low[k], high[k], in[k]});
  i->mutable_attrs().padding = std::move(p);
  return Values{i};
}

absl::StatusOr<Values> ConvertDynamicSlice(Call& call) {
  if (call.x.empty()) return call.Fail("takes an array and start indices");
  Instruction* i = call.Add(Opcode::DynamicSlice, call.result(), call.x);
  i->mutable_attrs().dynamic_slice_sizes = call.op.Has("sizes") ? call.List("sizes") : call.List("slice_sizes");
  return Values{i};
}

absl::StatusOr<Values> ConvertConcatenate(Call& call) {
  Instruction* i = call.Add(Opcode::Concatenate, call.result(), call.x);
  i->mutable_attrs().dimensions = Ints{call.op.Has("dim") ? call.One("dim", 0) : call.One("dimension", 0)};
  return Values{i};
}

absl::StatusOr<Values> ConvertTranspose(Call& call) {
  RETURN_IF_ERROR(call.Need(1));
  Instruction* i = call.Add(call.name == "reverse" ? Opcode::Reverse : Opcode::Transpose, call.result(), call.x);
  i->mutable_attrs().dimensions = call.Dims();
  return Values{i};
}

absl::StatusOr<Values> ConvertGather(Call& call) {
  RETURN_IF_ERROR(call.Need(2));
  Instruction* i = call.Add(Opcode::Gather, call.result(), call.x);
  const std::string t = call.Resolve(call.op.Attr("dimension_numbers"));
  Attributes& a = i->mutable_attrs();
  a.offset_dims = FieldInts(t, "offset_dims").value_or(Ints());
  a.collapsed_slice_dims = FieldInts(t, "collapsed_slice_dims").value_or(Ints());
  a.start_index_map = FieldInts(t, "start_index_map").value_or(Ints());
  a.operand_batching_dims = SomeInts(t, "operand_batching_dims");
  a.start_indices_batching_dims = SomeInts(t, "start_indices_batching_dims");
  a.index_vector_dim = SomeInts(t, "index_vector_dim").value_or(Ints{0})[0];
  a.slice_sizes = ParseIntList(call.op.Attr("slice_sizes")).value_or(Ints());
  if (call.Flag("indices_are_sorted", false)) a.indices_are_sorted = true;
  return Values{i};
}

absl::StatusOr<Values> ConvertScatter(Call& call) {
  if (call.op.regions.size() != 1 || call.x.size() < 3)
    return call.Fail("needs operands, indices, updates and one computation");
  ASSIGN_OR_RETURN(Computation * f, call.ScalarRegion(call.op.regions[0], "update"));
  const bool tuple = call.types.size() > 1;
  Instruction* i = call.Add(Opcode::Scatter, tuple ? Shape::Tuple(call.types) : call.result(), call.x);
  const std::string t = call.Resolve(call.op.Attr("scatter_dimension_numbers"));
  Attributes& a = i->mutable_attrs();
  a.update_window_dims = FieldInts(t, "update_window_dims").value_or(Ints());
  a.inserted_window_dims = FieldInts(t, "inserted_window_dims").value_or(Ints());
  a.scatter_dims_to_operand_dims = FieldInts(t, "scatter_dims_to_operand_dims").value_or(Ints());
  a.input_batching_dims = SomeInts(t, "input_batching_dims");
  a.scatter_indices_batching_dims = SomeInts(t, "scatter_indices_batching_dims");
  a.index_vector_dim = SomeInts(t, "index_vector_dim").value_or(Ints{0})[0];
  if (call.Flag("indices_are_sorted", false)) a.indices_are_sorted = true;
  if (call.Flag("unique_indices", false)) a.unique_indices = true;
  a.to_apply = f;
  return tuple ? call.Split(i) : Values{i};
}

absl::StatusOr<Values> ConvertGetTupleElement(Call& call) {
  RETURN_IF_ERROR(call.Need(1));
  const int64_t k = call.op.Has("brackets") ? call.One("brackets", 0) : call.One("index", 0);
  if (!call.x[0]->shape().IsTuple() || k < 0 || k >= static_cast<int64_t>(call.x[0]->shape().tuple().size()))
    return call.Fail("index is out of range");
  Instruction* i = call.Add(Opcode::GetTupleElement, call.x[0]->shape().tuple()[k], call.x);
  i->mutable_attrs().tuple_index = k;
  return Values{i};
}

absl::StatusOr<Values> ConvertTuple(Call& call) {
  std::vector<Shape> s;
  for (Instruction* o : call.x) s.push_back(o->shape());
  return Values{call.Add(Opcode::Tuple, Shape::Tuple(s), call.x)};
}

absl::StatusOr<Values> ConvertOptimizationBarrier(Call& call) {
  if (call.x.size() == 1) return Values{call.Add(Opcode::OptimizationBarrier, call.x[0]->shape(), call.x)};
  std::vector<Shape> s;
  for (Instruction* o : call.x) s.push_back(o->shape());
  Instruction* t = call.Add(Opcode::Tuple, Shape::Tuple(s), call.x);
  return call.Split(call.Add(Opcode::OptimizationBarrier, t->shape(), {t}));
}

}  // namespace kiln::stablehlo
