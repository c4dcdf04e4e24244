// Random gathers, scatters and sorts in every form: batching dimensions, index vectors anywhere, indices of any type,
// several arrays at once, and orders by more than one key.
#include <algorithm>
#include <numeric>

#include "absl/algorithm/container.h"
#include "tests/random/growth.h"

namespace kiln {
namespace {

PrimitiveType IndexType(Growth& g) {
  using enum PrimitiveType;
  constexpr PrimitiveType types[] = {S32, S32, S32, S64, U32, S8, U8, S16, U64, U16};
  return types[g.Pick(std::size(types))];
}

// What each dimension of the operand is for, and how indices, windows and batches stand to each other.
struct Addressing {
  Ints sizes, batching, collapsed, mapped;        // of the operand
  Ints indices, indices_batching, batch_extents;  // of the indices, and their extents without the vector
  int64_t vector = 0;
  Ints window_dims, dims;  // of the windows side by side

  Addressing(Growth& g, const Ints& operand) {
    Ints window;
    for (size_t k = 0; k < operand.size(); ++k) {
      const auto d = static_cast<int64_t>(k);
      const int64_t n = operand[k];
      sizes.push_back(g.Chance(30) ? n : n ? g.Between(1, n) : 0);
      if (n > 0 && g.Chance(25)) {
        batching.push_back(d);
        sizes[k] = 1;
        continue;
      }
      if (g.Chance(60)) mapped.push_back(d);
      if (n > 0 && g.Chance(35)) {
        sizes[k] = 1;
        collapsed.push_back(d);
      } else {
        window.push_back(sizes[k]);
      }
    }
    if (g.Chance(60)) absl::c_shuffle(mapped, g.rng);
    ArrangeIndices(g, operand);
    ArrangeWindows(g, window);
  }

 private:
  void ArrangeIndices(Growth& g, const Ints& operand) {
    // Each batch dimension by itself: its extent, and the operand's dimension that goes along with it, or -1.
    std::vector<std::pair<int64_t, int64_t>> batches;
    for (int64_t d : batching) batches.emplace_back(operand[static_cast<size_t>(d)], d);
    const int64_t more = g.Between(batching.empty() ? 1 : 0, 2);
    for (int64_t k = 0; k < more; ++k)
      batches.emplace_back(g.most > 600 && k == 0 ? g.Between(1, 70) : g.Between(1, 4), -1);
    absl::c_shuffle(batches, g.rng);
    const auto rank = static_cast<int64_t>(batches.size());
    vector = g.Between(0, rank);
    // A vector of one number may be the array's elements themselves.
    const bool plain = mapped.size() == 1 && g.Chance(40);
    if (plain) vector = rank;
    indices_batching.resize(batching.size());
    for (int64_t k = 0; k < rank; ++k) {
      const auto [extent, d] = batches[static_cast<size_t>(k)];
      batch_extents.push_back(extent);
      if (d >= 0)
        indices_batching[static_cast<size_t>(absl::c_find(batching, d) - batching.begin())] = k < vector ? k : k + 1;
    }
    indices = batch_extents;
    if (!plain) indices.insert(indices.begin() + vector, static_cast<int64_t>(mapped.size()));
  }

  void ArrangeWindows(Growth& g, const Ints& window) {
    const size_t rank = window.size() + batch_extents.size();
    std::vector<bool> is_window(rank);
    std::fill_n(is_window.begin(), window.size(), true);
    if (g.Chance(70)) absl::c_shuffle(is_window, g.rng);
    size_t w = 0, b = 0;
    for (size_t d = 0; d < rank; ++d) {
      if (is_window[d]) window_dims.push_back(static_cast<int64_t>(d));
      dims.push_back(is_window[d] ? window[w++] : batch_extents[b++]);
    }
  }
};

std::optional<Expr> GatherAny(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0) return std::nullopt;
  const Addressing a(g, x.shape().dims());
  if (Product(a.dims) > g.most || a.dims.size() > 5) return std::nullopt;
  Attributes attrs;
  attrs.offset_dims = a.window_dims;
  attrs.collapsed_slice_dims = a.collapsed;
  attrs.start_index_map = a.mapped;
  attrs.index_vector_dim = a.vector;
  attrs.slice_sizes = a.sizes;
  if (!a.batching.empty()) {
    attrs.operand_batching_dims = a.batching;
    attrs.start_indices_batching_dims = a.indices_batching;
  }
  return Inferred(c, Opcode::Gather, {x, g.Fit(c, IndexType(g), a.indices)}, attrs);
}

// Sums, least and greatest, bits; of two arrays each by its own.
std::optional<Expr> ScatterAny(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0 || (!Growth::Complex(x) && !Growth::Arithmetic(x.type()))) return std::nullopt;
  const Ints extents = x.shape().dims();
  const Addressing a(g, extents);
  if (Product(a.dims) > g.most || a.dims.size() > 5) return std::nullopt;
  const size_t arrays = g.Chance(25) ? 2 : 1;
  Computation* f = g.module->AddComputation("combine");
  std::vector<Expr> operands, updates, old, fresh, results;
  for (size_t k = 0; k < arrays; ++k) {
    const PrimitiveType t = k == 0 ? x.type() : g.Chance(50) ? PrimitiveType::S32 : PrimitiveType::F32;
    operands.push_back(k == 0 ? g.Tame(x) : g.Fit(c, t, extents));
    updates.push_back(g.Fit(c, t, a.dims));
    old.emplace_back(f->AddParameter(static_cast<int64_t>(k), Shape::Scalar(t), "old"));
  }
  for (size_t k = 0; k < arrays; ++k) {
    const PrimitiveType t = operands[k].type();
    fresh.emplace_back(f->AddParameter(static_cast<int64_t>(arrays + k), Shape::Scalar(t), "new"));
    const Opcode op = IsIntegral(t) && g.Chance(20) ? Opcode::Xor : g.Reducer(t);
    results.push_back(g.Chance(50) ? Binary(op, old[k], fresh[k]) : Binary(op, fresh[k], old[k]));
  }
  f->set_root(TupleOf(results));
  Attributes attrs;
  attrs.update_window_dims = a.window_dims;
  attrs.inserted_window_dims = a.collapsed;
  attrs.scatter_dims_to_operand_dims = a.mapped;
  attrs.index_vector_dim = a.vector;
  attrs.to_apply = f;
  if (!a.batching.empty()) {
    attrs.input_batching_dims = a.batching;
    attrs.scatter_indices_batching_dims = a.indices_batching;
  }
  std::vector<Expr> all = operands;
  all.push_back(g.Fit(c, IndexType(g), a.indices));
  all.insert(all.end(), updates.begin(), updates.end());
  const std::optional<Expr> e = Inferred(c, Opcode::Scatter, all, attrs);
  if (!e) return std::nullopt;
  if (arrays == 1) return g.Folded(*e);
  if (g.Chance(40)) g.pool.push_back(g.Folded(PartOf(*e, 1)));
  return g.Folded(PartOf(*e, g.Between(0, 1)));
}

// By one key in either direction, by the size of it, and then by others.
Expr Ordered(Growth& g, const std::vector<std::pair<Expr, Expr>>& keys) {
  std::optional<Expr> before;
  for (size_t k = keys.size(); k-- > 0;) {
    auto [a, b] = keys[k];
    if (Growth::Complex(a)) {
      a = Unary(Opcode::Imag, a);
      b = Unary(Opcode::Imag, b);
    }
    if (IsSigned(a.type()) && g.Chance(25)) {
      a = Unary(Opcode::Abs, a);
      b = Unary(Opcode::Abs, b);
    } else if (Growth::Arithmetic(a.type()) && !IsUnsigned(a.type()) && g.Chance(20)) {
      a = -a;
      b = -b;
    } else if (IsIntegral(a.type()) && InfoOf(a.type()).bits >= 8 && g.Chance(20)) {
      a = Binary(Opcode::And, a, a.Like(1));
      b = Binary(Opcode::And, b, b.Like(1));
    }
    Expr first = CompareExpr(g.Chance(50) ? Direction::LT : Direction::GT, a, b);
    if (before && g.Chance(70))
      before = SelectExpr(a == b, *before, first);
    else
      before = first;
  }
  return *before;
}

std::optional<Expr> SortedAny(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0) return std::nullopt;
  const Ints dims = x.shape().dims();
  const int64_t operands = g.Between(1, 4);
  std::vector<Expr> in = {g.Tame(x)};
  for (int64_t k = 1; k < operands; ++k)
    in.push_back(g.Chance(20)   ? in[0]
                 : g.Chance(30) ? IotaOf(c, PrimitiveType::S32, dims, g.Between(0, x.shape().rank() - 1))
                                : g.Fit(c, g.AnyType(), dims));
  absl::c_shuffle(in, g.rng);
  Computation* order = g.module->AddComputation("order");
  std::vector<std::pair<Expr, Expr>> keys;
  for (int64_t k = 0; k < operands; ++k) {
    const Shape s = Shape::Scalar(in[static_cast<size_t>(k)].type());
    Expr a = order->AddParameter(2 * k, s, "a");
    keys.emplace_back(a, order->AddParameter(2 * k + 1, s, "b"));
  }
  std::vector<std::pair<Expr, Expr>> used = keys;
  absl::c_shuffle(used, g.rng);
  used.erase(used.begin() + g.Between(1, operands), used.end());
  order->set_root(Ordered(g, used).get());
  Attributes attrs;
  attrs.dimensions = Ints{g.Between(0, x.shape().rank() - 1)};
  attrs.to_apply = order;
  attrs.is_stable = true;
  const std::optional<Expr> e = Inferred(c, Opcode::Sort, in, attrs);
  if (!e) return std::nullopt;
  if (operands == 1) return g.Tame(*e);
  if (g.Chance(40)) g.pool.push_back(g.Tame(PartOf(*e, g.Between(0, operands - 1))));
  return g.Tame(PartOf(*e, g.Between(0, operands - 1)));
}

// The first of each row; no zero has a sign, which would be an order.
std::optional<Expr> Best(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0 || !Growth::Number(x)) return std::nullopt;
  x = g.Tame(x);
  if (IsFloat(x.type())) x = ConvertTo(x.type(), ConvertTo(PrimitiveType::S32, x));
  Attributes attrs;
  attrs.k = g.Between(0, std::min<int64_t>(x.shape().dims().back(), g.Chance(70) ? 9 : 1000));
  attrs.largest = g.Chance(60);
  if (!g.options.portable) attrs.is_stable = true;
  const std::optional<Expr> e = Inferred(c, Opcode::TopK, {x}, attrs);
  if (!e) return std::nullopt;
  if (g.Chance(50)) g.pool.push_back(PartOf(*e, 0));
  return g.Folded(PartOf(*e, g.Between(0, 1)));
}

}  // namespace

std::vector<Maker> PlaceMakers() {
  return {{5, GatherAny, true}, {5, ScatterAny, true}, {5, SortedAny, true}, {3, Best}};
}

}  // namespace kiln
