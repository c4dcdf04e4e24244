// Random operations that combine elements: reductions, windows, products, sorts, scans.
#include <algorithm>

#include "tests/random/growth.h"

namespace kiln {
namespace {

std::optional<Expr> ReduceSome(Growth& g, Computation* c, Expr x) {
  Ints reduced;
  for (int64_t d = 0; d < x.shape().rank(); ++d)
    if (g.Chance(50)) reduced.push_back(d);
  const Opcode op = g.Reducer(x.type());
  Expr init = c->AddConstant(Literal::Of(x.type(), Growth::Neutral(op, x.type())));
  return g.Tame(ReduceOf(g.Tame(x), init, reduced, ScalarFunction(g.module, op, x.type())));
}

// The largest element and where it is: a reduction of two arrays.
std::optional<Expr> ReducePair(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0 || !Growth::Number(x)) return std::nullopt;
  const int64_t along = g.Between(0, x.shape().rank() - 1);
  const Shape value = Shape::Scalar(x.type()), place = Shape::Scalar(PrimitiveType::S32);
  Computation* f = g.module->AddComputation("larger");
  Expr a = f->AddParameter(0, value, "a"), i = f->AddParameter(1, place, "i"), b = f->AddParameter(2, value, "b"),
       j = f->AddParameter(3, place, "j");
  Expr first = Binary(Opcode::Or, CompareExpr(Direction::GT, a, b),
                      Binary(Opcode::And, CompareExpr(Direction::EQ, a, b), CompareExpr(Direction::LE, i, j)));
  f->set_root(TupleOf({SelectExpr(first, a, b), SelectExpr(first, i, j)}));
  Ints dims = x.shape().dims();
  Expr places = IotaOf(c, PrimitiveType::S32, dims, along);
  dims.erase(dims.begin() + along);
  Instruction* low = c->AddConstant(Literal::Of(x.type(), Growth::Neutral(Opcode::Maximum, x.type())));
  Instruction* none = IntegerIn(c, PrimitiveType::S32, 1 << 20).get();
  const std::vector<Shape> parts = {Shape::Array(x.type(), dims), Shape::Array(PrimitiveType::S32, dims)};
  Instruction* r = c->Add(Opcode::Reduce, Shape::Tuple(parts), {g.Tame(x).get(), places.get(), low, none});
  r->mutable_attrs().dimensions = Ints{along};
  r->mutable_attrs().to_apply = f;
  return g.Tame(PartOf(r, g.Between(0, 1)));
}

// A window that slides, with every attribute that it has.
std::optional<Expr> ReduceWindows(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0) return std::nullopt;
  attr::Win window;
  Ints dims;
  for (int64_t d : x.shape().dims()) {
    WindowDim w;
    if (g.Chance(60)) {
      w.size = g.Between(1, 3);
      w.stride = g.Between(1, 3);
      w.pad_low = g.Between(-1, 2);
      w.pad_high = g.Between(-1, 2);
      w.lhs_dilate = g.Chance(20) ? 2 : 1;
      w.rhs_dilate = g.Chance(20) ? 2 : 1;
    }
    const int64_t dilated = d ? (d - 1) * w.lhs_dilate + 1 : 0, room = dilated + w.pad_low + w.pad_high;
    if (room < w.DilatedSize()) return std::nullopt;
    dims.push_back((room - w.DilatedSize()) / w.stride + 1);
    window.push_back(w);
  }
  if (Product(dims) > g.most) return std::nullopt;
  const Opcode op = g.Reducer(x.type());
  Instruction* init = c->AddConstant(Literal::Of(x.type(), Growth::Neutral(op, x.type())));
  Instruction* i = c->Add(Opcode::ReduceWindow, Shape::Array(x.type(), dims), {g.Tame(x).get(), init});
  i->mutable_attrs().window = window;
  i->mutable_attrs().to_apply = ScalarFunction(g.module, op, x.type());
  return g.Tame(i);
}

PrimitiveType Exact(Expr x) {
  return (Growth::Number(x) || Growth::Complex(x)) && !Growth::Narrow(x.type()) && InfoOf(x.type()).bits >= 32
             ? x.type()
             : PrimitiveType::F32;
}

std::optional<Expr> Product2(Growth& g, Computation* c, Expr x) {  // [b, m, k] x [b, k, n]
  const PrimitiveType t = Exact(x);
  const int64_t batch = g.Chance(30) ? g.Between(1, 3) : 0, m = g.Between(1, 9), k = g.Chance(4) ? 0 : g.Between(1, 9),
                n = g.Between(1, 20);
  Ints left = {m, k}, right = {k, n};
  if (batch) {
    left.insert(left.begin(), batch);
    right.insert(right.begin(), batch);
  }
  const int64_t first = batch ? 1 : 0;
  Expr a = g.Fit(c, t, left);
  Expr b = g.Chance(20) && left == right ? a : g.Fit(c, t, right);
  return g.Tame(DotOf(a, b, first, first + 1, first));
}

std::optional<Expr> Convolved(Growth& g, Computation* c, Expr x) {
  const PrimitiveType t = Growth::Number(x) && IsFloat(x.type()) ? Exact(x) : PrimitiveType::F32;
  const int64_t groups = g.Chance(25) ? 2 : 1, batch = g.Between(1, 2), in = groups * g.Between(1, 2),
                out = groups * g.Between(1, 3), extent = g.Between(3, 7), size = g.Between(1, 3);
  WindowDim w;
  w.size = size;
  w.stride = g.Between(1, 2);
  w.pad_low = g.Between(-1, 2);
  w.pad_high = g.Between(-1, 2);
  w.lhs_dilate = g.Chance(25) ? 2 : 1;
  w.rhs_dilate = g.Chance(25) ? 2 : 1;
  w.reversed = g.Chance(25);
  const int64_t room = (extent - 1) * w.lhs_dilate + 1 + w.pad_low + w.pad_high;
  if (room < w.DilatedSize()) return std::nullopt;
  const Ints dims = {batch, out, (room - w.DilatedSize()) / w.stride + 1};
  Instruction* i = c->Add(Opcode::Convolution, Shape::Array(t, dims),
                          {g.Fit(c, t, {batch, in, extent}).get(), g.Fit(c, t, {out, in / groups, size}).get()});
  i->mutable_attrs().window = attr::Win{w};
  i->mutable_attrs().dim_labels = *ParseConvDims("bf0_oi0->bf0");
  if (groups > 1) i->mutable_attrs().feature_group_count = groups;
  return g.Tame(i);
}

// One array, or several that move together.
std::optional<Expr> Sorted(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0 || !Growth::Number(x)) return std::nullopt;
  x = g.Tame(x);
  const Ints dims = x.shape().dims();
  const int64_t operands = g.Between(1, 3);
  std::vector<Instruction*> in = {x.get()};
  for (int64_t k = 1; k < operands; ++k) in.push_back(g.Fit(c, g.AnyType(), dims).get());
  Computation* order = g.module->AddComputation("order");
  std::vector<Expr> keys;
  std::vector<Shape> shapes;
  for (int64_t k = 0; k < operands; ++k) {
    shapes.push_back(Shape::Array(in[k]->shape().type(), dims));
    for (int64_t q = 0; q < 2; ++q)
      keys.emplace_back(order->AddParameter(2 * k + q, Shape::Scalar(shapes.back().type()), "key"));
  }
  order->set_root(CompareExpr(g.Chance(50) ? Direction::LT : Direction::GT, keys[0], keys[1]).get());
  Instruction* i = c->Add(Opcode::Sort, operands == 1 ? shapes[0] : Shape::Tuple(shapes), in);
  i->mutable_attrs().dimensions = Ints{g.Between(0, x.shape().rank() - 1)};
  i->mutable_attrs().to_apply = order;
  if (operands > 1) i->mutable_attrs().is_stable = true;                           // equal keys would leave a choice
  return g.Tame(operands == 1 ? Expr(i) : PartOf(i, g.Between(0, operands - 1)));  // the sign of a zero is not ordered
}

// Running sums along any dimension.
std::optional<Expr> Scanned(Growth& g, Computation* c, Expr x) {
  if (x.shape().rank() == 0 || !Growth::Number(x) || Growth::Narrow(x.type())) return std::nullopt;
  const int64_t along = g.Between(0, x.shape().rank() - 1);
  Ints dims = x.shape().dims();
  dims.erase(dims.begin() + along);
  const Shape step = Shape::Array(x.type(), dims);
  Computation* f = g.module->AddComputation("step");
  Expr in = f->AddParameter(0, step, "in"), carry = f->AddParameter(1, step, "carry");
  Expr sum = Binary(Opcode::Add, carry, in);
  f->set_root(TupleOf({sum, sum}));
  Expr init = g.Fit(c, x.type(), dims);
  Instruction* i = c->Add(Opcode::Scan, Shape::Tuple({Shape::Array(x.type(), x.shape().dims()), step}),
                          {g.Tame(x).get(), init.get()});
  i->mutable_attrs().scan_dimension = along;
  i->mutable_attrs().num_carries = 1;
  i->mutable_attrs().is_reverse = g.Chance(50);
  i->mutable_attrs().to_apply = f;
  return g.Tame(PartOf(i, g.Between(0, 1)));
}

}  // namespace

std::vector<Maker> ReductionMakers() {
  return {{8, ReduceSome, true}, {3, ReducePair}, {4, ReduceWindows, true}, {4, Product2, true}, {3, Convolved},
          {5, Sorted},           {2, Scanned}};
}

}  // namespace kiln
