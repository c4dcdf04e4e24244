#include "compiler/hlo/infer_rules.h"

namespace kiln::infer {

absl::StatusOr<Shape> Elementwise(const Instruction& i, Given given) {
  const Shape& first = i.operand(0)->shape();
  if (i.Is(Opcode::Copy) && !first.IsArray()) return first;  // of everything that a tuple holds
  REQUIRE(first.IsArray(), "operand 0 is ", first.ToString(), ", not an array");
  PrimitiveType t = first.type();
  Shape shape = first;
  for (int64_t k = 1; k < i.operand_count(); ++k) {
    const Shape& s = i.operand(k)->shape();
    REQUIRE(s.IsArray(), "operand ", k, " is ", s.ToString(), ", not an array");
    if (i.Is(Opcode::Select) && k >= 1) continue;
    if (i.Is(Opcode::Clamp)) continue;
    if (i.Is(Opcode::StochasticConvert)) continue;
    REQUIRE(SameExtents(first, s), "operand shapes differ: ", first.ToString(false), " and ", s.ToString(false));
    const bool shift = i.Is(Opcode::ShiftLeft) || i.Is(Opcode::ShiftRightLogical) || i.Is(Opcode::ShiftRightArithmetic);
    const bool both_float = IsFloat(t) && IsFloat(s.type());
    REQUIRE(s.type() == t || both_float || (shift && IsIntegral(t) && IsIntegral(s.type())),
            "operand types differ: ", TextOf(t), " and ", TextOf(s.type()));
    if (both_float) t = WiderFloat(t, s.type());
  }
  auto need = [&](bool ok, absl::string_view what) -> absl::Status {
    REQUIRE(ok, "takes ", what, ", not ", TextOf(t));
    return absl::OkStatus();
  };
  const bool fl = IsFloat(t), cx = IsComplex(t), in = IsIntegral(t), pr = t == PrimitiveType::Pred;
  switch (i.opcode()) {
    case Opcode::Compare: {
      REQUIRE(i.attrs().direction, "direction is missing");
      const std::string& direction = i.attrs().direction->text;
      REQUIRE(!cx || direction == "EQ" || direction == "NE", "complex numbers have no order");
      const std::string type = i.attrs().compare_type ? i.attrs().compare_type->text : "";
      REQUIRE(type.empty() || (fl || cx ? type == "FLOAT" || (fl && type == "TOTALORDER")
                                        : type == (in && !IsUnsigned(t) ? "SIGNED" : "UNSIGNED")),
              "compares ", TextOf(t), " as ", type);
      shape.set_type(PrimitiveType::Pred);
      return shape;
    }
    case Opcode::Select: {
      REQUIRE(t == PrimitiveType::Pred, "predicate is ", TextOf(t), ", not pred");
      const Shape &a = i.operand(1)->shape(), &b = i.operand(2)->shape();
      REQUIRE(SameExtents(a, b), "operand shapes differ: ", a.ToString(false), " and ", b.ToString(false));
      REQUIRE(a.type() == b.type() || (IsFloat(a.type()) && IsFloat(b.type())),
              "operand types differ: ", TextOf(a.type()), " and ", TextOf(b.type()));
      REQUIRE(first.rank() == 0 || SameExtents(first, a), "predicate ", first.ToString(false), " does not fit ",
              a.ToString(false));
      shape = a;
      shape.set_type(WiderFloat(a.type(), b.type()));
      return shape;
    }
    case Opcode::Clamp: {
      const Shape& x = i.operand(1)->shape();
      for (int k : {0, 2}) {
        const Shape& s = i.operand(k)->shape();
        REQUIRE(s.rank() == 0 || SameExtents(s, x), "bound ", s.ToString(false), " does not fit ", x.ToString(false));
        REQUIRE(s.type() == x.type() || (IsFloat(s.type()) && IsFloat(x.type())), "bound is ", TextOf(s.type()),
                ", operand ", TextOf(x.type()));
      }
      return x;
    }
    case Opcode::Convert: {
      REQUIRE(given && given->IsArray(),
              given ? "result is not an array" : "needs a shape: its element type is not known");
      shape.set_type(given->type());
      return shape;
    }
    case Opcode::StochasticConvert: {
      REQUIRE(fl, "takes floats");
      REQUIRE(given && given->IsArray(),
              given ? "result is not an array" : "needs a shape: its element type is not known");
      const Shape& random = i.operand(1)->shape();
      REQUIRE(SameExtents(first, random) && IsUnsigned(random.type()) && InfoOf(random.type()).bits == InfoOf(t).bits,
              "random bits are ", random.ToString(false), ", not unsigned integers as wide as ", first.ToString(false));
      shape.set_type(given->type());
      return shape;
    }
    case Opcode::IsFinite:
      RETURN_IF_ERROR(need(fl || cx, "floats"));
      shape.set_type(PrimitiveType::Pred);
      return shape;
    case Opcode::Complex:
      REQUIRE(t == PrimitiveType::F32 || t == PrimitiveType::F64, "takes f32 or f64, not ", TextOf(t));
      shape.set_type(ComplexOf(t));
      return shape;
    case Opcode::Real:
    case Opcode::Imag:
    case Opcode::Abs:
      if (i.Is(Opcode::Abs))
        RETURN_IF_ERROR(need(fl || cx || in, "numbers"));
      else
        RETURN_IF_ERROR(need(fl || cx, "floats or complex numbers"));
      shape.set_type(ComponentType(t));
      return shape;
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor:
    case Opcode::Not:
      RETURN_IF_ERROR(need(in || pr, "integers or pred"));
      break;
    case Opcode::ShiftLeft:
    case Opcode::ShiftRightArithmetic:
    case Opcode::ShiftRightLogical:
    case Opcode::Popcnt:
    case Opcode::CountLeadingZeros:
    case Opcode::Mulhi:
      RETURN_IF_ERROR(need(in, "integers"));
      break;
    case Opcode::Ceil:
    case Opcode::Floor:
    case Opcode::RoundNearestAfz:
    case Opcode::RoundNearestEven:
    case Opcode::ReducePrecision:
    case Opcode::Erf:
      RETURN_IF_ERROR(need(fl, "floats"));
      break;
    case Opcode::Sqrt:
    case Opcode::Rsqrt:
      RETURN_IF_ERROR(need(fl || cx, "floats or complex numbers"));
      break;
    case Opcode::Negate:
    case Opcode::Sign:
    case Opcode::Remainder:
    case Opcode::Subtract:
      RETURN_IF_ERROR(need(!pr || i.Is(Opcode::Subtract), "numbers"));
      break;
    default:
      if (InfoOf(i.opcode()).traits & Transcendental && !i.Is(Opcode::Power))
        RETURN_IF_ERROR(need(fl || cx, "floats or complex numbers"));
      break;
  }
  shape.set_type(t);
  return shape;
}

}  // namespace kiln::infer
