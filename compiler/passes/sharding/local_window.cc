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

Instruction* LocalOp::EmitRotation(const Rotation& r) {
  if (!WindowAxes(0, r.dim).empty()) return Fetch(0, std::nullopt, nullptr);
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
  const auto none = [](const PadDim& d) { return d.low == 0 && d.high == 0; };
  if (x->shape().dims() == shapes[0].dims() && std::all_of(padding.begin(), padding.end(), none)) return x;
  Instruction* i = computation()->Add(Opcode::Pad, shapes[0], {x, operands[1]});
  i->mutable_attrs().padding = padding;
  return i;
}

Instruction* LocalOp::EmitSlice() {
  std::vector<std::optional<Stretch>> stretches;
  Instruction* x = Fetch(0, std::nullopt, &stretches);
  if (x->shape().dims() == shapes[0].dims()) return x;
  Instruction* i = Clone({x});
  for (size_t d = 0; d < stretches.size(); ++d) {
    SliceDim& s = (*i->mutable_attrs().slice)[d];
    if (stretches[d])
      s = {0, stretches[d]->count, s.stride};
    else if (!AxesOf(rule.results[0], d).empty())
      s = {0, shapes[0].dims()[d], 1};
  }
  return i;
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

Instruction* LocalOp::EmitWindow() {
  std::vector<Instruction*> with = operands;
  std::vector<std::optional<Stretch>> stretches;
  const size_t arrays = op.Is(Opcode::ReduceWindow) ? operands.size() / 2 : 1;
  for (size_t k = 0; k < arrays; ++k) {
    stretches.clear();
    const bool padded = op.Is(Opcode::ReduceWindow);
    Expr zero = computation()->AddConstant(Literal::Of(operands[k]->shape().type(), 0));
    with[k] = Fetch(k, padded ? Expr(operands[arrays + k]) : zero, &stretches);
  }
  Instruction* i = Clone(with);
  if (!op.attrs().window) return i;
  const bool convolution = op.Is(Opcode::Convolution);
  for (size_t s = 0; s < op.attrs().window->size(); ++s) {
    const auto d = convolution ? static_cast<size_t>(op.attrs().dim_labels->input_spatial[s]) : s;
    if (!stretches[d]) continue;
    WindowDim& w = (*i->mutable_attrs().window)[s];
    w.pad_low = stretches[d]->low;
    w.pad_high = stretches[d]->high;
    if (convolution) w.size = with[1]->shape().dims()[static_cast<size_t>(op.attrs().dim_labels->kernel_spatial[s])];
  }
  return i;
}

}  // namespace kiln
