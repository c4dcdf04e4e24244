// Random products in every form: several batch and contracting dimensions in any order, ragged ones, convolutions of
// any dimension numbers, and windows over several arrays. Sums are whole numbers that their type holds exactly.
#include <algorithm>
#include <numeric>

#include "absl/algorithm/container.h"
#include "tests/random/growth.h"

namespace kiln {
namespace {

struct Types {
  PrimitiveType in, out;
};

Types AnyTypes(Growth& g) {
  using enum PrimitiveType;
  constexpr Types all[] = {{F32, F32},   {F32, F32}, {F32, F32},  {F64, F64},    {C64, C64}, {C64, C64},
                           {C128, C128}, {S32, S32}, {S8, S32},   {U8, S32},     {S64, S64}, {U64, U64},
                           {BF16, F32},  {F16, F32}, {BF16, F32}, {BF16, BF16},  {F16, F16}, {F8E4M3FN, F32},
                           {S4, S32},    {U4, S32},  {U32, U32},  {F8E5M2, F32}, {S16, S32}, {Pred, S32}};
  return all[g.Pick(std::size(all))];
}

// Sums of more products than this round in the result.
int64_t MostSummed(Types t) { return t.out == PrimitiveType::BF16 ? 15 : t.out == PrimitiveType::F16 ? 120 : 100000; }

Ints Extents(Growth& g, int64_t low, int64_t high, int64_t extent) {
  Ints out(static_cast<size_t>(g.Between(low, high)));
  for (int64_t& d : out) d = g.Chance(3) ? 0 : g.Between(1, extent);
  return out;
}

// The extents of one side in a random order; `at` gets the places of the first, then of the second list.
Ints Arranged(Growth& g, const std::vector<Ints>& parts, std::vector<Ints>* at) {
  Ints dims;
  for (const Ints& p : parts) dims.insert(dims.end(), p.begin(), p.end());
  Ints order(dims.size()), out(dims.size());
  std::iota(order.begin(), order.end(), 0);
  if (g.Chance(70)) std::shuffle(order.begin(), order.end(), g.rng);
  size_t next = 0;
  at->clear();
  for (const Ints& p : parts) {
    at->emplace_back();
    for (size_t k = 0; k < p.size(); ++k, ++next) {
      at->back().push_back(order[next]);
      out[static_cast<size_t>(order[next])] = dims[next];
    }
  }
  return out;
}

// Operands as they come, sometimes transposed copies of others.
Expr Operand(Growth& g, Computation* c, PrimitiveType t, const Ints& dims) {
  if (dims.size() < 2 || g.Chance(70)) return g.Fit(c, t, dims);
  Ints order(dims.size()), before(dims.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), g.rng);
  for (size_t d = 0; d < dims.size(); ++d) before[static_cast<size_t>(order[d])] = dims[d];
  return TransposeBy(g.Fit(c, t, before), order);
}

std::optional<Expr> Multiplied(Growth& g, Computation* c, Expr) {
  const Types t = AnyTypes(g);
  Ints batch = Extents(g, 0, 2, 3), summed = Extents(g, 0, 2, 6), left = Extents(g, 0, 2, 6),
       right = Extents(g, 0, 2, 6);
  if (g.Chance(50)) batch.clear();
  if (g.most > 600 && g.Chance(60)) {
    summed = {g.Between(1, 300)};
    left = {g.Between(1, 150)};
    right = {g.Between(1, 150)};
  }
  if (Product(summed) > MostSummed(t)) summed = {MostSummed(t)};
  const int64_t out = Product(batch) * Product(left) * Product(right);
  if (out > g.most || out * Product(summed) > 150 * g.most) return std::nullopt;
  std::vector<Ints> l, r;
  const Ints ldims = Arranged(g, {batch, summed, left}, &l), rdims = Arranged(g, {batch, summed, right}, &r);
  if (Product(ldims) > 2 * g.most || Product(rdims) > 2 * g.most) return std::nullopt;
  Expr a = Operand(g, c, t.in, ldims);
  Expr b = ldims == rdims && g.Chance(30) ? a : Operand(g, c, t.in, rdims);
  Attributes attrs;
  attrs.lhs_batch_dims = l[0];
  attrs.lhs_contracting_dims = l[1];
  attrs.rhs_batch_dims = r[0];
  attrs.rhs_contracting_dims = r[1];
  Ints dims = batch;
  // The free dimensions of each side in the order in which they stand there.
  for (auto [given, free] : {std::pair(&ldims, l[2]), std::pair(&rdims, r[2])}) {
    absl::c_sort(free);
    for (int64_t d : free) dims.push_back((*given)[d]);
  }
  const std::optional<Expr> e = Inferred(c, Opcode::Dot, {a, b}, attrs, Shape::Array(t.out, dims));
  return e ? std::optional(g.Folded(*e)) : std::nullopt;
}

std::optional<Expr> Ragged(Growth& g, Computation* c, Expr) {
  if (g.options.portable) return std::nullopt;
  const PrimitiveType types[] = {PrimitiveType::F32, PrimitiveType::F64, PrimitiveType::S32, PrimitiveType::BF16};
  const PrimitiveType t = types[g.Pick(4)];
  const int64_t groups = g.Between(1, 4), m = g.Between(1, 12), k = g.Between(1, 6), n = g.Between(1, 8);
  const bool contracted = g.Chance(40);
  const PrimitiveType out = t == PrimitiveType::BF16 ? PrimitiveType::F32 : t;
  Expr sizes = g.Fit(c, PrimitiveType::S32, {groups});
  sizes = Binary(Opcode::Maximum, sizes, sizes.Like(0));
  Attributes attrs;
  attrs.lhs_contracting_dims = Ints{contracted ? 0 : 1};
  attrs.rhs_contracting_dims = Ints{contracted ? 0 : 1};
  attrs.lhs_ragged_dims = Ints{0};
  if (!contracted) attrs.rhs_group_dims = Ints{0};
  Expr a = g.Fit(c, t, {m, k}), b = g.Fit(c, t, contracted ? Ints{m, n} : Ints{groups, k, n});
  const Ints dims = contracted ? Ints{groups, k, n} : Ints{m, n};
  const std::optional<Expr> e = Inferred(c, Opcode::RaggedDot, {a, b, sizes}, attrs, Shape::Array(out, dims));
  return e ? std::optional(g.Folded(*e)) : std::nullopt;
}

ConvDimensionNumbers AnyLabels(Growth& g, int64_t spatial) {
  Ints order(static_cast<size_t>(spatial + 2));
  const auto deal = [&](int64_t* first, int64_t* second, Ints* rest) {
    std::iota(order.begin(), order.end(), 0);
    if (g.Chance(75)) std::shuffle(order.begin(), order.end(), g.rng);
    *first = order[0];
    *second = order[1];
    rest->assign(order.begin() + 2, order.end());
  };
  ConvDimensionNumbers d;
  deal(&d.input_batch, &d.input_feature, &d.input_spatial);
  deal(&d.kernel_output, &d.kernel_input, &d.kernel_spatial);
  deal(&d.output_batch, &d.output_feature, &d.output_spatial);
  return d;
}

std::optional<Expr> ConvolvedAny(Growth& g, Computation* c, Expr) {
  const Types t = AnyTypes(g);
  if (t.in == PrimitiveType::Pred) return std::nullopt;
  const int64_t spatial = g.Chance(10) ? 0 : g.Between(1, 3);
  const int64_t groups = g.Chance(35) ? g.Between(2, 4) : 1;
  const bool by_batch = groups > 1 && g.Chance(30);
  const int64_t feature_groups = by_batch ? 1 : groups, batch_groups = by_batch ? groups : 1;
  const int64_t batch = batch_groups * g.Between(1, 3), in = g.Chance(40) ? 1 : g.Between(1, 4),
                out = groups * (g.Chance(30) ? 1 : g.Between(1, 4));
  const ConvDimensionNumbers d = AnyLabels(g, spatial);
  attr::Win window;
  Ints x(static_cast<size_t>(spatial + 2)), k(x.size());
  x[d.input_batch] = batch;
  x[d.input_feature] = in * feature_groups;
  k[d.kernel_input] = in;
  k[d.kernel_output] = out;
  for (size_t s = 0; s < static_cast<size_t>(spatial); ++s) {
    WindowDim w;
    w.size = k[d.kernel_spatial[s]] = g.Between(1, 3);
    x[d.input_spatial[s]] = g.most > 600 && s == 0 ? g.Between(3, 40) : g.Between(1, 7);
    if (g.Chance(40)) w.stride = g.Between(1, 3);
    if (g.Chance(50)) w.pad_low = g.Between(-2, 3);
    if (g.Chance(50)) w.pad_high = g.Between(-2, 3);
    if (g.Chance(20)) w.lhs_dilate = g.Between(2, 3);
    if (g.Chance(20)) w.rhs_dilate = g.Between(2, 3);
    w.reversed = g.Chance(25);
    window.push_back(w);
  }
  if (Product(x) > g.most || Product(k) / out > MostSummed(t)) return std::nullopt;
  Attributes attrs;
  attrs.window = window;
  attrs.dim_labels = d;
  if (feature_groups > 1) attrs.feature_group_count = feature_groups;
  if (batch_groups > 1) attrs.batch_group_count = batch_groups;
  Expr input = Operand(g, c, t.in, x), kernel = Operand(g, c, t.in, k);
  std::optional<Expr> e = Inferred(c, Opcode::Convolution, {input, kernel}, attrs);
  if (!e || e->shape().ElementCount() > g.most) return std::nullopt;
  e->get()->mutable_shape().set_type(t.out);
  return g.Folded(*e);
}

attr::Win AnyWindow(Growth& g, const Ints& dims) {
  attr::Win window;
  for (int64_t d : dims) {
    WindowDim w;
    if (g.Chance(60)) {
      w.size = d > 40 && g.Chance(30) ? g.Between(1, 30) : g.Between(1, 4);
      w.stride = g.Chance(50) ? 1 : g.Between(1, 4);
      w.pad_low = g.Between(-2, 3);
      w.pad_high = g.Between(-2, 3);
      // As a running sum.
      if (d < 60 && d > 0 && g.Chance(15)) w = {.size = d, .pad_low = d - 1};
      w.lhs_dilate = g.Chance(20) ? g.Between(2, 3) : 1;
      w.rhs_dilate = g.Chance(20) ? g.Between(2, 3) : 1;
    }
    window.push_back(w);
  }
  return window;
}

// Windows over two arrays: the largest element and where it is, or two sums.
std::optional<Expr> WindowPairs(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0 || (Growth::Complex(x) ? false : !Growth::Arithmetic(x.type()))) return std::nullopt;
  const PrimitiveType t = x.type(), u = g.Chance(50) ? PrimitiveType::S32 : t;
  const bool sums = Growth::Complex(x) || g.Chance(40);
  if (sums && Growth::Narrow(t)) return std::nullopt;
  Computation* f = g.module->AddComputation("pairs");
  Expr a = f->AddParameter(0, Shape::Scalar(t), "a"), i = f->AddParameter(1, Shape::Scalar(u), "i"),
       b = f->AddParameter(2, Shape::Scalar(t), "b"), j = f->AddParameter(3, Shape::Scalar(u), "j");
  if (sums) {
    f->set_root(TupleOf({a + b, i + j}));
  } else {
    Expr first = CompareExpr(Direction::GT, a, b) | ((a == b) & CompareExpr(Direction::LE, i, j));
    f->set_root(TupleOf({SelectExpr(first, a, b), SelectExpr(first, i, j)}));
  }
  Attributes attrs;
  attrs.window = AnyWindow(g, x.shape().dims());
  attrs.to_apply = f;
  Expr second = g.Fit(c, u, x.shape().dims());
  Expr low = c->AddConstant(Literal::Of(t, sums ? 0 : Growth::Neutral(Opcode::Maximum, t))),
       none = c->AddConstant(Literal::Of(u, sums ? 0 : Growth::Neutral(Opcode::Minimum, u)));
  const std::optional<Expr> e = Inferred(c, Opcode::ReduceWindow, {g.Tame(x), second, low, none}, attrs);
  if (!e || e->shape().tuple()[0].ElementCount() > g.most) return std::nullopt;
  if (g.Chance(30)) g.pool.push_back(g.Folded(PartOf(*e, 0)));
  return g.Folded(PartOf(*e, g.Between(0, 1)));
}

// One array, windows of any form.
std::optional<Expr> WindowOf(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0) return std::nullopt;
  const Opcode op = g.Reducer(x.type());
  Attributes attrs;
  attrs.window = AnyWindow(g, x.shape().dims());
  attrs.to_apply = ScalarFunction(g.module, op, x.type());
  Expr init = c->AddConstant(Literal::Of(x.type(), Growth::Neutral(op, x.type())));
  const std::optional<Expr> e = Inferred(c, Opcode::ReduceWindow, {g.Tame(x), init}, attrs);
  if (!e || e->shape().ElementCount() > g.most) return std::nullopt;
  return op == Opcode::Add ? g.Folded(*e) : g.Tame(*e);
}

}  // namespace

std::vector<Maker> ContractionMakers() {
  return {
      {7, Multiplied, true}, {2, Ragged, true}, {6, ConvolvedAny, true}, {4, WindowPairs, true}, {3, WindowOf, true}};
}

}  // namespace kiln
