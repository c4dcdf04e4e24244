#include "compiler/import/dense.h"

#include <cmath>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "compiler/base/status.h"
#include "compiler/import/mlir.h"

namespace kiln {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// One number at `*p`; integers, decimals, 0x bit patterns, true/false, (re, im).
absl::Status ReadElement(absl::string_view t, size_t* p, Literal* out, int64_t n) {
  const PrimitiveType type = out->type();
  auto skip = [&] {
    while (*p < t.size() && (absl::ascii_isspace(t[*p]))) ++*p;
  };
  skip();
  Element e;
  auto word = [&]() -> absl::string_view {
    skip();
    const size_t s = *p;
    while (*p < t.size() && (absl::ascii_isalnum(t[*p]) || t[*p] == '.' || t[*p] == '-' || t[*p] == '+')) ++*p;
    return t.substr(s, *p - s);
  };
  auto real = [&](PrimitiveType ft, double* v) -> absl::Status {
    const absl::string_view w = word();
    if (absl::StartsWith(w, "0x") || absl::StartsWith(w, "0X")) {
      uint64_t bits;
      if (!absl::SimpleHexAtoi(w, &bits)) return InvalidArgument("'", w, "' is no bit pattern");
      *v = DecodeFloat(ft, bits);
      return absl::OkStatus();
    }
    if (!absl::SimpleAtod(w, v)) return InvalidArgument("'", w, "' is no number");
    return absl::OkStatus();
  };
  if (IsComplex(type)) {
    if (*p >= t.size() || t[*p] != '(') return InvalidArgument("expected a complex number");
    ++*p;
    RETURN_IF_ERROR(real(ComponentType(type), &e.re));
    skip();
    if (*p < t.size() && t[*p] == ',') ++*p;
    RETURN_IF_ERROR(real(ComponentType(type), &e.im));
    skip();
    if (*p >= t.size() || t[*p] != ')') return InvalidArgument("expected ')' behind a complex number");
    ++*p;
  } else if (IsFloat(type)) {
    const size_t save = *p;
    const absl::string_view w = word();
    if (type == PrimitiveType::F32 && absl::StartsWith(w, "0x")) {  // bit exact, NaN payload included
      uint32_t bits;
      if (!absl::SimpleHexAtoi(w, &bits)) return InvalidArgument("'", w, "' is no bit pattern");
      std::memcpy(out->mutable_data() + 4 * n, &bits, 4);
      return absl::OkStatus();
    }
    *p = save;
    RETURN_IF_ERROR(real(type, &e.re));
  } else {
    const absl::string_view w = word();
    uint64_t u;
    if (w == "true")
      e.i = 1;
    else if (w == "false")
      e.i = 0;
    else if (absl::SimpleAtoi(w, &e.i)) {
    } else if (absl::SimpleAtoi(w, &u)) {
      e.i = static_cast<int64_t>(u);
    } else if (absl::StartsWith(w, "0x") && absl::SimpleHexAtoi(w, &u)) {
      e.i = static_cast<int64_t>(u);
    } else {
      return InvalidArgument("'", w, "' is no integer");
    }
  }
  out->Set(n, e);
  return absl::OkStatus();
}

// MLIR stores a value narrower than a byte in the low bits of one.
void Normalize(Literal* l) {
  const PrimitiveType t = l->type();
  if (!IsIntegral(t) && t != PrimitiveType::Pred) return;
  if (InfoOf(t).bits >= 8) return;
  uint8_t* d = l->mutable_data();
  for (int64_t k = 0; k < l->byte_size(); ++k)
    d[k] = t == PrimitiveType::Pred ? d[k] & 1 : static_cast<uint8_t>(WrapInt(t, d[k]));
}

}  // namespace

absl::StatusOr<Literal> DenseFromBytes(absl::string_view bytes, const Shape& shape) {
  const int64_t n = shape.ElementCount(), size = static_cast<int64_t>(bytes.size());
  const int64_t width = ByteWidth(shape.type());
  const bool packed = shape.type() == PrimitiveType::Pred && n > 1 && size == (n + 7) / 8;
  if (packed || size == n * width) {
    Literal l(shape);
    if (packed) {
      for (int64_t k = 0; k < n; ++k) l.mutable_data()[k] = (bytes[k / 8] >> (k % 8)) & 1;
    } else {
      std::memcpy(l.mutable_data(), bytes.data(), bytes.size());
    }
    Normalize(&l);
    return l;
  }
  if (size != width) return InvalidArgument(size, " bytes of elements do not hold ", shape.ToString(false));
  if (shape.ByteSize() > Literal::kMaxSplatBytes)
    return InvalidArgument("a splat constant of more than 64 MiB; broadcast a scalar");
  Literal one(Shape::Scalar(shape.type()));
  std::memcpy(one.mutable_data(), bytes.data(), bytes.size());
  Normalize(&one);
  return Literal::Splat(shape, one);
}

absl::StatusOr<Literal> ParseDense(absl::string_view text, const Shape& shape) {
  if (!shape.IsArray()) return InvalidArgument("a constant needs a tensor type");
  for (int64_t d : shape.dims())
    if (d < 0) return InvalidArgument("a constant needs extents that are known");
  if (shape.ByteSize() > (int64_t{1} << 36))
    return ResourceExhausted("a constant of ", shape.ByteSize(), " bytes; the limit is ", int64_t{1} << 36);
  if (!absl::ConsumePrefix(&text, "dense<"))
    return InvalidArgument("expected dense<...>, found '", text.substr(0, 24), "'");
  if (absl::ConsumePrefix(&text, "bytes:")) {
    absl::ConsumeSuffix(&text, ">");
    return DenseFromBytes(text, shape);
  }
  const int64_t n = shape.ElementCount();
  text = absl::StripLeadingAsciiWhitespace(text);
  if (!text.empty() && text[0] == '"') {
    const size_t end = text.find('"', 1);
    absl::string_view hex = text.substr(1, end - 1);
    if (!absl::ConsumePrefix(&hex, "0x")) return InvalidArgument("a dense string must be hexadecimal");
    std::string bytes(hex.size() / 2, '\0');
    for (size_t k = 0; k < bytes.size(); ++k) {
      const int hi = HexDigit(hex[2 * k]), lo = HexDigit(hex[2 * k + 1]);
      if (hi < 0 || lo < 0) return InvalidArgument("bad hexadecimal digit in a dense string");
      bytes[k] = static_cast<char>(hi << 4 | lo);
    }
    return DenseFromBytes(bytes, shape);
  }
  if (text.empty() || text[0] != '[') {
    if (n > 1 && shape.ByteSize() > Literal::kMaxSplatBytes)
      return InvalidArgument("a splat constant of more than 64 MiB; broadcast a scalar");
  } else if (n > static_cast<int64_t>(text.size())) {
    return InvalidArgument("fewer elements than ", shape.ToString(false), " holds");
  }
  Literal l(shape);
  if (n == 0) return l;
  size_t p = 0;
  int64_t next = 0, depth = 0;
  while (p < text.size() && text[p] != '>') {
    const char c = text[p];
    if (c == '[') {
      if (++depth > shape.rank())
        return InvalidArgument("lists nest deeper than ", shape.ToString(false), " has dimensions");
      ++p;
    } else if (c == ']') {
      if (--depth < 0) return InvalidArgument("unbalanced ']' in a dense constant");
      ++p;
    } else if (c == ',' || absl::ascii_isspace(c)) {
      ++p;
    } else {
      if (next >= n) return InvalidArgument("more elements than ", shape.ToString(false), " holds");
      if (depth != shape.rank() && depth != 0)
        return InvalidArgument("an element stands ", depth, " lists deep, ", shape.ToString(false), " has ",
                               shape.rank(), " dimensions");
      RETURN_IF_ERROR(ReadElement(text, &p, &l, next));
      ++next;
    }
  }
  if (depth != 0) return InvalidArgument("'[' is never closed in a dense constant");
  if (next == 1 && n > 1) {
    Literal one(Shape::Scalar(shape.type()));
    std::memcpy(one.mutable_data(), l.data(), static_cast<size_t>(one.byte_size()));
    return Literal::Splat(shape, one);
  }
  if (next != n) {
    return InvalidArgument(next, " elements given, ", shape.ToString(false), " holds ", n);
  }
  return l;
}

std::optional<Ints> ParseIntList(absl::string_view t) {
  t = absl::StripAsciiWhitespace(t);
  if (absl::StartsWith(t, "dense<")) {
    const size_t type_at = t.rfind("tensor<");
    if (type_at == absl::string_view::npos) return std::nullopt;
    auto shape = mlir::ParseType(t.substr(type_at));
    if (!shape.ok()) return std::nullopt;
    auto lit = ParseDense(t, *shape);
    if (!lit.ok()) return std::nullopt;
    Ints v;
    for (int64_t k = 0; k < lit->size(); ++k) v.push_back(lit->Get(k).i);
    return v;
  }
  if (absl::ConsumePrefix(&t, "array<")) {
    const size_t colon = t.find(':');
    if (colon == absl::string_view::npos) return Ints();  // array<i64>
    t = t.substr(colon + 1);
  }
  Ints v;
  size_t p = 0;
  while (p < t.size()) {
    const char c = t[p];
    if (c == '[' || c == ']' || c == ',' || c == '>' || absl::ascii_isspace(c)) {
      ++p;
      continue;
    }
    if (c == ':') break;  // a type suffix
    const size_t s = p;
    while (p < t.size() && (absl::ascii_isalnum(t[p]) || t[p] == '-')) ++p;
    const absl::string_view w = t.substr(s, p - s);
    int64_t x;
    if (w == "true")
      x = 1;
    else if (w == "false")
      x = 0;
    else if (w.empty() || !absl::SimpleAtoi(w, &x))
      return std::nullopt;
    v.push_back(x);
  }
  return v;
}

}  // namespace kiln
