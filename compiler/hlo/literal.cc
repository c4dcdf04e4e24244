#include "compiler/hlo/literal.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/base/status.h"

namespace kiln {

int64_t WrapInt(PrimitiveType t, int64_t v) {
  const int bits = InfoOf(t).bits;
  if (bits >= 64) return v;
  const uint64_t mask = (1ull << bits) - 1;
  const uint64_t low = static_cast<uint64_t>(v) & mask;
  if (IsSigned(t) && (low >> (bits - 1))) return static_cast<int64_t>(low | ~mask);
  return static_cast<int64_t>(low);
}

Literal::Literal(const Shape& shape) : shape_(shape) {
  shape_.set_layout(std::nullopt);
  if (shape.IsTuple()) {
    for (const Shape& s : shape.tuple()) elements_.emplace_back(s);
    shape_.ClearLayouts();
  } else {
    bytes_ = std::make_shared<std::vector<uint8_t>>(shape.ByteSize());
  }
}

Literal Literal::Splat(const Shape& shape, const Literal& one) {
  Literal l(shape);
  const size_t size = static_cast<size_t>(l.byte_size()), width = static_cast<size_t>(one.byte_size());
  if (size == 0) return l;
  uint8_t* d = l.mutable_data();
  std::memcpy(d, one.data(), width);
  for (size_t done = width; done < size; done *= 2) std::memcpy(d + done, d, std::min(done, size - done));
  return l;
}

Literal Literal::Tuple(std::vector<Literal> elements) {
  Literal l;
  std::vector<Shape> shapes;
  for (const Literal& e : elements) shapes.push_back(e.shape());
  l.shape_ = Shape::Tuple(std::move(shapes));
  l.elements_ = std::move(elements);
  return l;
}

Literal Literal::Int(PrimitiveType type, int64_t value) {
  Literal l(Shape::Scalar(type));
  Element e;
  e.i = value;
  l.Set(0, e);
  return l;
}

Literal Literal::Float(PrimitiveType type, double value) {
  Literal l(Shape::Scalar(type));
  Element e;
  e.re = value;
  l.Set(0, e);
  return l;
}

Literal Literal::Of(PrimitiveType type, double value) {
  return IsFloat(type) || IsComplex(type) ? Float(type, value) : Int(type, static_cast<int64_t>(value));
}

uint8_t* Literal::mutable_data() {
  if (bytes_ && bytes_.use_count() > 1) bytes_ = std::make_shared<std::vector<uint8_t>>(*bytes_);
  return bytes_ ? bytes_->data() : nullptr;
}

Element Literal::Get(int64_t n) const {
  const PrimitiveType t = type();
  const int64_t w = ByteWidth(t);
  const uint8_t* p = bytes_->data() + n * w;
  Element e;
  if (IsComplex(t)) {
    if (t == PrimitiveType::C64) {
      float f[2];
      std::memcpy(f, p, 8);
      e.re = f[0];
      e.im = f[1];
    } else {
      double d[2];
      std::memcpy(d, p, 16);
      e.re = d[0];
      e.im = d[1];
    }
    return e;
  }
  uint64_t bits = 0;
  std::memcpy(&bits, p, w);
  if (IsFloat(t)) {
    e.re = DecodeFloat(t, bits);
  } else {
    e.i = WrapInt(t, static_cast<int64_t>(bits));
  }
  return e;
}

void Literal::Set(int64_t n, const Element& v) {
  const PrimitiveType t = type();
  const int64_t w = ByteWidth(t);
  uint8_t* p = mutable_data() + n * w;
  if (t == PrimitiveType::C64) {
    const float f[2] = {static_cast<float>(v.re), static_cast<float>(v.im)};
    std::memcpy(p, f, 8);
  } else if (t == PrimitiveType::C128) {
    const double d[2] = {v.re, v.im};
    std::memcpy(p, d, 16);
  } else {
    const uint64_t bits = IsFloat(t)                 ? EncodeFloat(t, v.re)
                          : t == PrimitiveType::Pred ? static_cast<uint64_t>(v.i != 0)
                                                     : static_cast<uint64_t>(WrapInt(t, v.i));
    std::memcpy(p, &bits, w);
  }
}

Literal Literal::Reshaped(const Shape& shape) const {
  KILN_CHECK(shape.ElementCount() == size());
  Literal l = *this;
  l.shape_ = shape;
  l.shape_.set_layout(std::nullopt);
  return l;
}

bool Literal::IsSplat() const {
  if (!shape_.IsArray() || size() == 0) return false;
  // Every element has the bits of the one before.
  const size_t width = static_cast<size_t>(ByteWidth(type()));
  return std::memcmp(data(), data() + width, static_cast<size_t>(byte_size()) - width) == 0;
}

bool Literal::IsAll(double value) const {
  if (shape_.IsTuple() || size() == 0 || !IsSplat()) return false;
  const Element e = Get(0);
  if (IsFloat(type()) || IsComplex(type())) {
    return e.re == value && e.im == 0 && (value != 0 || std::signbit(value) == std::signbit(e.re));
  }
  return e.i == static_cast<int64_t>(value) && value == std::floor(value);
}

bool Literal::operator==(const Literal& o) const {
  if (!shape_.Compatible(o.shape_)) return false;
  if (shape_.IsTuple()) return elements_ == o.elements_;
  return byte_size() == o.byte_size() && (byte_size() == 0 || std::memcmp(data(), o.data(), byte_size()) == 0);
}

std::string FloatText(PrimitiveType type, double value) {
  if (std::isnan(value)) {
    // Payload and sign are kept for the types whose text form can carry them.
    const uint64_t bits = EncodeFloat(type, value);
    const TypeInfo& f = InfoOf(type);
    if (f.flavour == FloatFlavour::Ieee && f.bits >= 16) {
      const uint64_t man = bits & ((1ull << f.mantissa_bits) - 1);
      const std::string sign = (bits >> (f.bits - 1)) & 1 ? "-" : "";
      if (man == 1ull << (f.mantissa_bits - 1)) return sign + "nan";
      return absl::StrFormat("%snan(0x%x)", sign, man);
    }
    return "nan";
  }
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buf[64];
  const auto r = InfoOf(type).bits <= 32 ? std::to_chars(buf, buf + sizeof buf, static_cast<float>(value))
                                         : std::to_chars(buf, buf + sizeof buf, value);
  return std::string(buf, r.ptr);
}

namespace {
std::string ElementText(const Literal& l, int64_t n) {
  const PrimitiveType t = l.type();
  if (t == PrimitiveType::Pred) return l.Get(n).i ? "true" : "false";
  if (t == PrimitiveType::F32) {  // straight from the bits, so that NaN payloads survive
    uint32_t b;
    std::memcpy(&b, l.data() + 4 * n, 4);
    if ((b & 0x7f800000u) == 0x7f800000u && (b & 0x7fffffu)) {
      const uint32_t man = b & 0x7fffffu;
      const char* sign = b >> 31 ? "-" : "";
      return man == 0x400000u ? absl::StrCat(sign, "nan") : absl::StrFormat("%snan(0x%x)", sign, man);
    }
  }
  const Element e = l.Get(n);
  if (IsFloat(t)) return FloatText(t, e.re);
  if (IsComplex(t)) {
    const PrimitiveType c = ComponentType(t);
    return absl::StrCat("(", FloatText(c, e.re), ", ", FloatText(c, e.im), ")");
  }
  if (IsUnsigned(t)) return absl::StrCat(static_cast<uint64_t>(e.i));
  return absl::StrCat(e.i);
}

void Render(const Literal& l, int64_t dim, int64_t* next, std::string* out) {
  if (dim == l.shape().rank()) {
    *out += ElementText(l, (*next)++);
    return;
  }
  *out += "{";
  for (int64_t i = 0; i < l.shape().dim(dim); ++i) {
    if (i) *out += ", ";
    Render(l, dim + 1, next, out);
  }
  *out += "}";
}
}  // namespace

std::string Literal::ToString() const {
  if (shape_.IsTuple()) {
    std::string out = "(";
    for (size_t i = 0; i < elements_.size(); ++i) absl::StrAppend(&out, i ? ", " : "", elements_[i].ToString());
    return out + ")";
  }
  // Braces around nothing may be many.
  int64_t braces = 1;
  for (int64_t d : shape_.dims()) {
    if (d == 0) break;
    braces *= d;
    if (size() == 0 && braces > 4096) return "{...}";
  }
  std::string out;
  int64_t next = 0;
  // One value for all of many elements; kiln's own reader takes that, and larger texts help nobody.
  if (size() > (1 << 20) && IsSplat()) {
    Literal one(Shape::Scalar(type()));
    one.Set(0, Get(0));
    return one.ToString();
  }
  Render(*this, 0, &next, &out);
  return out;
}

}  // namespace kiln
