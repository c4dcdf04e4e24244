// Random elementwise operations.
#include "tests/random/growth.h"

namespace kiln {
namespace {

std::optional<Expr> BinaryOf(Growth& g, Computation* c, Expr x) {
  // The other operand is sometimes the same value.
  Expr y = g.Chance(15) ? x : g.Fit(c, x.type(), x.shape().dims());
  if (Growth::Complex(x)) {
    const Opcode ops[] = {Opcode::Add, Opcode::Subtract, Opcode::Multiply};
    return g.Folded(Binary(ops[g.Pick(3)], g.Tame(x), y));
  }
  if (!Growth::Number(x)) {
    const Opcode ops[] = {Opcode::And, Opcode::Or, Opcode::Xor};
    return Binary(ops[g.Pick(3)], x, y);
  }
  const Opcode ops[] = {Opcode::Add, Opcode::Subtract, Opcode::Multiply, Opcode::Maximum, Opcode::Minimum};
  return g.Tame(Binary(ops[g.Pick(5)], g.Tame(x), y));
}

std::optional<Expr> IntegerBinary(Growth& g, Computation* c, Expr x) {
  if (!IsIntegral(x.type())) return std::nullopt;
  const Opcode ops[] = {Opcode::And,
                        Opcode::Or,
                        Opcode::Xor,
                        Opcode::Divide,
                        Opcode::Remainder,
                        Opcode::ShiftLeft,
                        Opcode::ShiftRightLogical,
                        Opcode::ShiftRightArithmetic};
  return g.Tame(Binary(ops[g.Pick(8)], x, g.Fit(c, x.type(), x.shape().dims())));
}

// The conjugate, a quarter turn, a part, or the square of the length.
std::optional<Expr> ComplexUnary(Growth& g, Computation* c, Expr x) {
  Expr re = Unary(Opcode::Real, x), im = Unary(Opcode::Imag, x);
  const auto complex = [&](Expr a, Expr b) { return c->Add(Opcode::Complex, x.shape(), {a.get(), b.get()}); };
  switch (g.Pick(6)) {
    case 0:
      return complex(re, -im);
    case 1:
      return complex(im, re);
    case 2:
      return g.Chance(50) ? re : im;
    case 3:
      return g.Folded(re * re + im * im);
    case 4:
      return g.Rounded(Unary(Opcode::Abs, g.Tame(x)));
    default:
      return -x;
  }
}

std::optional<Expr> UnaryOf(Growth& g, Computation* c, Expr x) {
  if (Growth::Complex(x)) return ComplexUnary(g, c, x);
  if (!Growth::Number(x)) return Unary(Opcode::Not, x);
  if (IsFloat(x.type())) {
    const Opcode ops[] = {Opcode::Negate, Opcode::Abs, Opcode::Floor, Opcode::Ceil, Opcode::Sign, Opcode::Sqrt};
    const Opcode op = ops[g.Pick(6)];
    return op == Opcode::Sqrt ? Unary(Opcode::Floor, Unary(op, Unary(Opcode::Abs, g.Tame(x)))) : Unary(op, x);
  }
  const Opcode ops[] = {Opcode::Negate, Opcode::Not, Opcode::CountLeadingZeros,
                        Opcode::Popcnt, Opcode::Abs, Opcode::Sign};
  // Signs of unsigned numbers are HLO, not StableHLO; of a number of less than 8 bits XLA:CPU counts the bits that its
  // byte has.
  if (g.options.portable && InfoOf(x.type()).bits < 8) return Unary(ops[g.Pick(2)], x);
  return Unary(ops[g.Pick(IsUnsigned(x.type()) && g.options.portable ? 4 : 6)], x);
}

std::optional<Expr> Comparison(Growth& g, Computation* c, Expr x) {
  const Direction directions[] = {Direction::LT, Direction::LE, Direction::GT,
                                  Direction::GE, Direction::EQ, Direction::NE};
  return CompareExpr(directions[Growth::Complex(x) ? 4 + g.Pick(2) : g.Pick(6)], x,
                     g.Chance(10) ? x : g.Fit(c, x.type(), x.shape().dims()));
}

std::optional<Expr> Selection(Growth& g, Computation* c, Expr x) {
  const bool scalar = g.Chance(20);
  return SelectExpr(g.Fit(c, PrimitiveType::Pred, scalar ? Ints() : x.shape().dims()), x,
                    g.Fit(c, x.type(), x.shape().dims()));
}

std::optional<Expr> Conversion(Growth& g, Computation*, Expr x) { return Growth::As(g.AnyType(), g.Tame(x)); }

// A function of scalars on every element of two arrays.
std::optional<Expr> Mapped(Growth& g, Computation* c, Expr x) {
  if (!Growth::Number(x)) return std::nullopt;
  Computation* f = g.module->AddComputation("mapped");
  Expr a = f->AddParameter(0, Shape::Scalar(x.type()), "a"), b = f->AddParameter(1, Shape::Scalar(x.type()), "b");
  f->set_root(SelectExpr(CompareExpr(Direction::LT, a, b), Binary(Opcode::Subtract, b, a), a).get());
  Instruction* i = c->Add(Opcode::Map, Shape::Array(x.type(), x.shape().dims()),
                          {g.Tame(x).get(), g.Fit(c, x.type(), x.shape().dims()).get()});
  i->mutable_attrs().to_apply = f;
  i->mutable_attrs().dimensions = Ints();
  for (int64_t d = 0; d < x.shape().rank(); ++d) i->mutable_attrs().dimensions->push_back(d);
  return g.Tame(i);
}

}  // namespace

std::vector<Maker> ElementwiseMakers() {
  return {{10, BinaryOf, true}, {3, IntegerBinary},    {6, UnaryOf, true}, {4, Comparison, true},
          {4, Selection, true}, {5, Conversion, true}, {2, Mapped}};
}

}  // namespace kiln
