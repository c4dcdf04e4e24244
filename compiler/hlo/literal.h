// Constant values.
//
// What: a shape and its elements, in row-major logical order whatever the shape's layout says; tuples hold literals.
// Guarantees: elements are shared between copies until written; every element type, sub-byte ones a byte each.
#pragma once

#include <complex>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler/hlo/shape.h"

namespace kiln {

// One element of any type, widened without loss: integers and pred in `i` (unsigned ones as their bit pattern),
// floats in `re`, complex in `re`/`im`.
struct Element {
  int64_t i = 0;
  double re = 0;
  double im = 0;
};

class Literal {
 public:
  Literal() = default;
  // Zero-filled array of `shape` (layout dropped).
  explicit Literal(const Shape& shape);
  static Literal Tuple(std::vector<Literal> elements);
  // Every element is the scalar `one`, of the shape's type. Readers refuse more than kMaxSplatBytes of it, since a few
  // bytes of text could otherwise ask for any amount of memory.
  static Literal Splat(const Shape& shape, const Literal& one);
  static constexpr int64_t kMaxSplatBytes = int64_t{1} << 26;
  // Scalars.
  static Literal Int(PrimitiveType type, int64_t value);
  static Literal Float(PrimitiveType type, double value);
  // Scalar of any type from a small integer or real value.
  static Literal Of(PrimitiveType type, double value);

  const Shape& shape() const { return shape_; }
  PrimitiveType type() const { return shape_.type(); }
  const std::vector<Literal>& elements() const { return elements_; }
  int64_t size() const { return shape_.ElementCount(); }

  Element Get(int64_t linear) const;
  // Stores `v` rounded or wrapped to the element type.
  void Set(int64_t linear, const Element& v);
  const uint8_t* data() const { return bytes_ ? bytes_->data() : nullptr; }
  uint8_t* mutable_data();
  int64_t byte_size() const { return bytes_ ? static_cast<int64_t>(bytes_->size()) : 0; }

  // Same elements under another shape with as many of them.
  Literal Reshaped(const Shape& shape) const;
  // True if every element has the bits of the first.
  bool IsSplat() const;
  bool IsAll(double value) const;
  // Bitwise equality, shapes (without layout) included.
  bool operator==(const Literal& o) const;
  bool operator!=(const Literal& o) const { return !(*this == o); }

  // HLO text of the value, as `constant(...)` holds it.
  std::string ToString() const;

 private:
  Shape shape_;
  std::shared_ptr<std::vector<uint8_t>> bytes_;
  std::vector<Literal> elements_;
};

// Shortest decimal text that reads back as the same value of `type` (nan, inf, -inf as HLO writes them).
std::string FloatText(PrimitiveType type, double value);

// `v` wrapped to the width of integer type `t` (sign extended for signed types).
int64_t WrapInt(PrimitiveType t, int64_t v);

}  // namespace kiln
