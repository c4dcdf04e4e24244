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
  const std::string& direction = i.attrs().direction->text;
  REQUIRE(!IsComplex(t) || direction == "EQ" || direction == "NE", "complex numbers have no order");
  const std::string type = i.attrs().compare_type ? i.attrs().compare_type->text : "";
  const bool fits = IsFloat(t)     ? type == "FLOAT" || type == "TOTALORDER"
                    : IsComplex(t) ? type == "FLOAT"
                                   : type == (IsSigned(t) ? "SIGNED" : "UNSIGNED");
  REQUIRE(type.empty() || fits, "compares ", TextOf(t), " as ", type);
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

struct Domain {
  Opcode opcode;
  bool (*holds)(PrimitiveType);
  absl::string_view words;
};

// What the others take. Those without a row take anything, transcendental functions floats and complex numbers.
constexpr Domain kDomains[] = {
    {Opcode::Abs, IsNumber, "numbers"},
    {Opcode::And, IsBits, "integers or pred"},
    {Opcode::Ceil, IsFloat, "floats"},
    {Opcode::CountLeadingZeros, IsIntegral, "integers"},
    {Opcode::Erf, IsFloat, "floats"},
    {Opcode::Floor, IsFloat, "floats"},
    {Opcode::Imag, IsFloatOrComplex, "floats or complex numbers"},
    {Opcode::IsFinite, IsFloatOrComplex, "floats"},
    {Opcode::Mulhi, IsIntegral, "integers"},
    {Opcode::Negate, IsNumber, "numbers"},
    {Opcode::Not, IsBits, "integers or pred"},
    {Opcode::Or, IsBits, "integers or pred"},
    {Opcode::Popcnt, IsIntegral, "integers"},
    {Opcode::Real, IsFloatOrComplex, "floats or complex numbers"},
    {Opcode::ReducePrecision, IsFloat, "floats"},
    {Opcode::Remainder, IsNumber, "numbers"},
    {Opcode::RoundNearestAfz, IsFloat, "floats"},
    {Opcode::RoundNearestEven, IsFloat, "floats"},
    {Opcode::Rsqrt, IsFloatOrComplex, "floats or complex numbers"},
    {Opcode::ShiftLeft, IsIntegral, "integers"},
    {Opcode::ShiftRightArithmetic, IsIntegral, "integers"},
    {Opcode::ShiftRightLogical, IsIntegral, "integers"},
    {Opcode::Sign, IsNumber, "numbers"},
    {Opcode::Sqrt, IsFloatOrComplex, "floats or complex numbers"},
    {Opcode::Xor, IsBits, "integers or pred"},
};

absl::Status CheckDomain(Opcode opcode, PrimitiveType t) {
  Domain domain = {opcode, IsArrayType, ""};
  if (InfoOf(opcode).traits & Transcendental && opcode != Opcode::Power)
    domain = {opcode, IsFloatOrComplex, "floats or complex numbers"};
  for (const Domain& d : kDomains)
    if (d.opcode == opcode) domain = d;
  REQUIRE(domain.holds(t), "takes ", domain.words, ", not ", TextOf(t));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Shape> Elementwise(const Instruction& i, Given given) {
  const Shape& first = i.operand(0)->shape();
  if (i.Is(Opcode::Copy) && !first.IsArray()) return first;  // of everything that a tuple holds
  REQUIRE(first.IsArray(), "operand 0 is ", first.ToString(), ", not an array");
  ASSIGN_OR_RETURN(const PrimitiveType t, CommonType(i));
  RETURN_IF_ERROR(CheckDomain(i.opcode(), t));
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
