// Random operations that are algorithms: transforms, linear algebra, random bits, windows that scatter, complex
// numbers. What rounds on the way is rounded to the integers that it stands for.
#include "tests/random/growth.h"

namespace kiln {
namespace {

Expr Rounded(Growth& g, Expr e) { return g.Tame(Unary(Opcode::RoundNearestEven, e)); }

// The real part of a transform along rows of 2 or 4, whose roots of one are integers.
std::optional<Expr> Transformed(Growth& g, Computation* c, Expr) {
  const Ints dims = {g.Between(1, 8), g.Chance(50) ? 2 : 4};
  const Shape complex = Shape::Array(PrimitiveType::C64, dims);
  Instruction* i =
      c->Add(Opcode::Fft, complex, {ConvertTo(PrimitiveType::C64, g.Fit(c, PrimitiveType::F32, dims)).get()});
  i->mutable_attrs().fft_type = FftType::FFT;
  i->mutable_attrs().fft_length = Ints{dims[1]};
  return Rounded(g, Expr(c->Add(Opcode::Real, Shape::Array(PrimitiveType::F32, dims), {i})));
}

std::optional<Expr> ComplexProduct(Growth& g, Computation* c, Expr x) {
  if (!Growth::Number(x)) return std::nullopt;
  const Ints dims = x.shape().dims();
  const Shape part = Shape::Array(PrimitiveType::F32, dims), whole = Shape::Array(PrimitiveType::C64, dims);
  const auto complex = [&] {
    return Expr(c->Add(Opcode::Complex, whole,
                       {ConvertTo(PrimitiveType::F32, g.Tame(x)).get(), g.Fit(c, PrimitiveType::F32, dims).get()}));
  };
  return g.Tame(Expr(c->Add(g.Chance(50) ? Opcode::Real : Opcode::Imag, part, {(complex() * complex()).get()})));
}

// The triangle of small integers with ones on its diagonal.
Expr UnitTriangle(Growth& g, Computation* c, int64_t batch, int64_t n) {
  const Ints dims = {batch, n, n};
  Expr row = IotaOf(c, PrimitiveType::S32, dims, 1), column = IotaOf(c, PrimitiveType::S32, dims, 2);
  Expr x = g.Fit(c, PrimitiveType::F32, dims);
  return SelectExpr(CompareExpr(Direction::GT, row, column), x,
                    SelectExpr(CompareExpr(Direction::EQ, row, column), x.Like(1), x.Like(0)));
}

std::optional<Expr> Solved(Growth& g, Computation* c, Expr) {
  const int64_t batch = g.Between(1, 4), n = g.Between(1, 4), columns = g.Between(1, 5);
  Expr a = UnitTriangle(g, c, batch, n), b = g.Fit(c, PrimitiveType::F32, {batch, n, columns});
  Instruction* i = c->Add(Opcode::TriangularSolve, b.shape(), {a.get(), b.get()});
  i->mutable_attrs().left_side = true;
  i->mutable_attrs().lower = true;
  i->mutable_attrs().unit_diagonal = true;
  i->mutable_attrs().transpose_a = TransposeA::NO_TRANSPOSE;
  return Rounded(g, i);
}

std::optional<Expr> Factored(Growth& g, Computation* c, Expr) {
  const int64_t batch = g.Between(1, 4), n = g.Between(1, 4);
  Expr l = UnitTriangle(g, c, batch, n);
  Instruction* i = c->Add(Opcode::Cholesky, l.shape(), {DotOf(l, TransposeBy(l, {0, 2, 1}), 1, 2, 1).get()});
  i->mutable_attrs().lower = true;
  // What lies above the diagonal is anything.
  const Ints dims = l.shape().dims();
  Expr row = IotaOf(c, PrimitiveType::S32, dims, 1), column = IotaOf(c, PrimitiveType::S32, dims, 2);
  return Rounded(g, SelectExpr(CompareExpr(Direction::GE, row, column), Expr(i), Expr(i).Like(0)));
}

// Every replica and every part of an array draws from one state.
std::optional<Expr> Drawn(Growth& g, Computation* c, Expr) {
  const Shape state = Shape::Array(PrimitiveType::U64, {2}), bits = Shape::Array(PrimitiveType::U32, g.AnyDims());
  Instruction* i =
      c->Add(Opcode::RngBitGenerator, Shape::Tuple({state, bits}), {g.Fit(c, PrimitiveType::U64, {2}).get()});
  i->mutable_attrs().algorithm = attr::Raw(g.Chance(50) ? "rng_three_fry" : "rng_philox");
  return g.Tame(PartOf(i, 1));
}

std::optional<Expr> Scattered(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0 || !Growth::Arithmetic(x.type()) || Growth::Narrow(x.type())) return std::nullopt;
  attr::Win window;
  Ints dims;
  for (int64_t d : x.shape().dims()) {
    WindowDim w;
    w.size = std::min<int64_t>(g.Between(1, 3), d);
    w.stride = g.Between(1, 3);
    if (w.size < 1) return std::nullopt;
    dims.push_back((d - w.size) / w.stride + 1);
    window.push_back(w);
  }
  Computation* larger = g.module->AddComputation("larger");
  Expr a = larger->AddParameter(0, Shape::Scalar(x.type()), "a"),
       b = larger->AddParameter(1, Shape::Scalar(x.type()), "b");
  larger->set_root(CompareExpr(Direction::GE, a, b).get());
  Expr source = g.Fit(c, x.type(), dims);
  Instruction* i = c->Add(Opcode::SelectAndScatter, Shape::Array(x.type(), x.shape().dims()),
                          {g.Tame(x).get(), source.get(), c->AddConstant(Literal::Of(x.type(), 0))});
  i->mutable_attrs().window = window;
  i->mutable_attrs().select = larger;
  i->mutable_attrs().scatter = ScalarFunction(g.module, Opcode::Add, x.type());
  return g.Tame(i);
}

// Functions of two pairs: the greatest and how often it occurs, sums and squares; where order is kept sums since a
// flag, which do not commute, and one that is not associative.
Computation* PairReducer(Growth& g, PrimitiveType t) {
  Computation* f = g.module->AddComputation("pairs");
  const Shape one = Shape::Scalar(t);
  Expr a = f->AddParameter(0, one, "a"), b = f->AddParameter(1, one, "b"), c = f->AddParameter(2, one, "c"),
       d = f->AddParameter(3, one, "d");
  switch (g.Pick(g.options.ordered ? 4 : 2)) {
    case 0: {
      Expr m = Binary(Opcode::Maximum, a, c);
      Expr left = SelectExpr(a == m, b, b.Like(0)), right = SelectExpr(c == m, d, d.Like(0));
      f->set_root(TupleOf({m, left + right}));
      break;
    }
    case 1:
      f->set_root(TupleOf({a + c, b + d + a * c}));
      break;
    case 2: {
      Expr starts = CompareExpr(Direction::NE, c, c.Like(0));
      f->set_root(TupleOf({SelectExpr(starts, c, a), SelectExpr(starts, d, b + d)}));
      break;
    }
    default:
      f->set_root(TupleOf({a - c, Binary(Opcode::Minimum, b + d, b.Like(9))}));
  }
  return f;
}

std::optional<Expr> ReducePairs(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0 || !Growth::Number(x)) return std::nullopt;
  const PrimitiveType t = g.Chance(50) ? PrimitiveType::F32 : PrimitiveType::S32;
  Ints reduced, rest;
  for (int64_t d = 0; d < x.shape().rank(); ++d) (g.Chance(60) ? reduced : rest).push_back(d);
  // XLA takes the initial value for neutral, and so such a reduction for none.
  if (reduced.empty() && g.options.portable) return std::nullopt;
  Ints dims;
  for (int64_t d : rest) dims.push_back(x.shape().dim(d));
  Expr first = ConvertTo(t, g.Tame(x)), second = g.Fit(c, t, x.shape().dims());
  Expr i = c->AddConstant(Literal::Of(t, g.options.ordered && g.Chance(50) ? -5 : 0)),
       j = c->AddConstant(Literal::Of(t, 0));
  const Shape part = Shape::Array(t, dims);
  Instruction* r = c->Add(Opcode::Reduce, Shape::Tuple({part, part}), {first.get(), second.get(), i.get(), j.get()});
  r->mutable_attrs().dimensions = reduced;
  r->mutable_attrs().to_apply = PairReducer(g, t);
  return g.Tame(PartOf(r, g.Between(0, 1)));
}

}  // namespace

std::vector<Maker> LibraryMakers() {
  return {{4, Transformed}, {4, ComplexProduct}, {4, Solved},     {4, Factored},
          {4, Drawn},       {4, Scattered},      {6, ReducePairs}};
}

}  // namespace kiln
