// What one device computes of an operation, and what differs from the operation over whole arrays.
#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_join.h"
#include "compiler/passes/sharding/partitioned_op.h"

namespace kiln {
namespace {

bool Contains(const Ints& v, int64_t d) { return std::find(v.begin(), v.end(), d) != v.end(); }

// The largest or smallest value of a type of floats: infinite, where there are infinities.
Literal Extreme(PrimitiveType t, bool largest) {
  if (InfoOf(t).flavour == FloatFlavour::Ieee) return Literal::Float(t, largest ? HUGE_VAL : -HUGE_VAL);
  std::optional<double> best;
  for (uint64_t bits = 0; bits < uint64_t{1} << InfoOf(t).bits; ++bits) {
    const double v = DecodeFloat(t, bits);
    if (!std::isnan(v) && (!best || (largest ? v > *best : v < *best))) best = v;
  }
  return Literal::Float(t, *best);
}

}  // namespace

Tiling Settled(const DeviceMesh& mesh, const Part& part, const Tiling& wanted, bool exactly) {
  Tiling out = wanted;
  for (size_t d = 0; d < out.dims.size(); ++d) {
    for (size_t k = 0; k < out.dims[d].size(); ++k)
      if (part.tiling.manual >> out.dims[d][k] & 1) out.dims[d].resize(k);
    while (!exactly && out.dims[d] != part.tiling.dims[d] && !out.dims[d].empty() &&
           part.whole.dims()[d] % mesh.SizeOf(out.dims[d]))
      out.dims[d].pop_back();
  }
  return out;
}

bool MayBeUneven(const Instruction& op, const OpRule& rule, int f) {
  const OpRule::Kind kind = rule.kinds[static_cast<size_t>(f)];
  if (kind == OpRule::kReduction && !op.Is(Opcode::Dot) && !(op.Is(Opcode::Reduce) && MayBePadded(op))) return false;
  if (kind == OpRule::kUpdates) return false;
  const auto alone = [&](const OpRule::Tensor& t) {
    return std::all_of(t.begin(), t.end(), [&](const std::vector<int>& d) {
      return d.size() < 2 || std::find(d.begin(), d.end(), f) == d.end();
    });
  };
  return std::all_of(rule.operands.begin(), rule.operands.end(), alone) &&
         std::all_of(rule.results.begin(), rule.results.end(), alone);
}

Literal Identity(Opcode op, PrimitiveType t) {
  const bool number = !IsIntegral(t) && t != PrimitiveType::Pred;
  switch (op) {
    case Opcode::Multiply:
      return Literal::Of(t, 1);
    case Opcode::And:
      return Literal::Int(t, t == PrimitiveType::Pred ? 1 : -1);
    case Opcode::Minimum:
    case Opcode::Maximum: {
      if (number) return Extreme(t, op == Opcode::Minimum);
      if (t == PrimitiveType::Pred) return Literal::Int(t, op == Opcode::Minimum ? 1 : 0);
      const int bits = InfoOf(t).bits;
      const bool largest = op == Opcode::Minimum;
      if (!IsSigned(t)) return Literal::Int(t, largest ? -1 : 0);
      const int64_t lowest = bits == 64 ? INT64_MIN : -(int64_t{1} << (bits - 1));
      return Literal::Int(t, largest ? -(lowest + 1) : lowest);
    }
    default:
      return Literal::Of(t, 0);
  }
}

Axes LocalOp::AxesOf(const OpRule::Tensor& t, size_t d) const {
  Axes out;
  for (int f : t[d]) out.insert(out.end(), axes[static_cast<size_t>(f)].begin(), axes[static_cast<size_t>(f)].end());
  return out;
}

Axes LocalOp::PartialAxes() const {
  Axes out;
  for (size_t f = 0; f < axes.size(); ++f)
    if (rule.kinds[f] == OpRule::kReduction || rule.kinds[f] == OpRule::kLookup || rule.kinds[f] == OpRule::kUpdates ||
        rule.kinds[f] == OpRule::kWindowSum)
      out.insert(out.end(), axes[f].begin(), axes[f].end());
  return out;
}

bool LocalOp::TakesAll() const {
  return op.Is(Opcode::TopK) || (op.Is(Opcode::Reduce) && CombinersOf(**op.attrs().to_apply).empty());
}

Computation* LocalOp::Combiner(size_t k) const {
  const PrimitiveType t = shapes[k].type();
  if (op.Is(Opcode::Reduce) && op.shape().IsTuple())
    return ScalarFunction(computation()->module(), CombinersOf(**op.attrs().to_apply)[k], t);
  if (op.Is(Opcode::Reduce) || op.Is(Opcode::Scatter)) return *op.attrs().to_apply;
  return ScalarFunction(computation()->module(), t == PrimitiveType::Pred ? Opcode::Or : Opcode::Add, t);
}

Instruction* LocalOp::Clone(const std::vector<Instruction*>& with) {
  const Shape shape = op.shape().IsTuple() ? Shape::Tuple(shapes) : shapes[0];
  Instruction* i = computation()->AddClone(&op, shape, with);
  if (i->attrs().sharding) i->mutable_attrs().sharding.reset();
  const auto cut_up = [&](const OpRule::Tensor& t, Ints dims) {
    for (size_t d = 0; d < t.size(); ++d) {
      const int64_t n = mesh().SizeOf(AxesOf(t, d));
      dims[d] = (dims[d] + n - 1) / n;
    }
    return dims;
  };
  if (op.Is(Opcode::Convolution)) {
    // Groups are the first factor of the kernel's outputs.
    const int group = rule.operands[1][static_cast<size_t>(op.attrs().dim_labels->kernel_output)][0];
    const int64_t shared_by = mesh().SizeOf(axes[static_cast<size_t>(group)]);
    Attributes& now = i->mutable_attrs();
    if (now.feature_group_count.value_or(1) > 1) *now.feature_group_count /= shared_by;
    if (now.batch_group_count.value_or(1) > 1) *now.batch_group_count /= shared_by;
  }
  if (op.Is(Opcode::CustomCall) && i->attrs().operand_layout_constraints) {
    std::string text = i->attrs().operand_layout_constraints->text;
    const auto listed = [](const Ints& dims) { return absl::StrCat("[", absl::StrJoin(dims, ","), "]"); };
    size_t at = 0;
    for (size_t k = 0; k < with.size(); ++k) {
      const std::string whole = listed(parts[k].whole.dims()), local = listed(with[k]->shape().dims());
      at = text.find(whole, at);
      if (at == std::string::npos) break;
      text.replace(at, whole.size(), local);
      at += local.size();
    }
    i->mutable_attrs().operand_layout_constraints = attr::Raw(text);
  }
  if (op.Is(Opcode::Gather)) {
    // A looked-up dimension stays one row.
    Ints sizes = *op.attrs().slice_sizes;
    const Ints cut = cut_up(rule.operands[0], op.operand(0)->shape().dims());
    for (size_t d = 0; d < sizes.size(); ++d)
      if (sizes[d] == op.operand(0)->shape().dim(static_cast<int64_t>(d)) && sizes[d] > 1) sizes[d] = cut[d];
    i->mutable_attrs().slice_sizes = sizes;
  }
  return i;
}

std::vector<Instruction*> LocalOp::Emit() {
  Instruction* i = nullptr;
  if (const auto r = RotationOf(op)) return {EmitRotation(*r)};
  if (const auto p = PaddedOf(op)) return {EmitPadded(*p)};
  if (const auto u = UnpooledOf(op)) return {EmitUnpooled(*u)};
  if (const auto p = PlacedOf(op)) return {EmitPlaced(*p)};
  switch (op.opcode()) {
    case Opcode::Dot:
      i = Clone({Masked(0, Zero(0)), Masked(1, Zero(1))});
      break;
    case Opcode::DynamicSlice:
      i = EmitDynamicSlice();
      break;
    case Opcode::DynamicUpdateSlice:
      i = EmitDynamicUpdateSlice();
      break;
    case Opcode::Iota:
      i = EmitIota();
      break;
    case Opcode::Reduce:
      i = EmitReduce();
      break;
    case Opcode::Slice:
      i = EmitSlice();
      break;
    case Opcode::Concatenate:
      i = EmitConcatenate();
      break;
    case Opcode::Reverse:
    case Opcode::ReduceWindow:
    case Opcode::Convolution:
      i = EmitWindow();
      break;
    case Opcode::Gather:
      i = EmitGather();
      break;
    case Opcode::Scatter:
      i = EmitScatter();
      break;
    default:
      i = Clone(operands);
  }
  return ResultsOf(i);
}

std::vector<Instruction*> LocalOp::ResultsOf(Instruction* i) const {
  if (!op.shape().IsTuple()) return {i};
  std::vector<Instruction*> out;
  for (size_t k = 0; k < shapes.size(); ++k) out.push_back(PartOf(i, static_cast<int64_t>(k)).get());
  return out;
}

std::function<Expr()> LocalOp::Zero(size_t k) const {
  return [this, k] { return computation()->AddConstant(Literal::Of(operands[k]->shape().type(), 0)); };
}

Instruction* LocalOp::Masked(size_t k, const std::function<Expr()>& value) {
  Expr x = operands[k];
  const Ints dims = x.shape().dims();
  for (size_t d = 0; d < rule.operands[k].size(); ++d) {
    const auto& factors = rule.operands[k][d];
    if (factors.empty()) continue;
    const OpRule::Kind kind = rule.kinds[static_cast<size_t>(factors[0])];
    if (kind != OpRule::kReduction && kind != OpRule::kWindowSum) continue;
    const Axes cut = AxesOf(rule.operands[k], d);
    const int64_t extent = parts[k].whole.dims()[d];
    if (extent % mesh().SizeOf(cut) == 0) continue;
    Expr first = reshard.Place(cut) * static_cast<double>(dims[d]);
    Expr at = IotaOf(computation(), PrimitiveType::S32, dims, static_cast<int64_t>(d)) + BroadcastTo(first, dims);
    x = SelectExpr(at < static_cast<double>(extent), x, BroadcastTo(value(), dims));
  }
  return x.get();
}

std::vector<Part> LocalOp::OfAll(const std::vector<Part>& partial, const std::vector<Tiling>& wanted) {
  if (!op.Is(Opcode::TopK)) return ReducedAgain(partial, wanted);
  std::vector<Part> out = partial;
  const std::vector<Instruction*> first = FirstOfAll({partial[0].value, partial[1].value});
  for (size_t k = 0; k < out.size(); ++k) out[k].value = first[k];
  return out;
}

// A dimension of which each device reduces its share again: one that results are to be cut along, or the first that
// divides where all devices' results are many bytes. None where each reduces all of them.
std::optional<size_t> LocalOp::SharedDimension(const std::vector<Part>& partial,
                                               const std::vector<Tiling>& wanted) const {
  const Axes over = PartialAxes();
  const int64_t devices = mesh().SizeOf(over);
  int64_t bytes = 0;
  for (const Part& p : partial) bytes += p.value->shape().ByteSize();
  std::optional<size_t> shared;
  for (size_t d = partial[0].tiling.dims.size(); d-- > 0;) {
    const Axes& has = partial[0].tiling.dims[d];
    if (shapes[0].dim(static_cast<int64_t>(d)) % devices ||
        partial[0].whole.dim(static_cast<int64_t>(d)) % (mesh().SizeOf(has) * devices))
      continue;
    Axes cut = has;
    cut.insert(cut.end(), over.begin(), over.end());
    if (wanted[0].dims[d] == cut) return d;
    if (bytes * (devices - 2) > kExchange) shared = d;
  }
  return shared;
}

// Each device's results along a dimension of their own, in front.
std::vector<Part> LocalOp::ReducedAgain(const std::vector<Part>& partial, const std::vector<Tiling>& wanted) {
  const Axes over = PartialAxes();
  const std::optional<size_t> shared = SharedDimension(partial, wanted);
  std::vector<Part> out = partial;
  std::vector<Instruction*> with;
  for (size_t k = 0; k < partial.size(); ++k) {
    const auto in_front = [](Ints dims, int64_t n) {
      dims.insert(dims.begin(), n);
      return dims;
    };
    const Part& p = partial[k];
    Part all{ReshapeTo(p.value, in_front(p.value->shape().dims(), 1)).get(), p.tiling, p.whole};
    all.whole = Shape::Array(p.whole.type(), in_front(p.whole.dims(), mesh().SizeOf(over)));
    all.tiling.dims.insert(all.tiling.dims.begin(), over);
    Tiling again = all.tiling;
    again.dims[0].clear();
    if (shared) again.dims[*shared + 1].insert(again.dims[*shared + 1].end(), over.begin(), over.end());
    with.push_back(reshard.To(all, again).value);
    out[k].tiling.dims.assign(again.dims.begin() + 1, again.dims.end());
    shapes[k] = LocalShape(mesh(), p.whole, out[k].tiling);
  }
  with.insert(with.end(), operands.begin() + static_cast<std::ptrdiff_t>(partial.size()), operands.end());
  Instruction* i = Clone(with);
  i->mutable_attrs().dimensions = Ints{0};
  const std::vector<Instruction*> results = ResultsOf(i);
  for (size_t k = 0; k < out.size(); ++k) out[k].value = results[k];
  return out;
}

// Each device's first side by side, in the devices' order: of equal ones the first stays the first.
std::vector<Instruction*> LocalOp::FirstOfAll(const std::vector<Instruction*>& values) {
  const Axes partial = PartialAxes();
  const int64_t last = shapes[0].rank() - 1, devices = mesh().SizeOf(partial);
  Expr places = values[1];
  const Expr before = reshard.Place(partial) * static_cast<double>(operands[0]->shape().dim(last));
  places = places + BroadcastTo(ConvertTo(places.type(), before), places.shape().dims());
  const auto all = [&](Expr x) {
    const Ints dims = x.shape().dims();
    Ints one = dims, joined = dims, order;
    one.insert(one.begin(), 1);
    joined.back() *= devices;
    for (int64_t d = 1; d <= last; ++d) order.push_back(d);
    order.insert(order.end(), {0, last + 1});
    return ReshapeTo(TransposeBy(reshard.GatherOver(ReshapeTo(x, one), partial), order), joined);
  };
  Instruction* first = Clone({all(values[0]).get()});
  Expr chosen = PartOf(first, 1);
  Ints one = chosen.shape().dims(), batch;
  one.push_back(1);
  for (int64_t d = 0; d < last; ++d) batch.push_back(d);
  Instruction* place = computation()->Add(Opcode::Gather, shapes[1], {all(places).get(), ReshapeTo(chosen, one).get()});
  Attributes& g = place->mutable_attrs();
  g.offset_dims = Ints{};
  g.collapsed_slice_dims = g.start_index_map = Ints{last};
  if (!batch.empty()) g.operand_batching_dims = g.start_indices_batching_dims = batch;
  g.index_vector_dim = last + 1;
  g.slice_sizes = Ints(static_cast<size_t>(last) + 1, 1);
  return {PartOf(first, 0).get(), place};
}

// Counted in integers, so that numbers are rounded once.
Instruction* LocalOp::EmitIota() {
  const int64_t d = *op.attrs().iota_dimension;
  const Axes cut = AxesOf(rule.results[0], static_cast<size_t>(d));
  if (cut.empty()) return Clone(operands);
  const Ints& dims = shapes[0].dims();
  Expr first = reshard.Place(cut) * static_cast<double>(dims[static_cast<size_t>(d)]);
  const PrimitiveType count = InfoOf(shapes[0].type()).bits == 64 ? PrimitiveType::S64 : PrimitiveType::S32;
  Expr local = IotaOf(computation(), count, dims, d);
  return ConvertTo(shapes[0].type(), local + BroadcastTo(ConvertTo(count, first), dims)).get();
}

// A part starts from what changes nothing, and the initial value counts once, after parts are combined: here, on the
// device at place 0. Functions of several operations start from the initial values everywhere (IsReducedByParts).
Instruction* LocalOp::EmitReduce() {
  const Axes partial = PartialAxes();
  if (partial.empty()) return Clone(operands);
  const std::vector<Opcode> combiners = CombinersOf(**op.attrs().to_apply);
  std::vector<Instruction*> with = operands;
  const size_t arrays = operands.size() / 2;
  for (size_t k = 0; k < arrays; ++k) {
    Instruction*& init = with[arrays + k];
    if (combiners.empty()) {
      with[k] = Masked(k, [&] { return init; });
      continue;
    }
    const Literal identity = Identity(combiners[k], init->shape().type());
    const auto nothing = [&] { return computation()->AddConstant(identity); };
    with[k] = Masked(k, nothing);
    const Instruction* given = op.operand(static_cast<int64_t>(arrays + k));
    if (given->Is(Opcode::Constant) && given->literal() == identity) continue;
    Expr place = reshard.Place(partial);
    init = SelectExpr(CompareExpr(Direction::EQ, place, place.Like(0)), init, nothing()).get();
  }
  return Clone(with);
}

// Indices less an offset for some components of the index vector.
Expr LocalOp::ShiftedIndices(const std::vector<std::pair<int64_t, Expr>>& offsets, Expr indices) const {
  const int64_t vector = *op.attrs().index_vector_dim;
  const Ints dims = indices.shape().dims();
  for (const auto& [component, offset] : offsets) {
    Expr by = BroadcastTo(ConvertTo(indices.type(), offset), dims);
    if (vector < indices.shape().rank() && dims[static_cast<size_t>(vector)] > 1) {
      Expr number = IotaOf(computation(), indices.type(), dims, vector);
      by = SelectExpr(number == static_cast<double>(component), by, by.Like(0));
    }
    indices = indices - by;
  }
  return indices;
}

Instruction* LocalOp::EmitGather() {
  const Ints& mapped = *op.attrs().start_index_map;
  const int64_t vector = *op.attrs().index_vector_dim;
  std::vector<std::pair<int64_t, Expr>> offsets;
  Expr indices = operands[1];
  const bool wide = InfoOf(indices.type()).bits >= 64 || !IsSigned(indices.type());
  std::optional<Expr> inside;
  for (size_t k = 0; k < mapped.size(); ++k) {
    const auto d = static_cast<size_t>(mapped[k]);
    const auto& factors = rule.operands[0][d];
    if (factors.empty() || rule.kinds[static_cast<size_t>(factors[0])] != OpRule::kLookup) continue;
    const Axes cut = AxesOf(rule.operands[0], d);
    if (cut.empty()) continue;
    if (offsets.empty()) indices = ConvertTo(wide ? PrimitiveType::S64 : PrimitiveType::S32, indices);
    const int64_t extent = op.operand(0)->shape().dim(static_cast<int64_t>(d)),
                  local = operands[0]->shape().dim(static_cast<int64_t>(d));
    // The component alone, clamped as a gather clamps it.
    Expr component = indices;
    Ints batch = indices.shape().dims();
    if (vector < indices.shape().rank()) {
      Ints from(batch.size(), 0), to = batch;
      from[static_cast<size_t>(vector)] = static_cast<int64_t>(k);
      to[static_cast<size_t>(vector)] = static_cast<int64_t>(k) + 1;
      batch.erase(batch.begin() + static_cast<std::ptrdiff_t>(vector));
      component = ReshapeTo(SliceOf(indices, from, to), batch);
    }
    component = Binary(Opcode::Minimum, Binary(Opcode::Maximum, component, component.Like(0)),
                       component.Like(static_cast<double>(extent - 1)));
    Expr first = ConvertTo(component.type(), reshard.Place(cut) * static_cast<double>(local));
    Expr low = BroadcastTo(first, batch), high = BroadcastTo(first + static_cast<double>(local), batch);
    Expr here = CompareExpr(Direction::GE, component, low) & CompareExpr(Direction::LT, component, high);
    inside = inside ? *inside & here : here;
    offsets.push_back({static_cast<int64_t>(k), first});
  }
  if (offsets.empty()) return Clone(operands);
  // What the gather clamps past the ends of this part is masked, except for what the whole gather would clamp too.
  for (auto& [component, first] : offsets) {
    const auto d = static_cast<size_t>(mapped[static_cast<size_t>(component)]);
    const int64_t extent = op.operand(0)->shape().dim(static_cast<int64_t>(d));
    Expr clamped = Binary(Opcode::Minimum, Binary(Opcode::Maximum, indices, indices.Like(0)),
                          indices.Like(static_cast<double>(extent - 1)));
    if (vector < indices.shape().rank() && indices.shape().dim(vector) > 1) {
      Expr number = IotaOf(computation(), indices.type(), indices.shape().dims(), vector);
      clamped = SelectExpr(number == static_cast<double>(component), clamped, indices);
    }
    indices = clamped;
  }
  Instruction* rows = Clone({operands[0], ShiftedIndices(offsets, indices).get()});
  Ints batch_dims;
  for (int64_t d = 0; d < shapes[0].rank(); ++d)
    if (!Contains(op.attrs().offset_dims ? *op.attrs().offset_dims : Ints(), d)) batch_dims.push_back(d);
  Expr value = rows;
  return SelectExpr(BroadcastTo(*inside, shapes[0].dims(), batch_dims), value, value.Like(0)).get();
}

Instruction* LocalOp::EmitScatter() {
  std::vector<Instruction*> with = operands;
  Instruction*& indices = with[operands.size() / 2];
  const Ints& mapped = *op.attrs().scatter_dims_to_operand_dims;
  std::vector<std::pair<int64_t, Expr>> offsets;
  for (size_t k = 0; k < mapped.size(); ++k) {
    const auto d = static_cast<size_t>(mapped[k]);
    const auto& factors = rule.operands[0][d];
    if (factors.empty() || rule.kinds[static_cast<size_t>(factors[0])] != OpRule::kRows) continue;
    const Axes cut = AxesOf(rule.operands[0], d);
    if (cut.empty()) continue;
    offsets.push_back(
        {static_cast<int64_t>(k), reshard.Place(cut) * static_cast<double>(shapes[0].dim(static_cast<int64_t>(d)))});
  }
  if (!offsets.empty()) {
    const bool wide = InfoOf(indices->shape().type()).bits >= 64;
    indices = ShiftedIndices(offsets, ConvertTo(wide ? PrimitiveType::S64 : PrimitiveType::S32, indices)).get();
  }
  if (const Axes partial = PartialAxes(); !partial.empty()) {
    // One device starts from the operand, the others from what changes nothing.
    Expr place = reshard.Place(partial), start = operands[0];
    Expr first = BroadcastTo(CompareExpr(Direction::EQ, place, place.Like(0)), start.shape().dims());
    Expr nothing = computation()->AddConstant(Identity(*CombinerOf(**op.attrs().to_apply), start.type()));
    with[0] = SelectExpr(first, start, BroadcastTo(nothing, start.shape().dims())).get();
  }
  return Clone(with);
}

}  // namespace kiln
