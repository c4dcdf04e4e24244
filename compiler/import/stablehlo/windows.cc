// StableHLO operations with a region over scalars: reductions, windows, sort, map.
#include "compiler/import/dense.h"
#include "compiler/import/stablehlo/converter.h"

namespace kiln::stablehlo {

absl::StatusOr<Values> ConvertReduce(Call& call) {
  Computation* f;
  if (call.op.Has("applies")) {
    mlir::Region r;
    auto body = std::make_unique<mlir::Op>();
    body->name = call.op.Attr("applies");
    body->operands = {"l", "r"};
    body->results = {{"o", 1}};
    const Shape s = Shape::Scalar(call.x[0]->shape().type());
    body->result_types = {s};
    body->loc = call.op.loc;
    r.arguments = {{"l", s, ""}, {"r", s, ""}};
    r.ops.push_back(std::move(body));
    auto ret = std::make_unique<mlir::Op>();
    ret->name = "stablehlo.return";
    ret->operands = {"o"};
    r.ops.push_back(std::move(ret));
    ASSIGN_OR_RETURN(f, call.ScalarRegion(r, "region"));
  } else {
    if (call.op.regions.size() != 1) return call.Fail("needs one reducer");
    ASSIGN_OR_RETURN(f, call.ScalarRegion(call.op.regions[0], "region"));
  }
  const bool tuple = call.types.size() > 1;
  Instruction* r = call.Add(Opcode::Reduce, tuple ? Shape::Tuple(call.types) : call.result(), call.x);
  r->mutable_attrs().dimensions = call.Dims();
  r->mutable_attrs().to_apply = f;
  return tuple ? call.Split(r) : Values{r};
}

namespace {

// What a window is made of, a value for each dimension; of the padding two. Absent: as where nothing is said.
struct WindowLists {
  std::optional<Ints> size, stride, base_dilation, window_dilation, padding;
};

absl::StatusOr<Values> ReduceWindow(Call& call, Computation* f, const WindowLists& lists) {
  const size_t n = call.x[0]->shape().rank();
  attr::Win w(n);
  const auto fill = [&](absl::string_view what, const std::optional<Ints>& v,
                        int64_t WindowDim::*member) -> absl::Status {
    if (!v) return absl::OkStatus();
    if (v->size() != n) return call.Fail(absl::StrCat(what, " has ", v->size(), " entries, not ", n));
    for (size_t k = 0; k < n; ++k) w[k].*member = (*v)[k];
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(fill("window_dimensions", lists.size, &WindowDim::size));
  RETURN_IF_ERROR(fill("window_strides", lists.stride, &WindowDim::stride));
  RETURN_IF_ERROR(fill("base_dilations", lists.base_dilation, &WindowDim::lhs_dilate));
  RETURN_IF_ERROR(fill("window_dilations", lists.window_dilation, &WindowDim::rhs_dilate));
  if (const std::optional<Ints>& p = lists.padding) {
    if (p->size() != 2 * n) return call.Fail("padding needs two entries per dimension");
    for (size_t k = 0; k < n; ++k) {
      w[k].pad_low = (*p)[2 * k];
      w[k].pad_high = (*p)[2 * k + 1];
    }
  }
  const bool tuple = call.types.size() > 1;
  Instruction* r = call.Add(Opcode::ReduceWindow, tuple ? Shape::Tuple(call.types) : call.result(), call.x);
  r->mutable_attrs().window = std::move(w);
  r->mutable_attrs().to_apply = f;
  return tuple ? call.Split(r) : Values{r};
}

}  // namespace

absl::StatusOr<Values> ConvertReduceWindow(Call& call) {
  if (call.op.regions.size() != 1 || call.x.empty()) return call.Fail("needs one reducer");
  ASSIGN_OR_RETURN(Computation * f, call.ScalarRegion(call.op.regions[0], "region"));
  const auto list = [&](const char* key) {
    return call.op.Has(key) ? std::optional(ParseIntList(call.op.Attr(key)).value_or(Ints())) : std::nullopt;
  };
  return ReduceWindow(call, f,
                      {list("window_dimensions"), list("window_strides"), list("base_dilations"),
                       list("window_dilations"), list("padding")});
}

// Arrays, initial values, then what the attributes of reduce_window say; the reducer is a function.
absl::StatusOr<Values> ConvertDynamicReduceWindow(Call& call) {
  constexpr size_t kLists = 5;
  const size_t arrays = call.types.size();
  if (arrays == 0 || call.x.size() != 2 * arrays + kLists)
    return call.Fail("needs an array and an initial value for each result, and five operands for the window");
  ASSIGN_OR_RETURN(Computation * f, call.CalledComputation());
  std::vector<Ints> lists;
  for (size_t k = 0; k < kLists; ++k) {
    ASSIGN_OR_RETURN(Ints list, call.Known(2 * arrays + k));
    lists.push_back(std::move(list));
  }
  call.x.resize(2 * arrays);
  return ReduceWindow(call, f, {lists[0], lists[1], lists[2], lists[3], lists[4]});
}

absl::StatusOr<Values> ConvertSelectAndScatter(Call& call) {
  RETURN_IF_ERROR(call.Need(3));
  if (call.op.regions.size() != 2) return call.Fail("needs select and scatter");
  ASSIGN_OR_RETURN(Computation * sel, call.ScalarRegion(call.op.regions[0], "select"));
  ASSIGN_OR_RETURN(Computation * sca, call.ScalarRegion(call.op.regions[1], "scatter"));
  const size_t n = call.x[0]->shape().rank();
  attr::Win w(n);
  const Ints size = ParseIntList(call.op.Attr("window_dimensions")).value_or(Ints());
  const Ints stride =
      call.op.Has("window_strides") ? ParseIntList(call.op.Attr("window_strides")).value_or(Ints()) : Ints(n, 1);
  const Ints pad = call.op.Has("padding") ? ParseIntList(call.op.Attr("padding")).value_or(Ints()) : Ints(2 * n, 0);
  if (size.size() != n || stride.size() != n || pad.size() != 2 * n)
    return call.Fail("window attributes do not fit the operand's rank");
  for (size_t k = 0; k < n; ++k) {
    w[k].size = size[k];
    w[k].stride = stride[k];
    w[k].pad_low = pad[2 * k];
    w[k].pad_high = pad[2 * k + 1];
  }
  Instruction* i = call.Add(Opcode::SelectAndScatter, call.result(), call.x);
  i->mutable_attrs().window = std::move(w);
  i->mutable_attrs().select = sel;
  i->mutable_attrs().scatter = sca;
  return Values{i};
}

absl::StatusOr<Values> ConvertSort(Call& call) {
  if (call.op.regions.size() != 1 || call.x.empty()) return call.Fail("needs one comparator");
  ASSIGN_OR_RETURN(Computation * f, call.ScalarRegion(call.op.regions[0], "compare"));
  const bool tuple = call.x.size() > 1;
  Instruction* s = call.Add(Opcode::Sort, tuple ? Shape::Tuple(call.types) : call.result(), call.x);
  int64_t d = call.One("dimension", -1);
  if (d < 0) d += call.x[0]->shape().rank();
  s->mutable_attrs().dimensions = Ints{d};
  if (call.Flag("is_stable", false)) s->mutable_attrs().is_stable = true;
  s->mutable_attrs().to_apply = f;
  return tuple ? call.Split(s) : Values{s};
}

absl::StatusOr<Values> ConvertMap(Call& call) {
  if (call.op.regions.size() != 1) return call.Fail("needs one computation");
  ASSIGN_OR_RETURN(Computation * f, call.ScalarRegion(call.op.regions[0], "map"));
  Instruction* i = call.Add(Opcode::Map, call.result(), call.x);
  i->mutable_attrs().dimensions = call.Dims();
  i->mutable_attrs().to_apply = f;
  return Values{i};
}

}  // namespace kiln::stablehlo
