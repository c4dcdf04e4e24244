#include "compiler/sharding/op_rule.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/numbers.h"
#include "compiler/sharding/reducer.h"
#include "compiler/sharding/window_rule.h"

namespace kiln {
namespace {

using Tensor = OpRule::Tensor;

Tensor Whole(const Shape& s) { return Tensor(static_cast<size_t>(s.rank())); }

// One factor for each dimension.
Tensor Own(OpRule* r, const Shape& s) {
  Tensor out;
  for (int64_t n : s.dims()) out.push_back({r->Add(n)});
  return out;
}

OpRule Pointwise(const Instruction& i) {
  OpRule r;
  r.results = {Own(&r, i.shape())};
  for (const Instruction* o : i.operands())
    r.operands.push_back(o->shape().dims() == i.shape().dims() ? r.results[0] : Whole(o->shape()));
  return r;
}

// Dimensions of equal extent and place; all others are whole.
OpRule Matching(const Instruction& i) {
  OpRule r;
  Tensor in, out;
  const Ints &a = i.operand(0)->shape().dims(), &b = i.shape().dims();
  for (size_t d = 0; d < b.size(); ++d) {
    const bool same = d < a.size() && a[d] == b[d];
    out.push_back(same ? std::vector<int>{r.Add(b[d])} : std::vector<int>());
  }
  for (size_t d = 0; d < a.size(); ++d) in.push_back(d < out.size() ? out[d] : std::vector<int>());
  r.operands = {in};
  for (int64_t k = 1; k < i.operand_count(); ++k) r.operands.push_back(Whole(i.operand(k)->shape()));
  r.results = {out};
  return r;
}

OpRule Broadcast(const Instruction& i) {
  OpRule r;
  r.results = {Own(&r, i.shape())};
  Tensor in;
  for (int64_t d : *i.attrs().dimensions) in.push_back(r.results[0][static_cast<size_t>(d)]);
  r.operands = {in};
  return r;
}

OpRule Transpose(const Instruction& i) {
  OpRule r;
  r.operands = {Own(&r, i.operand(0)->shape())};
  Tensor out;
  for (int64_t d : *i.attrs().dimensions) out.push_back(r.operands[0][static_cast<size_t>(d)]);
  r.results = {out};
  return r;
}

// Gives dimensions [first, last) of one side the factors between their boundaries; `bounds` are products of extents
// counted from the minor end, in descending order.
void TakeFactors(const Ints& dims, size_t first, size_t last, const Ints& bounds, int base, Tensor* out) {
  int64_t below = 1;
  for (size_t d = last; d-- > first;) {
    const int64_t above = below * dims[d];
    for (size_t k = 0; k + 1 < bounds.size(); ++k)
      if (bounds[k] <= above && bounds[k + 1] >= below) (*out)[d].push_back(base + static_cast<int>(k));
    below = above;
  }
}

// Dimensions [i0, i) of `a` and [j0, j) of `b` have as many elements.
void ReshapeBlock(OpRule* r, const Ints& a, size_t i0, size_t i, Tensor* in, const Ints& b, size_t j0, size_t j,
                  Tensor* out) {
  Ints bounds{1};
  for (const auto& [dims, first, last] : {std::tuple(&a, i0, i), std::tuple(&b, j0, j)}) {
    int64_t n = 1;
    for (size_t d = last; d-- > first;) bounds.push_back(n *= (*dims)[d]);
  }
  std::sort(bounds.begin(), bounds.end(), std::greater<>());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  bool chain = true;
  for (size_t k = 0; k + 1 < bounds.size(); ++k) chain = chain && bounds[k] % bounds[k + 1] == 0;
  if (!chain) {
    const int64_t common = std::gcd(a[i0], b[j0]);
    if (common == 1) return;
    const int f = r->Add(common);
    (*in)[i0] = {f};
    (*out)[j0] = {f};
    return;
  }
  const int base = static_cast<int>(r->sizes.size());
  for (size_t k = 0; k + 1 < bounds.size(); ++k) r->Add(bounds[k] / bounds[k + 1]);
  TakeFactors(a, i0, i, bounds, base, in);
  TakeFactors(b, j0, j, bounds, base, out);
}

OpRule Reshape(const Instruction& x) {
  OpRule r;
  const Ints &a = x.operand(0)->shape().dims(), &b = x.shape().dims();
  Tensor in(a.size()), out(b.size());
  if (x.shape().ElementCount() > 0) {
    for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
      if (a[i] == 1) {
        ++i;
      } else if (b[j] == 1) {
        ++j;
      } else {
        const size_t i0 = i, j0 = j;
        int64_t n = a[i++], m = b[j++];
        while (n != m) n < m ? n *= a[i++] : m *= b[j++];
        ReshapeBlock(&r, a, i0, i, &in, b, j0, j, &out);
      }
    }
  }
  r.operands = {in};
  r.results = {out};
  return r;
}

bool Contains(const Ints& v, int64_t d) { return std::find(v.begin(), v.end(), d) != v.end(); }

// Parts are reduced, and then what comes of them.
OpRule Reduce(const Instruction& i) {
  OpRule r;
  const Ints& reduced = *i.attrs().dimensions;
  const int64_t inputs = i.operand_count() / 2;
  const bool combines = !CombinersOf(**i.attrs().to_apply).empty() || IsReducedByParts(i);
  Tensor in, out;
  const Shape& s = i.operand(0)->shape();
  for (int64_t d = 0; d < s.rank(); ++d) {
    const bool gone = Contains(reduced, d);
    in.emplace_back();
    if (gone && !combines) continue;
    in.back().push_back(r.Add(s.dim(d), gone ? OpRule::kReduction : OpRule::kPass));
    if (!gone) out.push_back(in.back());
  }
  for (int64_t k = 0; k < i.operand_count(); ++k) r.operands.push_back(k < inputs ? in : Whole(i.operand(k)->shape()));
  r.results.assign(static_cast<size_t>(inputs), out);
  return r;
}

OpRule Dot(const Instruction& i) {
  OpRule r;
  const auto list = [](const std::optional<Ints>& v) { return v ? *v : Ints(); };
  const Ints lb = list(i.attrs().lhs_batch_dims), rb = list(i.attrs().rhs_batch_dims);
  const Ints lc = list(i.attrs().lhs_contracting_dims), rc = list(i.attrs().rhs_contracting_dims);
  const Shape &lhs = i.operand(0)->shape(), &rhs = i.operand(1)->shape();
  Tensor a = Whole(lhs), b = Whole(rhs), out;
  for (size_t k = 0; k < lb.size(); ++k) {
    const int f = r.Add(lhs.dim(lb[k]));
    a[static_cast<size_t>(lb[k])] = b[static_cast<size_t>(rb[k])] = {f};
    out.push_back({f});
  }
  for (size_t k = 0; k < lc.size(); ++k)
    a[static_cast<size_t>(lc[k])] = b[static_cast<size_t>(rc[k])] = {r.Add(lhs.dim(lc[k]), OpRule::kReduction)};
  for (auto [t, s] : {std::pair(&a, &lhs), std::pair(&b, &rhs)})
    for (int64_t d = 0; d < s->rank(); ++d) {
      if (!(*t)[static_cast<size_t>(d)].empty()) continue;
      (*t)[static_cast<size_t>(d)] = {r.Add(s->dim(d))};
      out.push_back((*t)[static_cast<size_t>(d)]);
    }
  r.operands = {a, b};
  r.results = {out};
  return r;
}

// Dimensions that a window or an order leaves alone.
template <typename IsWhole>
OpRule Except(const Instruction& i, int64_t arrays, const IsWhole& is_cut) {
  OpRule r;
  Tensor t;
  for (int64_t d = 0; d < i.operand(0)->shape().rank(); ++d)
    t.push_back(is_cut(d) ? std::vector<int>() : std::vector<int>{r.Add(i.operand(0)->shape().dim(d))});
  for (int64_t k = 0; k < i.operand_count(); ++k) r.operands.push_back(k < arrays ? t : Whole(i.operand(k)->shape()));
  ForEachLeaf(i.shape(), [&](const ShapeIndex&, const Shape&) { r.results.push_back(t); });
  return r;
}

// Rows that lie with other devices are theirs to write.
OpRule DynamicUpdateSlice(const Instruction& i) {
  OpRule r;
  const Shape &all = i.shape(), &update = i.operand(1)->shape();
  Tensor t, u;
  for (int64_t d = 0; d < all.rank(); ++d) {
    const bool same = all.dim(d) == update.dim(d);
    t.push_back({r.Add(all.dim(d), same ? OpRule::kPass : OpRule::kRows)});
    u.push_back(same ? t.back() : std::vector<int>());
  }
  r.operands = {t, u};
  for (int64_t k = 2; k < i.operand_count(); ++k) r.operands.push_back(Whole(i.operand(k)->shape()));
  r.results = {t};
  return r;
}

// Of few rows each device looks up those that it has.
OpRule DynamicSlice(const Instruction& i) {
  OpRule r;
  const Shape& all = i.operand(0)->shape();
  Tensor in, out;
  for (int64_t d = 0; d < all.rank(); ++d) {
    const int64_t n = all.dim(d), m = i.shape().dim(d);
    out.push_back(n == m ? std::vector<int>{r.Add(n)} : std::vector<int>());
    in.push_back(n == m                ? out.back()
                 : m * 2 <= n && m > 0 ? std::vector<int>{r.Add(n, OpRule::kLookup)}
                                       : std::vector<int>());
  }
  r.operands = {in};
  for (int64_t k = 1; k < i.operand_count(); ++k) r.operands.push_back(Whole(i.operand(k)->shape()));
  r.results = {out};
  return r;
}

OpRule Gather(const Instruction& i) {
  OpRule r;
  const Attributes& g = i.attrs();
  const Shape &in = i.operand(0)->shape(), &indices = i.operand(1)->shape();
  const auto list = [](const std::optional<Ints>& v) { return v ? *v : Ints(); };
  const Ints collapsed = list(g.collapsed_slice_dims), batching = list(g.operand_batching_dims),
             index_batching = list(g.start_indices_batching_dims), offsets = list(g.offset_dims),
             mapped = list(g.start_index_map);
  Tensor a = Whole(in), b = Whole(indices), out = Whole(i.shape());
  // Dimensions of the result that are not offsets are those of the indices but the vector's, in order.
  int64_t result = 0;
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (d == *g.index_vector_dim) continue;
    while (Contains(offsets, result)) ++result;
    b[static_cast<size_t>(d)] = out[static_cast<size_t>(result++)] = {r.Add(indices.dim(d))};
  }
  for (size_t k = 0; k < batching.size(); ++k)
    a[static_cast<size_t>(batching[k])] = b[static_cast<size_t>(index_batching[k])];
  size_t offset = 0;
  for (int64_t d = 0; d < in.rank(); ++d) {
    if (Contains(batching, d)) continue;
    auto& of = a[static_cast<size_t>(d)];
    const int64_t size = (*g.slice_sizes)[static_cast<size_t>(d)];
    if (size == 1 && Contains(mapped, d) && in.dim(d) > 1) of = {r.Add(in.dim(d), OpRule::kLookup)};
    if (Contains(collapsed, d)) continue;
    const int64_t to = offsets[offset++];
    if (size == in.dim(d)) of = out[static_cast<size_t>(to)] = {r.Add(size)};
  }
  r.operands = {a, b};
  r.results = {out};
  return r;
}

// Several arrays are updated by rows alike; which of two updates of an element counts is up to a function of all, so
// that updates are not shared out.
OpRule Scatter(const Instruction& i) {
  OpRule r;
  const Attributes& g = i.attrs();
  const int64_t arrays = i.operand_count() / 2;
  const Shape &in = i.operand(0)->shape(), &indices = i.operand(arrays)->shape(),
              &updates = i.operand(arrays + 1)->shape();
  const auto list = [](const std::optional<Ints>& v) { return v ? *v : Ints(); };
  const Ints inserted = list(g.inserted_window_dims), batching = list(g.input_batching_dims),
             index_batching = list(g.scatter_indices_batching_dims), windows = list(g.update_window_dims),
             mapped = list(g.scatter_dims_to_operand_dims);
  const auto combiner = CombinerOf(**g.to_apply);
  Tensor a = Whole(in), b = Whole(indices), u = Whole(updates);
  int64_t update = 0;
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (d == *g.index_vector_dim) continue;
    while (Contains(windows, update)) ++update;
    const auto at = std::find(index_batching.begin(), index_batching.end(), d);
    std::vector<int> f;
    if (at != index_batching.end() || combiner)
      f = {r.Add(indices.dim(d), at != index_batching.end() ? OpRule::kPass : OpRule::kUpdates)};
    b[static_cast<size_t>(d)] = u[static_cast<size_t>(update++)] = f;
    if (at != index_batching.end()) a[static_cast<size_t>(batching[at - index_batching.begin()])] = f;
  }
  size_t window = 0;
  for (int64_t d = 0; d < in.rank(); ++d) {
    if (Contains(batching, d)) continue;
    auto& of = a[static_cast<size_t>(d)];
    const int64_t from = Contains(inserted, d) ? -1 : windows[window++];
    const bool one_row = from < 0 || updates.dim(from) == 1;
    if (one_row && Contains(mapped, d) && in.dim(d) > 1 && IsSigned(indices.type()))
      of = {r.Add(in.dim(d), OpRule::kRows)};
    else if (from >= 0 && updates.dim(from) == in.dim(d))
      of = u[static_cast<size_t>(from)] = {r.Add(in.dim(d))};
  }
  const auto n = static_cast<size_t>(arrays);
  r.operands.assign(n, a);
  r.operands.push_back(b);
  r.operands.insert(r.operands.end(), n, u);
  r.results.assign(n, a);
  return r;
}

// Leading dimensions that only say how many problems there are.
OpRule Batched(const Instruction& i, int64_t trailing) {
  OpRule r;
  Tensor batch;
  for (int64_t d = 0; d + trailing < i.operand(0)->shape().rank(); ++d)
    batch.push_back({r.Add(i.operand(0)->shape().dim(d))});
  const auto with = [&](const Shape& s) {
    Tensor t = batch;
    t.resize(static_cast<size_t>(s.rank()));
    return t;
  };
  for (const Instruction* o : i.operands()) r.operands.push_back(with(o->shape()));
  ForEachLeaf(i.shape(), [&](const ShapeIndex&, const Shape& s) { r.results.push_back(with(s)); });
  return r;
}

// The first of each part, and then the first of those.
OpRule TopK(const Instruction& i) {
  OpRule r = Batched(i, 1);
  r.operands[0].back() = {r.Add(i.operand(0)->shape().dims().back(), OpRule::kReduction)};
  return r;
}

// A call whose frontend says how many leading dimensions only count problems, as JAX does of LAPACK's.
std::optional<OpRule> BatchedCall(const Instruction& i) {
  if (!i.attrs().frontend_attributes || i.HasSideEffect() || i.operand_count() == 0) return std::nullopt;
  const std::string& text = i.attrs().frontend_attributes->text;
  const size_t key = text.find("num_batch_dims");
  const size_t from = key == std::string::npos ? key : text.find('"', key);
  int64_t batch = 0;
  if (from == std::string::npos ||
      !absl::SimpleAtoi(text.substr(from + 1, text.find('"', from + 1) - from - 1), &batch))
    return std::nullopt;
  const Ints& first = i.operand(0)->shape().dims();
  bool fits = batch > 0;
  const auto look = [&](const Shape& s) {
    fits =
        fits && s.IsArray() && s.rank() >= batch && std::equal(first.begin(), first.begin() + batch, s.dims().begin());
  };
  if (static_cast<int64_t>(first.size()) < batch) return std::nullopt;
  for (const Instruction* o : i.operands()) look(o->shape());
  ForEachLeaf(i.shape(), [&](const ShapeIndex&, const Shape& s) { look(s); });
  if (!fits) return std::nullopt;
  return Batched(i, i.operand(0)->shape().rank() - batch);
}

std::optional<OpRule> RuleOfShaped(const Instruction& i) {
  const Attributes& at = i.attrs();
  switch (i.opcode()) {
    case Opcode::Broadcast:
      return Broadcast(i);
    case Opcode::Transpose:
      return Transpose(i);
    case Opcode::Reshape:
      return Reshape(i);
    case Opcode::Reduce:
      return Reduce(i);
    case Opcode::DynamicSlice:
      return DynamicSlice(i);
    case Opcode::BitcastConvert:
      return Matching(i);
    case Opcode::AllReduce:
    case Opcode::CollectivePermute:
      // Between replicas: each partition's part meets the same part.
      if (i.attrs().channel_id || !i.shape().IsArray() || i.operand_count() != 1) return std::nullopt;
      return Pointwise(i);
    case Opcode::DynamicUpdateSlice:
      return DynamicUpdateSlice(i);
    case Opcode::Sort:
      return Except(i, i.operand_count(), [&](int64_t d) { return d == (*at.dimensions)[0]; });
    case Opcode::TopK:
      return TopK(i);
    case Opcode::Gather:
      return Gather(i);
    case Opcode::Scatter:
      return Scatter(i);
    case Opcode::Iota: {
      OpRule r;
      r.results = {Own(&r, i.shape())};
      return r;
    }
    case Opcode::Fft:
      return Batched(i, static_cast<int64_t>(at.fft_length->size()));
    case Opcode::Cholesky:
    case Opcode::TriangularSolve:
      return Batched(i, 2);
    case Opcode::CustomCall:
      return BatchedCall(i);
    default:
      return std::nullopt;
  }
}

}  // namespace

namespace {

// `f` of its parameters p and q, in any order.
std::optional<Opcode> CombinerOf(const Instruction* f, const Instruction* p, const Instruction* q) {
  if (f->operand_count() != 2 || !f->shape().IsScalar()) return std::nullopt;
  if (!(f->operand(0) == p && f->operand(1) == q) && !(f->operand(0) == q && f->operand(1) == p)) return std::nullopt;
  switch (f->opcode()) {
    case Opcode::Add:
    case Opcode::Multiply:
    case Opcode::Minimum:
    case Opcode::Maximum:
    case Opcode::And:
    case Opcode::Or:
      return f->opcode();
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Opcode> CombinerOf(const Computation& f) {
  if (f.parameters().size() != 2) return std::nullopt;
  return CombinerOf(f.root(), f.parameter(0), f.parameter(1));
}

std::vector<Opcode> CombinersOf(const Computation& f) {
  const Instruction* root = f.root();
  const int64_t n = root->Is(Opcode::Tuple) ? root->operand_count() : 1;
  if (static_cast<int64_t>(f.parameters().size()) != 2 * n) return {};
  std::vector<Opcode> out;
  for (int64_t k = 0; k < n; ++k) {
    const Instruction* of = root->Is(Opcode::Tuple) ? root->operand(k) : root;
    const auto combiner = CombinerOf(of, f.parameter(k), f.parameter(n + k));
    if (!combiner) return {};
    out.push_back(*combiner);
  }
  return out;
}

std::optional<OpRule> RuleOf(const Instruction& i) {
  if (i.shape().HasDynamic()) return std::nullopt;
  for (const Instruction* o : i.operands())
    if (!o->shape().IsArray() || o->shape().HasDynamic()) return std::nullopt;
  if (i.IsElementwise() || i.Is(Opcode::Map)) return Pointwise(i);
  if (i.Is(Opcode::Dot)) {
    if (i.operand_count() != 2 || i.attrs().sparsity) return std::nullopt;
    return Dot(i);
  }
  if (auto rule = WindowRuleOf(i)) return rule;
  return RuleOfShaped(i);
}

bool IsOfBatches(const Instruction& i) {
  return i.Is(Opcode::Sort) || i.Is(Opcode::Fft) || i.Is(Opcode::Cholesky) || i.Is(Opcode::TriangularSolve) ||
         i.Is(Opcode::CustomCall);
}

std::vector<Axes> AxesOfFactors(const DeviceMesh& mesh, const OpRule& rule, const OpRule::Tensor& tensor,
                                const Tiling& t) {
  std::vector<Axes> out(rule.sizes.size());
  for (size_t d = 0; d < tensor.size() && d < t.dims.size(); ++d) {
    size_t k = 0;
    int64_t rest = tensor[d].empty() ? 1 : rule.sizes[static_cast<size_t>(tensor[d][0])];
    for (int a : t.dims[d]) {
      while (rest == 1 && k + 1 < tensor[d].size()) rest = rule.sizes[static_cast<size_t>(tensor[d][++k])];
      const bool uneven = k < tensor[d].size() && rest % mesh.size(a) != 0;
      if (k >= tensor[d].size() || (uneven && tensor[d].size() > 1)) break;
      rest = uneven ? 0 : rest / mesh.size(a);  // a dimension that is one factor may be cut unevenly
      out[static_cast<size_t>(tensor[d][k])].push_back(a);
    }
  }
  return out;
}

std::optional<Tiling> TilingOfFactors(const DeviceMesh& mesh, const OpRule& rule, const OpRule::Tensor& tensor,
                                      const std::vector<Axes>& axes) {
  Tiling out;
  out.dims.resize(tensor.size());
  AxisMask used = 0;
  for (size_t d = 0; d < tensor.size(); ++d) {
    bool full = true;
    for (int f : tensor[d]) {
      const Axes& of = axes[static_cast<size_t>(f)];
      if (!of.empty() && !full) return std::nullopt;
      for (int a : of) {
        if (used >> a & 1) return std::nullopt;
        used |= AxisMask{1} << a;
        out.dims[d].push_back(a);
      }
      full = full && mesh.SizeOf(of) == rule.sizes[static_cast<size_t>(f)];
    }
  }
  return out;
}

}  // namespace kiln
