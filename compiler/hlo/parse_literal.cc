#include <cmath>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "compiler/hlo/hlo_parser.h"

namespace kiln {

absl::StatusOr<double> HloParser::ParseReal(PrimitiveType t) {
  s_.Peek();
  const size_t start = s_.pos();
  bool negative = false;
  if (s_.PeekRaw() == '-' || s_.PeekRaw() == '+') {
    negative = s_.PeekRaw() == '-';
    s_.set_pos(start + 1);
  }
  absl::string_view w = s_.text().substr(s_.pos(), 8);
  if (absl::StartsWithIgnoreCase(w, "nan")) {
    s_.set_pos(s_.pos() + 3);
    double v = std::nan("");
    if (s_.PeekRaw() == '(') {
      s_.set_pos(s_.pos() + 1);
      const absl::string_view hex = s_.Word("");
      uint64_t payload = 0;
      if (!absl::SimpleHexAtoi(hex, &payload)) return s_.Error("expected a hexadecimal NaN payload");
      RETURN_IF_ERROR(s_.Expect(")"));
      const TypeInfo& f = InfoOf(t);
      if (f.cls == TypeClass::Float && f.flavour == FloatFlavour::Ieee && payload < (1ull << f.mantissa_bits) &&
          payload) {
        const uint64_t exp = ((1ull << f.exponent_bits) - 1) << f.mantissa_bits;
        v = DecodeFloat(t, exp | payload);
        if (t == PrimitiveType::F32) {  // widening would set the quiet bit of a signalling NaN
          uint64_t b = 0x7ff0000000000000ull | (payload << 29);
          std::memcpy(&v, &b, 8);
        }
      }
    }
    return std::copysign(v, negative ? -1.0 : 1.0);
  }
  if (absl::StartsWithIgnoreCase(w, "inf")) {
    s_.set_pos(s_.pos() + (absl::StartsWithIgnoreCase(w, "infinity") ? 8 : 3));
    return negative ? -INFINITY : INFINITY;
  }
  char buf[128];
  size_t n = 0;
  while (n + 1 < sizeof buf &&
         (absl::ascii_isalnum(s_.PeekRaw(n)) || s_.PeekRaw(n) == '.' ||
          ((s_.PeekRaw(n) == '-' || s_.PeekRaw(n) == '+') && n > 0 && std::strchr("eEpP", buf[n - 1])))) {
    buf[n] = s_.PeekRaw(n);
    ++n;
  }
  buf[n] = 0;
  char* end = buf;
  const double v = std::strtod(buf, &end);
  if (n == 0 || end != buf + n) {
    s_.set_pos(start);
    return s_.Error("expected a number");
  }
  s_.set_pos(s_.pos() + n);
  return negative ? -v : v;
}

absl::StatusOr<int64_t> HloParser::ParseIntegerOrTruth() {
  if (s_.Eat("true")) return 1;
  if (s_.Eat("false")) return 0;
  return s_.Integer();
}

absl::Status HloParser::ParseScalar(Literal* l, int64_t n) {
  const PrimitiveType t = l->type();
  Element e;
  s_.Peek();
  if (t == PrimitiveType::Pred) {
    ASSIGN_OR_RETURN(e.i, ParseIntegerOrTruth());
  } else if (IsComplex(t)) {
    if (s_.Eat("(")) {
      ASSIGN_OR_RETURN(e.re, ParseReal(ComponentType(t)));
      RETURN_IF_ERROR(s_.Expect(","));
      ASSIGN_OR_RETURN(e.im, ParseReal(ComponentType(t)));
      RETURN_IF_ERROR(s_.Expect(")"));
    } else {
      ASSIGN_OR_RETURN(e.re, ParseReal(ComponentType(t)));
    }
  } else if (IsFloat(t)) {
    ASSIGN_OR_RETURN(e.re, ParseReal(t));
    if (t == PrimitiveType::F32 && std::isnan(e.re)) {
      uint64_t wide;
      std::memcpy(&wide, &e.re, 8);
      const uint32_t bits =
          static_cast<uint32_t>(wide >> 63) << 31 | 0x7f800000u | static_cast<uint32_t>((wide >> 29) & 0x7fffff);
      std::memcpy(l->mutable_data() + 4 * n, &bits, 4);
      return absl::OkStatus();
    }
  } else {
    const size_t at = s_.pos();
    ASSIGN_OR_RETURN(e.i, ParseIntegerOrTruth());
    const int bits = InfoOf(t).bits;
    if (bits < 64 && WrapInt(t, e.i) != e.i && !(IsUnsigned(t) ? false : e.i == WrapInt(t, e.i)))
      return s_.ErrorAtPos(at, absl::StrCat(e.i, " does not fit ", TextOf(t)));
  }
  l->Set(n, e);
  return absl::OkStatus();
}

absl::Status HloParser::ParseLiteralInto(Literal* l, int64_t dim, int64_t* next) {
  if (dim == l->shape().rank()) return ParseScalar(l, (*next)++);
  s_.Peek();
  const size_t at = s_.pos();
  RETURN_IF_ERROR(s_.Expect("{"));
  for (int64_t i = 0; i < l->shape().dim(dim); ++i) {
    if (i) s_.Eat(",");  // as XLA's reader does, which lets it be left out
    RETURN_IF_ERROR(ParseLiteralInto(l, dim + 1, next));
  }
  if (s_.Peek() != '}')
    return s_.ErrorAtPos(
        at, absl::StrCat("dimension ", dim, " of the constant does not hold ", l->shape().dim(dim), " elements"));
  return s_.Expect("}");
}

namespace {

// Zeros and ones and small numbers, few of them equal, in the place of elements that are not known.
Literal StandIn(const Shape& shape) {
  if (shape.IsTuple()) {
    std::vector<Literal> parts;
    for (const Shape& s : shape.tuple()) parts.push_back(StandIn(s));
    return Literal::Tuple(std::move(parts));
  }
  Literal l(shape);
  uint8_t* p = l.mutable_data();
  const bool small = InfoOf(shape.type()).bits < 8;
  for (int64_t k = 0; k < l.byte_size(); ++k)
    p[k] = static_cast<uint8_t>(small ? k & 1 : k % 4 == 3 ? 0x3d : k >> (k % 4 * 8 + 2));
  return l;
}

}  // namespace

// Stands at "{...}".
absl::StatusOr<Literal> HloParser::ElidedLiteral(const Shape& shape) {
  if (!look_)
    return s_.Error(
        "the elements of this constant were elided when the program was printed; print it with all of them");
  if (shape.ByteSize() > (int64_t{1} << 32)) return s_.Error("an elided constant of more than 4 GiB");
  RETURN_IF_ERROR(s_.Balanced(",)").status());
  elided_ = true;
  return StandIn(shape);
}

absl::StatusOr<Literal> HloParser::ParseLiteral(const Shape& shape) {
  if (shape.IsTuple()) {
    if (s_.Peek() == '{') return ElidedLiteral(shape);
    RETURN_IF_ERROR(s_.Expect("("));
    std::vector<Literal> parts;
    for (size_t i = 0; i < shape.tuple().size(); ++i) {
      if (i) s_.Eat(",");
      // Elements may repeat their shape.
      if (LooksLikeShape()) RETURN_IF_ERROR(ParseShape().status());
      ASSIGN_OR_RETURN(Literal e, ParseLiteral(shape.tuple()[i]));
      parts.push_back(std::move(e));
    }
    RETURN_IF_ERROR(s_.Expect(")"));
    return Literal::Tuple(std::move(parts));
  }
  if (!shape.IsArray()) return s_.Error("a constant needs an array or tuple shape");
  for (int64_t d : shape.dims())
    if (d < 0) return s_.Error("a constant needs extents that are known");
  if (s_.Peek() == '{') {
    const size_t save = s_.pos();
    while (s_.Eat("{")) {
    }
    const bool elided = s_.Eat("...");
    s_.set_pos(save);
    if (elided && shape.ElementCount() > 0) return ElidedLiteral(shape);
  }
  if (shape.rank() > 0 && s_.Peek() != '{') {  // one value for every element
    if (shape.ElementCount() == 0 && s_.Peek() == ')') return Literal(shape);
    if (shape.ByteSize() > Literal::kMaxSplatBytes)
      return s_.Error("a splat constant of more than 64 MiB; broadcast a scalar");
    Literal one(Shape::Scalar(shape.type()));
    RETURN_IF_ERROR(ParseScalar(&one, 0));
    return Literal::Splat(shape, one);
  }
  // An array that the text cannot hold is refused before memory is asked for.
  const size_t left = s_.text().size() - s_.pos();
  if (shape.ElementCount() > static_cast<int64_t>(left) && shape.ElementCount() > (1 << 20) && s_.Peek() == '{')
    return s_.Error("the text ends before the constant does");
  Literal l(shape);
  if (shape.ElementCount() == 0) {
    s_.Peek();
    const size_t at = s_.pos();
    ASSIGN_OR_RETURN(const std::string braces, s_.Balanced(")"));
    if (braces.find_first_not_of("{}, .\t\r\n") != std::string::npos)
      return s_.ErrorAtPos(at, "an array without elements holds nothing but braces");
    return l;
  }
  int64_t next = 0;
  RETURN_IF_ERROR(ParseLiteralInto(&l, 0, &next));
  return l;
}

}  // namespace kiln
