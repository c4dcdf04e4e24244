// Random operations of their own kind: normalisations, other numbers from the same bits, rounding to fewer bits.
#include <algorithm>
#include <bit>

#include "tests/random/growth.h"

namespace kiln {
namespace {

// Of f32 and f64, whose errors stay far below what rounds to another number.
std::optional<Expr> Normalised(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0 || x.shape().ElementCount() == 0) return std::nullopt;
  const PrimitiveType t = g.Chance(70) ? PrimitiveType::F32 : PrimitiveType::F64;
  x = Growth::As(t, g.Tame(x));
  const Ints dims = x.shape().dims();
  Attributes attrs;
  attrs.feature_index = g.Between(0, x.shape().rank() - 1);
  attrs.epsilon = 1;
  const Ints one = {dims[static_cast<size_t>(*attrs.feature_index)]};
  const auto positive = [&] { return Unary(Opcode::Abs, g.Fit(c, t, one)); };
  Expr scale = g.Fit(c, t, one);
  switch (g.Pick(3)) {
    case 0: {
      const std::optional<Expr> e = Inferred(c, Opcode::BatchNormTraining, {x, scale, g.Fit(c, t, one)}, attrs);
      if (!e) return std::nullopt;
      if (g.Chance(50)) g.pool.push_back(g.Rounded(PartOf(*e, g.Between(1, 2))));
      return g.Rounded(PartOf(*e, g.Between(0, 2)));
    }
    case 1: {
      Expr offset = g.Fit(c, t, one), mean = g.Fit(c, t, one);
      const std::optional<Expr> e =
          Inferred(c, Opcode::BatchNormInference, {x, scale, offset, mean, positive()}, attrs);
      return e ? std::optional(g.Rounded(*e)) : std::nullopt;
    }
    default: {
      Expr mean = g.Fit(c, t, one), variance = positive(), gradient = g.Fit(c, t, dims);
      const std::optional<Expr> e = Inferred(c, Opcode::BatchNormGrad, {x, scale, mean, variance, gradient}, attrs);
      if (!e) return std::nullopt;
      if (g.Chance(50)) g.pool.push_back(g.Rounded(PartOf(*e, g.Between(1, 2))));
      return g.Rounded(PartOf(*e, g.Between(0, 2)));
    }
  }
}

// Floats of any bits may be anything: whole numbers of them that are small.
Expr Sane(Growth& g, Expr e) {
  if (Growth::Complex(e)) {
    Expr re = Sane(g, Unary(Opcode::Real, e)), im = Sane(g, Unary(Opcode::Imag, e));
    return e.computation()->Add(Opcode::Complex, e.shape(), {re.get(), im.get()});
  }
  if (!IsFloat(e.type())) return g.Tame(e);
  return Unary(Opcode::Floor, g.Tame(SelectExpr(Unary(Opcode::IsFinite, e), e, e.Like(1))));
}

std::optional<Expr> Reinterpreted(Growth& g, Computation* c, Expr x) {
  const int64_t bits = InfoOf(x.type()).bits;
  if (!Growth::Number(x) || bits < 8) return std::nullopt;
  const PrimitiveType t = g.AnyType();
  const int64_t to = InfoOf(t).bits;
  if (to < 8 || IsComplex(t)) return std::nullopt;
  if (IsIntegral(x.type()) && g.Chance(60)) x = x * x.Like(0x31);  // more than the lowest bits
  Ints dims = x.shape().dims();
  if (to < bits) {
    dims.push_back(bits / to);
  } else if (to > bits) {
    const int64_t parts = to / bits;
    if (dims.empty() || dims.back() % parts != 0) return std::nullopt;
    dims.back() /= parts;
    Ints split = dims;
    split.push_back(parts);
    x = ReshapeTo(x, split);
  }
  if (Product(dims) > g.most) return std::nullopt;
  const std::optional<Expr> e = Inferred(c, Opcode::BitcastConvert, {x}, {}, Shape::Array(t, dims));
  return e ? std::optional(Sane(g, *e)) : std::nullopt;
}

std::optional<Expr> LessPrecise(Growth& g, Computation* c, Expr x) {
  if (!IsFloat(x.type()) || Growth::Tiny(x.type())) return std::nullopt;
  Attributes attrs;
  attrs.exponent_bits = g.Between(2, InfoOf(x.type()).exponent_bits);
  attrs.mantissa_bits = g.Between(0, InfoOf(x.type()).mantissa_bits);
  if (g.Chance(50)) x = x * 2.5;
  return Sane(g, *Inferred(c, Opcode::ReducePrecision, {x}, attrs));
}

// Fractions rounded by given random bits.
std::optional<Expr> Stochastic(Growth& g, Computation* c, Expr x) {
  if (!IsFloat(x.type()) || Growth::Tiny(x.type())) return std::nullopt;
  using enum PrimitiveType;
  const int bits = InfoOf(x.type()).bits;
  const PrimitiveType random = bits == 64 ? U64 : bits == 32 ? U32 : U16, to[] = {S32, S8, S16, BF16, F16, F8E5M2};
  const PrimitiveType t = to[g.Pick(std::size(to) - (g.options.portable ? 1 : 0))];
  if (InfoOf(t).bits > bits || t == x.type()) return std::nullopt;
  Expr r = g.Fit(c, random, x.shape().dims());
  r = r * r.Like(bits == 16 ? 16381 : 1073741789.0);
  const std::optional<Expr> e =
      Inferred(c, Opcode::StochasticConvert, {g.Tame(x) * 0.3125, r}, {}, Shape::Array(t, x.shape().dims()));
  return e ? std::optional(Sane(g, *e)) : std::nullopt;
}

std::optional<Expr> HighHalf(Growth& g, Computation* c, Expr x) {
  const int bits = InfoOf(x.type()).bits;
  if (!IsIntegral(x.type()) || bits < 8 || g.options.portable) return std::nullopt;
  // A number that reaches into the upper half.
  const double wide = std::min<double>(static_cast<double>(int64_t{1} << (bits - 3)) + 5, 1e15);
  return g.Folded(Binary(Opcode::Mulhi, x * wide, g.Fit(c, x.type(), x.shape().dims()) * wide));
}

std::optional<Expr> Finite(Growth& g, Computation* c, Expr x) {
  if (!IsFloat(x.type()) || Growth::Tiny(x.type())) return std::nullopt;
  return Unary(Opcode::IsFinite, x / g.Fit(c, x.type(), x.shape().dims()));
}

std::optional<Expr> Counted(Growth& g, Computation* c, Expr) {
  const Ints dims = g.AnyDims();
  const PrimitiveType t = g.AnyType();
  if (dims.empty() || t == PrimitiveType::Pred) return std::nullopt;
  return g.Tame(IotaOf(c, t, dims, g.Between(0, static_cast<int64_t>(dims.size()) - 1)));
}

// Whole numbers divided, rounded each way, and bounds that are arrays.
std::optional<Expr> Divided(Growth& g, Computation* c, Expr x) {
  const Ints dims = x.shape().dims();
  if (Growth::Complex(x)) {
    Expr y = g.Fit(c, x.type(), dims);
    return g.Rounded(g.Tame(x) / SelectExpr(y == 0.0, y.Like(1), y));
  }
  if (!Growth::Arithmetic(x.type())) return std::nullopt;
  Expr y = g.Fit(c, x.type(), dims);
  if (g.Chance(30)) {
    const Opcode clamp = Opcode::Clamp;
    Expr low = Binary(Opcode::Minimum, y, y.Like(1)), high = Binary(Opcode::Maximum, y, y.Like(2));
    return g.Tame(c->Add(clamp, Shape::Array(x.type(), dims), {low.get(), g.Tame(x).get(), high.get()}));
  }
  if (IsIntegral(x.type())) return g.Folded(Binary(g.Chance(50) ? Opcode::Divide : Opcode::Remainder, x, y));
  const Opcode rounds[] = {Opcode::Floor, Opcode::Ceil, Opcode::RoundNearestEven, Opcode::RoundNearestAfz};
  return g.Folded(Unary(rounds[g.Pick(4)], g.Tame(x) / SelectExpr(y == 0.0, y.Like(2), y)));
}

// One only, of the whole program: the order of several is not said.
std::optional<Expr> State(Growth& g, Computation* c, Expr) {
  if (g.stateful || g.depth > 0 || g.options.devices > 1 || g.options.portable) return std::nullopt;
  g.stateful = true;
  Attributes attrs;
  attrs.delta = g.Between(1, 5);
  const std::optional<Expr> e =
      Inferred(c, Opcode::RngGetAndUpdateState, {}, attrs, Shape::Array(PrimitiveType::U64, {2}));
  return e ? std::optional(g.Folded(*e)) : std::nullopt;
}

}  // namespace

std::vector<Maker> SpecialMakers() {
  return {{3, Normalised, true}, {3, Reinterpreted}, {2, LessPrecise},   {2, Stochastic}, {2, HighHalf},
          {1, Finite},           {2, Counted, true}, {3, Divided, true}, {1, State, true}};
}

}  // namespace kiln
