// Operations that take elements by their place: one device's part, over stretches that it fetches.
#include <algorithm>

#include "compiler/passes/sharding/halo.h"
#include "compiler/passes/sharding/partitioned_op.h"

namespace kiln {

// Of the factor that a window moves along dimension `d` of operand `k`, or that a whole operand has in the result.
Axes LocalOp::WindowAxes(size_t k, size_t d) const {
  const auto& factors = rule.operands[k][d];
  if (!factors.empty()) return rule.IsWindow(factors[0]) ? axes[static_cast<size_t>(factors[0])] : Axes();
  if (!op.Is(Opcode::Concatenate) || static_cast<int64_t>(d) != (*op.attrs().dimensions)[0]) return {};
  return AxesOf(rule.results[0], d);
}

Instruction* LocalOp::Fetch(size_t k, const std::optional<Expr>& fill, std::vector<std::optional<Stretch>>* stretches) {
  Part p = parts[k];
  for (size_t d = 0; d < rule.operands[k].size(); ++d) {
    const Axes cut = WindowAxes(k, d);
    std::optional<Stretch> s;
    if (!cut.empty()) {
      s = StretchOf(op, k, d, mesh().SizeOf(cut));
      p.value = FetchStretch(p, d, cut, *s, fill, RotationOf(op).has_value(), &reshard).get();
    }
    if (stretches) stretches->push_back(s);
  }
  return p.value;
}

Instruction* LocalOp::PartBehind(Instruction* i, const Stretch& s, size_t in, size_t d) {
  if (s.over == 1) return i;
  Ints sizes = i->shape().dims();
  sizes[d] = shapes[0].dims()[d];
  std::vector<Expr> starts(sizes.size(), IntegerIn(computation(), PrimitiveType::S32, 0));
  Expr moved = reshard.Place(WindowAxes(0, in)) * static_cast<double>(s.step) + static_cast<double>(s.shift);
  starts[d] = Binary(Opcode::Remainder, moved, moved.Like(static_cast<double>(s.over)));
  return DynamicSliceOf(i, starts, sizes).get();
}

Instruction* LocalOp::EmitRotation(const Rotation& r) {
  const Axes cut = WindowAxes(0, r.dim);
  if (!cut.empty()) {
    const int64_t extent = parts[0].whole.dims()[r.dim], parted = mesh().SizeOf(cut);
    if (extent % parted == 0) return Fetch(0, std::nullopt, nullptr);
    // What comes before the end and what begins again lie apart.
    const Stretch ahead = *StretchOf(op, 0, r.dim, parted);
    Stretch around = ahead;
    around.first -= extent;
    const Ints& dims = shapes[0].dims();
    Expr at = IotaOf(computation(), PrimitiveType::S32, dims, static_cast<int64_t>(r.dim)) +
              BroadcastTo(reshard.Place(cut) * static_cast<double>(dims[r.dim]), dims);
    return SelectExpr(at < static_cast<double>(extent - r.by),
                      FetchStretch(parts[0], r.dim, cut, ahead, std::nullopt, false, &reshard),
                      FetchStretch(parts[0], r.dim, cut, around, std::nullopt, false, &reshard))
        .get();
  }
  Ints from(shapes[0].dims().size(), 0), to = shapes[0].dims();
  from[r.dim] = r.by;
  Expr head = SliceOf(operands[0], from, to);
  from[r.dim] = 0;
  to[r.dim] = r.by;
  return ConcatOf({head, SliceOf(operands[0], from, to)}, static_cast<int64_t>(r.dim)).get();
}

Instruction* LocalOp::EmitPadded(const Padded& p) {
  std::vector<std::optional<Stretch>> stretches;
  Instruction* x = Fetch(0, Expr(operands[1]), &stretches);
  std::vector<PadDim> padding = p.padding;
  for (size_t d = 0; d < padding.size(); ++d)
    if (stretches[d]) padding[d] = {stretches[d]->low, stretches[d]->high, padding[d].interior};
  const auto none = [](const PadDim& d) { return d == PadDim(); };
  if (x->shape().dims() == shapes[0].dims() && std::all_of(padding.begin(), padding.end(), none)) return x;
  Ints dims = shapes[0].dims();
  for (size_t d = 0; d < padding.size(); ++d)
    if (stretches[d]) dims[d] += stretches[d]->over - 1;
  Instruction* i = computation()->Add(Opcode::Pad, Shape::Array(shapes[0].type(), dims), {x, operands[1]});
  i->mutable_attrs().padding = padding;
  for (size_t d = 0; d < padding.size(); ++d)
    if (stretches[d]) i = PartBehind(i, *stretches[d], d, d);
  return i;
}

// Elements of the part that lie within the update take theirs of it; where no part moves, they are written in place.
Instruction* LocalOp::EmitPlaced(const Placed& p) {
  Expr x = operands[0], update = Fetch(1, std::nullopt, nullptr);
  const Ints& dims = shapes[0].dims();
  Ints from(dims.size(), 0), to = dims;
  std::vector<Expr> starts;
  std::optional<Expr> inside;
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t whole = p.into->shape().dims()[d], rows = p.update->shape().dims()[d];
    starts.push_back(IntegerIn(computation(), PrimitiveType::S32, p.starts[d]));
    if (whole == rows) continue;
    const Axes cut = WindowAxes(1, d);
    if (cut.empty()) {
      from[d] = p.starts[d];
      to[d] = p.starts[d] + rows;
      continue;
    }
    Expr at = IotaOf(computation(), PrimitiveType::S32, dims, static_cast<int64_t>(d)) +
              BroadcastTo(reshard.Place(cut) * static_cast<double>(dims[d]), dims);
    Expr here = (at >= static_cast<double>(p.starts[d])) & (at < static_cast<double>(p.starts[d] + rows));
    inside = inside ? *inside & here : here;
    starts[d] = IntegerIn(computation(), PrimitiveType::S32, 0);
  }
  const bool all = update.shape().dims() == dims;
  Expr old = all ? x : SliceOf(x, from, to);
  Expr rows = p.combiner ? Binary(*p.combiner, old, update) : update;
  if (inside) {
    const Expr mask = all ? *inside : SliceOf(*inside, from, to);
    rows = SelectExpr(mask, rows, old);
  }
  return all ? rows.get() : UpdateOf(x, rows, starts).get();
}

Expr LocalOp::LocalStart(size_t d, Expr start, int64_t size) {
  const bool wide = InfoOf(start.type()).bits >= 64 || !IsSigned(start.type());
  Expr at = ConvertTo(wide ? PrimitiveType::S64 : PrimitiveType::S32, start);
  const int64_t last = parts[0].whole.dims()[d] - size;
  at = Binary(Opcode::Minimum, Binary(Opcode::Maximum, at, at.Like(0)), at.Like(static_cast<double>(last)));
  Expr first = reshard.Place(AxesOf(rule.operands[0], d)) * static_cast<double>(operands[0]->shape().dims()[d]);
  return ConvertTo(PrimitiveType::S32, at - ConvertTo(at.type(), first));
}

// From `starts` of the whole array's dimensions; rows that lie elsewhere are zero.
Expr LocalOp::LookUp(Expr x, std::vector<Expr> starts) {
  const Expr zero = computation()->AddConstant(Literal::Of(x.type(), 0));
  std::vector<PadDim> padding(starts.size());
  Ints dims = x.shape().dims();
  for (size_t d = 0; d < starts.size(); ++d) {
    const int64_t size = shapes[0].dims()[d];
    if (LooksUp(d)) {
      Expr at = LocalStart(d, starts[d], size) + static_cast<double>(size);
      const auto last = static_cast<double>(dims[d] + size);
      starts[d] = Binary(Opcode::Minimum, Binary(Opcode::Maximum, at, at.Like(0)), at.Like(last));
      padding[d] = {size, size, 0};
      dims[d] += 2 * size;
    } else {
      starts[d] = ConvertTo(PrimitiveType::S32, starts[d]);
    }
  }
  if (dims != x.shape().dims()) {
    Instruction* padded = computation()->Add(Opcode::Pad, Shape::Array(x.type(), dims), {x.get(), zero.get()});
    padded->mutable_attrs().padding = padding;
    x = padded;
  }
  return DynamicSliceOf(x, starts, shapes[0].dims());
}

bool LocalOp::LooksUp(size_t d) const { return rule.results[0][d].empty() && !AxesOf(rule.operands[0], d).empty(); }

Instruction* LocalOp::EmitDynamicSlice() {
  return LookUp(operands[0], std::vector<Expr>(operands.begin() + 1, operands.end())).get();
}

// The rows of the update that lie here, over as many of the array as it has.
Instruction* LocalOp::EmitDynamicUpdateSlice() {
  Expr x = operands[0], update = operands[1];
  std::vector<Expr> starts, shifts;
  std::optional<Expr> inside;
  const Ints sizes = update.shape().dims();
  std::vector<PadDim> padding(sizes.size());
  for (size_t d = 0; d < sizes.size(); ++d) {
    starts.push_back(ConvertTo(PrimitiveType::S32, operands[d + 2]));
    shifts.push_back(IntegerIn(computation(), PrimitiveType::S32, 0));
    if (!rule.operands[1][d].empty() || AxesOf(rule.operands[0], d).empty()) continue;
    const auto size = static_cast<double>(sizes[d]);
    Expr at = LocalStart(d, operands[d + 2], sizes[d]);
    Expr last = at.Like(static_cast<double>(x.shape().dims()[d] - sizes[d]));
    starts[d] = Binary(Opcode::Minimum, Binary(Opcode::Maximum, at, at.Like(0)), last);
    Expr shift = Binary(Opcode::Minimum, Binary(Opcode::Maximum, starts[d] - at, at.Like(-size)), at.Like(size));
    shifts[d] = shift + size;
    padding[d] = {sizes[d], sizes[d], 0};
    Expr row = IotaOf(computation(), PrimitiveType::S32, sizes, static_cast<int64_t>(d)) + BroadcastTo(shift, sizes);
    Expr here = (row >= 0) & (row < size);
    inside = inside ? *inside & here : here;
  }
  if (!inside) return Clone(operands);
  Ints dims = sizes;
  for (size_t d = 0; d < dims.size(); ++d) dims[d] += padding[d].low + padding[d].high;
  const Expr zero = computation()->AddConstant(Literal::Of(update.type(), 0));
  Instruction* padded = computation()->Add(Opcode::Pad, Shape::Array(update.type(), dims), {update.get(), zero.get()});
  padded->mutable_attrs().padding = padding;
  Expr rows = SelectExpr(*inside, DynamicSliceOf(padded, shifts, sizes), DynamicSliceOf(x, starts, sizes));
  return UpdateOf(x, rows, starts).get();
}

// Over all windows that touch the part.
Instruction* LocalOp::EmitUnpooled(const Unpooled& u) {
  const PrimitiveType t = operands[0]->shape().type();
  std::vector<std::optional<Stretch>> covered;
  Instruction* x = Fetch(0, Expr(computation()->AddConstant(Identity(Opcode::Maximum, t))), &covered);
  Instruction* source = Fetch(1, Expr(computation()->AddConstant(Literal::Of(t, 0))), nullptr);
  std::vector<WindowDim> window = u.window;
  Ints dims = shapes[0].dims(), from(dims.size(), 0), to = dims, all = dims;
  for (size_t d = 0; d < covered.size(); ++d) {
    if (!covered[d]) continue;
    window[d].pad_low = window[d].pad_high = 0;
    all[d] = covered[d]->count;
    from[d] = covered[d]->low;
    to[d] = covered[d]->count - covered[d]->high;
  }
  Instruction* i = computation()->AddClone(u.by, Shape::Array(t, all), {x, source, operands[2]});
  i->mutable_attrs().sharding.reset();
  i->mutable_attrs().window = window;
  return all == dims ? i : SliceOf(i, from, to).get();
}

Instruction* LocalOp::EmitSlice() {
  std::vector<std::optional<Stretch>> stretches;
  Instruction* x = Fetch(0, std::nullopt, &stretches);
  Ints dims = shapes[0].dims();
  bool looks_up = false;
  std::vector<Expr> starts;
  for (size_t d = 0; d < dims.size(); ++d) {
    starts.push_back(IntegerIn(computation(), PrimitiveType::S32, LooksUp(d) ? (*op.attrs().slice)[d].start : 0));
    if (!LooksUp(d)) continue;
    dims[d] = operands[0]->shape().dims()[d];
    looks_up = true;
  }
  if (x->shape().dims() != dims) {
    x = Clone({x});
    x->mutable_shape() = Shape::Array(shapes[0].type(), dims);
    for (size_t d = 0; d < dims.size(); ++d) {
      SliceDim& s = (*x->mutable_attrs().slice)[d];
      if (stretches[d])
        s = {0, stretches[d]->count, s.stride};
      else if (LooksUp(d) || !AxesOf(rule.results[0], d).empty())
        s = {0, dims[d], 1};
    }
  }
  return looks_up ? LookUp(x, starts).get() : x;
}

// Each operand moved to where it stands in the result; elements choose theirs by their place.
Instruction* LocalOp::EmitConcatenate() {
  const int64_t d = (*op.attrs().dimensions)[0];
  const Axes cut = AxesOf(rule.results[0], static_cast<size_t>(d));
  if (cut.empty()) return Clone(operands);
  const Ints& dims = shapes[0].dims();
  Expr first = reshard.Place(cut) * static_cast<double>(dims[static_cast<size_t>(d)]);
  Expr at = IotaOf(computation(), PrimitiveType::S32, dims, d) + BroadcastTo(first, dims);
  std::optional<Expr> all;
  int64_t before = 0;
  for (size_t k = 0; k < operands.size(); ++k) {
    Expr x = Fetch(k, std::nullopt, nullptr);
    all = all ? SelectExpr(at < static_cast<double>(before), *all, x) : x;
    before += op.operand(static_cast<int64_t>(k))->shape().dim(d);
  }
  return all->get();
}

// The stretch, padded on its own before windows move over it.
Instruction* LocalOp::EmitPooled(const Pooled& p) {
  std::vector<std::optional<Stretch>> stretches;
  Instruction* x = Fetch(0, Expr(operands[1]), &stretches);
  std::vector<PadDim> padding;
  Ints dims = x->shape().dims();
  for (size_t d = 0; d < dims.size(); ++d) {
    const WindowDim& w = p.window[d];
    padding.push_back({w.pad_low, w.pad_high, w.lhs_dilate - 1});
    if (stretches[d]) padding.back() = {stretches[d]->low, stretches[d]->high, w.lhs_dilate - 1};
    dims[d] += padding[d].low + padding[d].high + (dims[d] - 1) * padding[d].interior;
  }
  Instruction* padded = computation()->Add(Opcode::Pad, Shape::Array(x->shape().type(), dims), {x, operands[1]});
  padded->mutable_attrs().padding = padding;
  Instruction* i = Clone({padded, operands[1]});
  for (WindowDim& w : *i->mutable_attrs().window) w.pad_low = w.pad_high = 0;
  for (size_t d = 0; d < dims.size(); ++d)
    if (stretches[d]) i->mutable_shape().mutable_dims()[d] += stretches[d]->over - 1;
  for (size_t d = 0; d < dims.size(); ++d)
    if (stretches[d]) i = PartBehind(i, *stretches[d], d, d);
  return i;
}

Instruction* LocalOp::EmitWindow() {
  if (const auto p = PooledOf(op)) return EmitPooled(*p);
  std::vector<Instruction*> with = operands;
  std::vector<std::optional<Stretch>> stretches;
  const size_t arrays = op.Is(Opcode::ReduceWindow) ? operands.size() / 2 : 1;
  for (size_t k = 0; k < arrays; ++k) {
    stretches.clear();
    const bool padded = op.Is(Opcode::ReduceWindow);
    with[k] = Fetch(k, padded ? Expr(operands[arrays + k]) : Zero(k)(), &stretches);
  }
  const bool convolution = op.Is(Opcode::Convolution);
  if (convolution) with[1] = Masked(1, Zero(1));
  Instruction* i = Clone(with);
  if (!op.attrs().window) return i;
  const auto sides = [&](size_t s) {
    if (!convolution) return std::pair(s, s);
    const ConvDimensionNumbers& n = *op.attrs().dim_labels;
    return std::pair(static_cast<size_t>(n.input_spatial[s]), static_cast<size_t>(n.output_spatial[s]));
  };
  const size_t windows = op.attrs().window->size();
  for (size_t s = 0; s < windows; ++s) {
    const auto [in, out] = sides(s);
    if (!stretches[in]) continue;
    WindowDim& w = (*i->mutable_attrs().window)[s];
    w.pad_low = stretches[in]->low;
    w.pad_high = stretches[in]->high;
    if (convolution) w.size = with[1]->shape().dims()[static_cast<size_t>(op.attrs().dim_labels->kernel_spatial[s])];
    if (stretches[in]->over > 1) i->mutable_shape().mutable_dims()[out] += stretches[in]->over - 1;
  }
  for (size_t s = 0; s < windows; ++s)
    if (const auto [in, out] = sides(s); stretches[in]) i = PartBehind(i, *stretches[in], in, out);
  return i;
}

}  // namespace kiln
