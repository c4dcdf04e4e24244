#include "compiler/hlo/infer_rules.h"

namespace kiln::infer {
namespace {

// Predicates, values to clamp and random bits are not of the type of the other operands: rules of their own.
bool OperandsDiffer(Opcode opcode) {
  return opcode == Opcode::Select || opcode == Opcode::Clamp || opcode == Opcode::StochasticConvert;
}

// The type that the operands have in common: the wider one of floats.
absl::StatusOr<PrimitiveType> CommonType(const Instruction& i) {
  const Shape& first = i.operand(0)->shape();
  PrimitiveType t = first.type();
  for (int64_t k = 1; k < i.operand_count(); ++k) {
    const Shape& s = i.operand(k)->shape();
    REQUIRE(s.IsArray(), "operand ", k, " is ", s.ToString(), ", not an array");
    if (OperandsDiffer(i.opcode())) continue;
    REQUIRE(SameExtents(first, s), "operand shapes differ: ", first.ToString(false), " and ", s.ToString(false));
    const bool shift = i.Is(Opcode::ShiftLeft) || i.Is(Opcode::ShiftRightLogical) || i.Is(Opcode::ShiftRightArithmetic);
    const bool both_float = IsFloat(t) && IsFloat(s.type());
    REQUIRE(s.type() == t || both_float || (shift && IsIntegral(t) && IsIntegral(s.type())),
            "operand types differ: ", TextOf(t), " and ", TextOf(s.type()));
    if (both_float) t = WiderFloat(t, s.type());
  }
  return t;
}

Shape WithType(Shape s, PrimitiveType t) {
  s.set_type(t);
  return s;
}

absl::StatusOr<Shape> Compare(const Instruction& i, PrimitiveType t) {
  REQUIRE(i.attrs().direction, "direction is missing");
  const Direction direction = *i.attrs().direction;
  REQUIRE(!IsComplex(t) || direction == Direction::EQ || direction == Direction::NE, "complex numbers have no order");
  if (const auto type = i.attrs().compare_type) {
    const bool fits = IsFloat(t)     ? *type == CompareType::FLOAT || *type == CompareType::TOTALORDER
                      : IsComplex(t) ? *type == CompareType::FLOAT
                                     : *type == (IsSigned(t) ? CompareType::SIGNED : CompareType::UNSIGNED);
    REQUIRE(fits, "compares ", TextOf(t), " as ", TextOf(*type));
  }
  return WithType(i.operand(0)->shape(), PrimitiveType::Pred);
}

absl::StatusOr<Shape> Select(const Instruction& i) {
  const Shape &predicate = i.operand(0)->shape(), &a = i.operand(1)->shape(), &b = i.operand(2)->shape();
  REQUIRE(predicate.type() == PrimitiveType::Pred, "predicate is ", TextOf(predicate.type()), ", not pred");
  REQUIRE(SameExtents(a, b), "operand shapes differ: ", a.ToString(false), " and ", b.ToString(false));
  REQUIRE(SameTypeButPrecision(a.type(), b.type()), "operand types differ: ", TextOf(a.type()), " and ",
          TextOf(b.type()));
  REQUIRE(predicate.rank() == 0 || SameExtents(predicate, a), "predicate ", predicate.ToString(false), " does not fit ",
          a.ToString(false));
  return WithType(a, WiderFloat(a.type(), b.type()));
}

absl::StatusOr<Shape> Clamp(const Instruction& i) {
  const Shape& x = i.operand(1)->shape();
  for (int k : {0, 2}) {
    const Shape& s = i.operand(k)->shape();
    REQUIRE(s.rank() == 0 || SameExtents(s, x), "bound ", s.ToString(false), " does not fit ", x.ToString(false));
    REQUIRE(SameTypeButPrecision(s.type(), x.type()), "bound is ", TextOf(s.type()), ", operand ", TextOf(x.type()));
  }
  return x;
}

absl::StatusOr<Shape> Convert(const Instruction& i, Given given) {
  REQUIRE(given && given->IsArray(), given ? "result is not an array" : "needs a shape: its element type is not known");
  return WithType(i.operand(0)->shape(), given->type());
}

absl::StatusOr<Shape> StochasticConvert(const Instruction& i, Given given) {
  const Shape &x = i.operand(0)->shape(), &random = i.operand(1)->shape();
  REQUIRE(IsFloat(x.type()), "takes floats");
  REQUIRE(given && given->IsArray(), given ? "result is not an array" : "needs a shape: its element type is not known");
  REQUIRE(SameExtents(x, random) && IsUnsigned(random.type()) && InfoOf(random.type()).bits == InfoOf(x.type()).bits,
          "random bits are ", random.ToString(false), ", not unsigned integers as wide as ", x.ToString(false));
  return WithType(x, given->type());
}

absl::StatusOr<Shape> Complex(const Instruction& i, PrimitiveType t) {
  REQUIRE(t == PrimitiveType::F32 || t == PrimitiveType::F64, "takes f32 or f64, not ", TextOf(t));
  return WithType(i.operand(0)->shape(), ComplexOf(t));
}

bool IsFloatOrComplex(PrimitiveType t) { return IsFloat(t) || IsComplex(t); }
bool IsNumber(PrimitiveType t) { return IsIntegral(t) || IsFloatOrComplex(t); }
bool IsBits(PrimitiveType t) { return IsIntegral(t) || t == PrimitiveType::Pred; }

absl::Status CheckOperandTypes(const Instruction& i, PrimitiveType t) {
  static constexpr struct {
    OperandTypes types;
    bool (*hold)(PrimitiveType);
    absl::string_view words;
  } kTypes[] = {
      {OperandTypes::Numbers, IsNumber, "numbers"},
      {OperandTypes::FloatsOrComplex, IsFloatOrComplex, "floats or complex numbers"},
      {OperandTypes::Floats, IsFloat, "floats"},
      {OperandTypes::Integers, IsIntegral, "integers"},
      {OperandTypes::Bits, IsBits, "integers or pred"},
  };
  for (const auto& row : kTypes)
    if (row.types == InfoOf(i.opcode()).operand_types) REQUIRE(row.hold(t), "takes ", row.words, ", not ", TextOf(t));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Shape> Elementwise(const Instruction& i, Given given) {
  const Shape& first = i.operand(0)->shape();
  if (i.Is(Opcode::Copy) && !first.IsArray()) return first;  // of everything that a tuple holds
  REQUIRE(first.IsArray(), "operand 0 is ", first.ToString(), ", not an array");
  ASSIGN_OR_RETURN(const PrimitiveType t, CommonType(i));
  RETURN_IF_ERROR(CheckOperandTypes(i, t));
  switch (i.opcode()) {
    case Opcode::Compare:
      return Compare(i, t);
    case Opcode::Select:
      return Select(i);
    case Opcode::Clamp:
      return Clamp(i);
    case Opcode::Convert:
      return Convert(i, given);
    case Opcode::StochasticConvert:
      return StochasticConvert(i, given);
    case Opcode::Complex:
      return Complex(i, t);
    case Opcode::IsFinite:
      return WithType(first, PrimitiveType::Pred);
    case Opcode::Abs:
    case Opcode::Real:
    case Opcode::Imag:
      return WithType(first, ComponentType(t));
    default:
      return WithType(first, t);
  }
}

}  // namespace kiln::infer
