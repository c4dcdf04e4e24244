#include "compiler/sharding/window_rule.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kiln {
namespace {

using Tensor = OpRule::Tensor;

bool Contains(const Ints& v, int64_t d) { return std::find(v.begin(), v.end(), d) != v.end(); }

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0); }
int64_t CeilDiv(int64_t a, int64_t b) { return -FloorDiv(-a, b); }

Tensor Whole(const Shape& s) { return Tensor(static_cast<size_t>(s.rank())); }

// The factor of a dimension whose extent changes. One that is too small to be cut stays whole.
std::vector<int> WindowFactor(OpRule* r, int64_t in, int64_t out) {
  if (in < 2 || out < 2) return {};
  return {r->Add(std::gcd(in, out), OpRule::kWindow)};
}

// What a scalar is a copy of.
const Instruction* ScalarBehind(const Instruction* i) {
  while ((i->Is(Opcode::Broadcast) || i->Is(Opcode::Reshape) || i->Is(Opcode::Copy)) &&
         i->operand(0)->shape().IsScalar())
    i = i->operand(0);
  return i;
}

// Element `k` of a list of numbers that is a constant but for how it is put together.
std::optional<int64_t> Listed(const Instruction* i, int64_t k) {
  switch (i->opcode()) {
    case Opcode::Constant:
      return i->literal().Get(k).i;
    case Opcode::Convert:
      return IsIntegral(i->operand(0)->shape().type()) ? Listed(i->operand(0), k) : std::nullopt;
    case Opcode::Copy:
    case Opcode::Reshape:
      return Listed(i->operand(0), k);
    case Opcode::Broadcast:
      if (i->operand(0)->shape().ElementCount() != 1) return std::nullopt;
      return Listed(i->operand(0), 0);
    case Opcode::Concatenate:
      if (i->shape().rank() != 1) return std::nullopt;
      for (const Instruction* o : i->operands()) {
        if (k < o->shape().dim(0)) return Listed(o, k);
        k -= o->shape().dim(0);
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// Where the window of a scatter of one index goes; nothing for several, or for one that is not known or lies outside.
std::optional<Ints> OnlyWindow(const Instruction& i) {
  const Attributes& g = i.attrs();
  const auto none = [](const std::optional<Ints>& v) { return !v || v->empty(); };
  const Instruction* indices = i.operand(1);
  const Ints& mapped = *g.scatter_dims_to_operand_dims;
  if (i.operand_count() != 3 || !none(g.inserted_window_dims) || !none(g.input_batching_dims) ||
      indices->shape().ElementCount() != static_cast<int64_t>(mapped.size()) ||
      i.operand(2)->shape().rank() != i.shape().rank())
    return std::nullopt;
  Ints starts(i.shape().dims().size(), 0);
  for (size_t k = 0; k < mapped.size(); ++k) {
    const auto at = Listed(indices, static_cast<int64_t>(k));
    if (!at) return std::nullopt;
    starts[static_cast<size_t>(mapped[k])] = *at;
  }
  for (size_t d = 0; d < starts.size(); ++d)
    if (starts[d] < 0 || starts[d] + i.operand(2)->shape().dims()[d] > i.shape().dims()[d]) return std::nullopt;
  return starts;
}

// One array in and out; `alone(d)` says that elements of dimension d stay where they are.
template <typename Alone>
OpRule Mapped(const Shape& in, const Shape& out, const Alone& alone) {
  OpRule r;
  Tensor t;
  for (int64_t d = 0; d < in.rank(); ++d)
    t.push_back(alone(d) ? std::vector<int>{r.Add(in.dim(d))} : WindowFactor(&r, in.dim(d), out.dim(d)));
  r.operands = {t};
  r.results = {t};
  return r;
}

// One row of a dimension is looked up where it is.
OpRule SliceRule(const Instruction& i) {
  OpRule r;
  const Shape &in = i.operand(0)->shape(), &out = i.shape();
  r.operands.resize(1);
  r.results.resize(1);
  for (int64_t d = 0; d < in.rank(); ++d) {
    const int64_t n = in.dim(d), m = out.dim(d);
    const bool one = m == 1 && n > 1;
    std::vector<int> f = n == m ? std::vector<int>{r.Add(n)} : WindowFactor(&r, n, m);
    r.results[0].push_back(f);
    r.operands[0].push_back(one ? std::vector<int>{r.Add(n, OpRule::kLookup)} : f);
  }
  return r;
}

OpRule PadRule(const Instruction& i, const Padded& p) {
  OpRule r = Mapped(p.of->shape(), i.shape(), [&](int64_t d) { return p.padding[static_cast<size_t>(d)] == PadDim(); });
  r.operands.push_back({});
  return r;
}

OpRule PlacedRule(const Placed& p) {
  OpRule r = Mapped(p.update->shape(), p.into->shape(),
                    [&](int64_t d) { return p.update->shape().dim(d) == p.into->shape().dim(d); });
  r.operands = {r.results[0], r.results[0]};
  return r;
}

OpRule ConcatenateRule(const Instruction& i) {
  const int64_t along = (*i.attrs().dimensions)[0];
  OpRule r;
  Tensor out;
  for (int64_t d = 0; d < i.shape().rank(); ++d)
    out.push_back(d == along ? std::vector<int>() : std::vector<int>{r.Add(i.shape().dim(d))});
  // What is small beside the result is held whole.
  const auto is_cut = [&](const Instruction* o) { return o->shape().dim(along) * 4 >= i.shape().dim(along); };
  int64_t common = i.shape().dim(along);
  for (const Instruction* o : i.operands())
    if (is_cut(o)) common = std::gcd(common, o->shape().dim(along));
  const int f = r.Add(common, OpRule::kWindow);
  for (const Instruction* o : i.operands()) {
    r.operands.push_back(out);
    if (is_cut(o)) r.operands.back()[static_cast<size_t>(along)] = {f};
  }
  out[static_cast<size_t>(along)] = {f};
  r.results = {out};
  return r;
}

OpRule ReduceWindowRule(const Instruction& i) {
  const auto pooled = PooledOf(i);
  const auto& window = pooled ? pooled->window : *i.attrs().window;
  const Shape& in = pooled ? pooled->of->shape() : i.operand(0)->shape();
  const Shape& out = i.shape().IsTuple() ? i.shape().tuple()[0] : i.shape();
  OpRule r = Mapped(in, out, [&](int64_t d) { return window[static_cast<size_t>(d)] == WindowDim(); });
  const int64_t arrays = i.operand_count() / 2;
  // A window over most of the array, as of a cumulative sum, is not moved over parts.
  Tensor t = r.operands[0];
  for (size_t d = 0; d < t.size(); ++d)
    if (window[d].DilatedSize() * 2 > in.dims()[d] * window[d].lhs_dilate + 1 && !(window[d] == WindowDim()))
      t[d].clear();
  r.operands.assign(static_cast<size_t>(arrays), t);
  for (int64_t k = arrays; k < i.operand_count(); ++k) r.operands.push_back(Whole(i.operand(k)->shape()));
  r.results.assign(static_cast<size_t>(arrays), t);
  return r;
}

// A kernel that is larger than what it is moved over: the gradient of a kernel. Few elements far apart are no such.
bool CutsKernel(const WindowDim& w, int64_t out) { return w.DilatedSize() > out * w.stride && w.size > out; }

std::optional<OpRule> ConvolutionRule(const Instruction& i) {
  OpRule r;
  const ConvDimensionNumbers& n = *i.attrs().dim_labels;
  if (n.input_others || n.kernel_others || n.output_others) return std::nullopt;
  const int64_t groups = i.attrs().feature_group_count.value_or(1), batches = i.attrs().batch_group_count.value_or(1);
  if (groups > 1 && batches > 1) return std::nullopt;
  const Shape &in = i.operand(0)->shape(), &kernel = i.operand(1)->shape();
  Tensor a = Whole(in), b = Whole(kernel), out = Whole(i.shape());
  auto &batch = a[static_cast<size_t>(n.input_batch)], &features = a[static_cast<size_t>(n.input_feature)];
  auto &from = b[static_cast<size_t>(n.kernel_input)], &to = b[static_cast<size_t>(n.kernel_output)];
  if (const int64_t all = groups * batches; all > 1) {
    const int group = r.Add(all);
    (groups > 1 ? features : batch).push_back(group);
    to.push_back(group);
  }
  const int images = r.Add(in.dim(n.input_batch) / batches),
            summed = r.Add(kernel.dim(n.kernel_input), OpRule::kReduction);
  batch.push_back(images);
  features.push_back(summed);
  from = {summed};
  to.push_back(r.Add(kernel.dim(n.kernel_output) / (groups * batches)));
  out[static_cast<size_t>(n.output_batch)] = {images};
  out[static_cast<size_t>(n.output_feature)] = to;
  const std::vector<WindowDim> none(n.input_spatial.size());
  const auto& window = i.attrs().window ? *i.attrs().window : none;
  for (size_t s = 0; s < n.input_spatial.size(); ++s) {
    const auto x = static_cast<size_t>(n.input_spatial[s]), k = static_cast<size_t>(n.kernel_spatial[s]),
               y = static_cast<size_t>(n.output_spatial[s]);
    const int64_t extent = in.dims()[x], size = i.shape().dims()[y];
    if (CutsKernel(window[s], size)) {
      if (extent > 1) a[x] = b[k] = {r.Add(std::gcd(extent, window[s].size), OpRule::kWindowSum)};
    } else {
      a[x] = out[y] = WindowFactor(&r, extent, size);
    }
  }
  r.operands = {a, b};
  r.results = {out};
  return r;
}

// Adds to what it finds the greatest: windows choose alike whatever lies past the ends.
bool ScattersMaxima(const Instruction& i) {
  const Instruction* chosen = (*i.attrs().select)->root();
  const auto d = chosen->attrs().direction;
  return chosen->Is(Opcode::Compare) && (d == Direction::GE || d == Direction::GT) &&
         chosen->operand(0)->Is(Opcode::Parameter) && *chosen->operand(0)->attrs().parameter_number == 0 &&
         chosen->operand(1)->Is(Opcode::Parameter) && CombinerOf(**i.attrs().scatter) == Opcode::Add;
}

OpRule SelectAndScatterRule(const Unpooled& u) {
  const bool cut = ScattersMaxima(*u.by);
  const Shape &in = u.of->shape(), &source = u.by->operand(1)->shape();
  OpRule r;
  Tensor t;
  for (int64_t d = 0; d < in.rank(); ++d) {
    const WindowDim& w = u.window[static_cast<size_t>(d)];
    if (w == WindowDim())
      t.push_back({r.Add(in.dim(d))});
    else if (cut && w.rhs_dilate == 1 && w.lhs_dilate == 1)
      t.push_back(WindowFactor(&r, in.dim(d), source.dim(d)));
    else
      t.emplace_back();
  }
  r.operands = {t, t, {}};
  r.results = {t};
  return r;
}

// The windows that touch a part, and all that they cover.
std::optional<Stretch> SelectAndScatterStretch(const Unpooled& u, size_t k, size_t d, int64_t parts) {
  const WindowDim& w = u.window[d];
  const int64_t part = CeilDiv(u.of->shape().dims()[d], parts);
  if (part % w.stride) return std::nullopt;
  const int64_t first = CeilDiv(w.pad_low - w.size + 1, w.stride), last = FloorDiv(part - 1 + w.pad_low, w.stride);
  Stretch s{first, part / w.stride, last - first + 1, 0, 0};
  const int64_t from = first * w.stride - w.pad_low, count = (s.count - 1) * w.stride + w.size;
  if (s.count < 1 || from > 0 || from + count < part) return std::nullopt;
  // The operation gives all that its windows cover; the part is within.
  if (k == 0) s = {from, part, count, -from, from + count - part};
  return s;
}

// Positions [start + i * step, + length) among elements that stand `base` apart. `moves`: one more result takes one
// more position.
std::optional<Stretch> Take(int64_t start, int64_t step, int64_t length, int64_t base, bool moves = false) {
  Stretch s;
  if (step % base == 0) {
    const int64_t last = FloorDiv(start + length - 1, base);
    s.first = CeilDiv(start, base);
    s.step = step / base;
    s.count = last - s.first + 1;
    s.low = s.first * base - start;
    s.high = start + length - 1 - last * base;
  } else {
    // From the element at or before the first position on.
    if (!moves || step < 0) return std::nullopt;
    const int64_t positions = length + base - 1;
    s.first = FloorDiv(start, base);
    s.shift = start - s.first * base;
    s.step = step;
    s.over = base;
    s.count = (positions - 1) / base + 1;
    s.high = positions - 1 - (s.count - 1) * base;
  }
  if (s.count < 1) return std::nullopt;
  return s;
}

std::optional<Stretch> WindowStretch(const WindowDim& w, int64_t part, bool alone = true) {
  const int64_t length = (part - 1) * w.stride + w.DilatedSize();
  return Take(-w.pad_low, part * w.stride, length, w.lhs_dilate, alone && w.stride == 1);
}

std::optional<Stretch> ConvolutionStretch(const Instruction& i, size_t d, int64_t parts) {
  const ConvDimensionNumbers& n = *i.attrs().dim_labels;
  if (!i.attrs().window) return std::nullopt;
  const auto s = static_cast<size_t>(
      std::find(n.input_spatial.begin(), n.input_spatial.end(), static_cast<int64_t>(d)) - n.input_spatial.begin());
  const WindowDim& w = (*i.attrs().window)[s];
  const int64_t out = i.shape().dim(n.output_spatial[s]);
  if (!CutsKernel(w, out)) return WindowStretch(w, CeilDiv(out, parts));
  const int64_t part = CeilDiv(w.size, parts), step = part * w.rhs_dilate;
  const int64_t length = (out - 1) * w.stride + (part - 1) * w.rhs_dilate + 1;
  if (w.reversed) return Take((w.size - part) * w.rhs_dilate - w.pad_low, -step, length, w.lhs_dilate);
  return Take(-w.pad_low, step, length, w.lhs_dilate, w.stride == 1);
}

}  // namespace

std::optional<Rotation> RotationOf(const Instruction& i) {
  if (!i.Is(Opcode::Concatenate) || i.operand_count() != 2) return std::nullopt;
  const Instruction *a = i.operand(0), *b = i.operand(1);
  if (!a->Is(Opcode::Slice) || !b->Is(Opcode::Slice) || a->operand(0) != b->operand(0)) return std::nullopt;
  const Instruction* x = a->operand(0);
  if (!x->shape().IsArray() || x->shape().dims() != i.shape().dims()) return std::nullopt;
  const auto along = static_cast<size_t>((*i.attrs().dimensions)[0]);
  for (size_t d = 0; d < x->shape().dims().size(); ++d) {
    const SliceDim &p = (*a->attrs().slice)[d], &q = (*b->attrs().slice)[d];
    const int64_t n = x->shape().dims()[d];
    if (p.stride != 1 || q.stride != 1) return std::nullopt;
    const bool whole = p.start == 0 && q.start == 0 && p.limit == n && q.limit == n;
    const bool around = p.limit == n && q.start == 0 && q.limit == p.start;
    if (d == along ? !around : !whole) return std::nullopt;
  }
  return Rotation{x, along, (*a->attrs().slice)[along].start};
}

std::optional<Padded> PaddedOf(const Instruction& i) {
  if (i.Is(Opcode::Pad)) return Padded{i.operand(0), i.operand(1), *i.attrs().padding};
  if (!i.Is(Opcode::Slice) || !i.operand(0)->Is(Opcode::Pad)) return std::nullopt;
  const Instruction* pad = i.operand(0);
  Padded out{pad->operand(0), pad->operand(1), *pad->attrs().padding};
  for (size_t d = 0; d < out.padding.size(); ++d) {
    const SliceDim& s = (*i.attrs().slice)[d];
    if (s.stride != 1 || out.padding[d].interior != 0) return std::nullopt;
    out.padding[d].low -= s.start;
    out.padding[d].high -= pad->shape().dims()[d] - s.limit;
  }
  return out;
}

std::optional<Pooled> PooledOf(const Instruction& i) {
  if (!i.Is(Opcode::ReduceWindow) || i.operand_count() != 2 || !i.operand(0)->Is(Opcode::Pad)) return std::nullopt;
  const Instruction *pad = i.operand(0), *value = pad->operand(1), *init = i.operand(1);
  value = ScalarBehind(value);
  init = ScalarBehind(init);
  const bool constants = value->Is(Opcode::Constant) && init->Is(Opcode::Constant);
  if (value != init && !(constants && value->literal() == init->literal())) return std::nullopt;
  Pooled out{pad->operand(0), *i.attrs().window};
  for (size_t d = 0; d < out.window.size(); ++d) {
    const PadDim& p = (*pad->attrs().padding)[d];
    WindowDim& w = out.window[d];
    if (w.lhs_dilate != 1) return std::nullopt;
    w.lhs_dilate = p.interior + 1;
    w.pad_low += p.low;
    w.pad_high += p.high;
  }
  return out;
}

std::optional<Unpooled> UnpooledOf(const Instruction& i) {
  if (i.Is(Opcode::SelectAndScatter)) return Unpooled{&i, i.operand(0), *i.attrs().window};
  if (!i.Is(Opcode::Slice) || !i.operand(0)->Is(Opcode::SelectAndScatter)) return std::nullopt;
  const Instruction *by = i.operand(0), *pad = by->operand(0);
  if (!pad->Is(Opcode::Pad) || !ScattersMaxima(*by)) return std::nullopt;
  // Padding that no window chooses.
  const Instruction* value = ScalarBehind(pad->operand(1));
  const PrimitiveType t = value->shape().type();
  if (InfoOf(t).flavour != FloatFlavour::Ieee || !value->Is(Opcode::Constant) ||
      !(value->literal() == Literal::Float(t, -HUGE_VAL)))
    return std::nullopt;
  Unpooled out{by, pad->operand(0), *by->attrs().window};
  for (size_t d = 0; d < out.window.size(); ++d) {
    const PadDim& p = (*pad->attrs().padding)[d];
    const SliceDim& s = (*i.attrs().slice)[d];
    if (p.interior != 0 || p.low < 0 || p.high < 0 || s.stride != 1 || s.start != p.low) return std::nullopt;
    if (s.limit != p.low + out.of->shape().dims()[d]) return std::nullopt;
    out.window[d].pad_low += p.low;
    out.window[d].pad_high += p.high;
  }
  return out;
}

std::optional<Placed> PlacedOf(const Instruction& i) {
  Placed out;
  if (i.Is(Opcode::DynamicUpdateSlice)) {
    out = {i.operand(0), i.operand(1), {}, std::nullopt};
    for (int64_t d = 0; d < i.shape().rank(); ++d) {
      const auto at = Listed(i.operand(d + 2), 0);
      if (!at) return std::nullopt;
      out.starts.push_back(std::clamp<int64_t>(*at, 0, i.shape().dim(d) - out.update->shape().dim(d)));
    }
  } else if (i.Is(Opcode::Scatter) && !i.shape().IsTuple()) {
    const auto starts = OnlyWindow(i);
    if (!starts) return std::nullopt;
    const Computation& f = **i.attrs().to_apply;
    out = {i.operand(0), i.operand(2), *starts, CombinerOf(f)};
    const bool replaces = f.root()->Is(Opcode::Parameter) && *f.root()->attrs().parameter_number == 1;
    if (!out.combiner && !replaces) return std::nullopt;
  } else {
    return std::nullopt;
  }
  bool moves = false;
  for (size_t d = 0; d < out.starts.size(); ++d) {
    const int64_t n = out.into->shape().dims()[d], m = out.update->shape().dims()[d];
    if (m * 2 <= n) return std::nullopt;
    moves = moves || m != n;
  }
  return moves ? std::optional(out) : std::nullopt;
}

std::vector<const Instruction*> RuleOperands(const Instruction& i) {
  if (const auto r = RotationOf(i)) return {r->of};
  if (const auto p = PaddedOf(i)) return {p->of, p->value};
  if (const auto p = PooledOf(i)) return {p->of, i.operand(1)};
  if (const auto p = PlacedOf(i)) return {p->into, p->update};
  if (const auto u = UnpooledOf(i)) return {u->of, u->by->operand(1), u->by->operand(2)};
  return {i.operands().begin(), i.operands().end()};
}

std::optional<OpRule> WindowRuleOf(const Instruction& i) {
  if (const auto r = RotationOf(i))
    return Mapped(i.shape(), i.shape(), [&](int64_t d) { return static_cast<size_t>(d) != r->dim; });
  if (const auto p = PaddedOf(i)) return PadRule(i, *p);
  if (const auto u = UnpooledOf(i)) return SelectAndScatterRule(*u);
  if (const auto p = PlacedOf(i)) return PlacedRule(*p);
  switch (i.opcode()) {
    case Opcode::Slice:
      return SliceRule(i);
    case Opcode::Reverse:
      return Mapped(i.shape(), i.shape(), [&](int64_t d) { return !Contains(*i.attrs().dimensions, d); });
    case Opcode::Concatenate:
      return ConcatenateRule(i);
    case Opcode::ReduceWindow:
      return ReduceWindowRule(i);
    case Opcode::Convolution:
      return ConvolutionRule(i);
    default:
      return std::nullopt;
  }
}

bool TakesStretch(const Instruction& i, size_t k) { return !i.Is(Opcode::Convolution) || k == 0; }

std::optional<Stretch> StretchOf(const Instruction& i, size_t k, size_t d, int64_t parts) {
  const Shape& shape = i.shape().IsTuple() ? i.shape().tuple()[0] : i.shape();
  if (i.Is(Opcode::Convolution)) return ConvolutionStretch(i, d, parts);
  if (const auto u = UnpooledOf(i)) return SelectAndScatterStretch(*u, k, d, parts);
  const int64_t part = CeilDiv(shape.dims()[d], parts);
  if (const auto r = RotationOf(i)) return Stretch{r->by, part, part};
  if (const auto p = PlacedOf(i)) return Take(k == 0 ? 0 : -p->starts[d], part, part, 1);
  if (const auto p = PaddedOf(i)) return Take(-p->padding[d].low, part, part, p->padding[d].interior + 1, true);
  switch (i.opcode()) {
    case Opcode::Slice: {
      const SliceDim& s = (*i.attrs().slice)[d];
      return Take(s.start, part * s.stride, (part - 1) * s.stride + 1, 1);
    }
    case Opcode::Reverse:
      return Take(shape.dims()[d] - part, -part, part, 1);
    case Opcode::Concatenate: {
      int64_t before = 0;
      for (size_t o = 0; o < k; ++o) before += i.operand(static_cast<int64_t>(o))->shape().dims()[d];
      return Take(-before, part, part, 1);
    }
    case Opcode::ReduceWindow:
      if (const auto pooled = PooledOf(i)) return WindowStretch(pooled->window[d], part);
      return WindowStretch((*i.attrs().window)[d], part, !i.shape().IsTuple());
    default:
      return std::nullopt;
  }
}

}  // namespace kiln
