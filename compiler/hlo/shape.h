// Shapes and layouts.
//
// What: the type of every HLO value: an array (element type, extents, optional layout), a tuple, a token or opaque.
// Guarantees: value semantics; text round trip (Shape::ToString parses back to an equal shape).
// A layout lists the dimensions from the fastest-varying (minor) to the slowest. `extras` keeps everything behind the
// colon of a layout (tiles, memory space, element size, ...) in its written form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/hlo/types.h"

namespace kiln {

using Ints = std::vector<int64_t>;

// The memory space of values that wait in the caller's slow arena (XLA's number for host memory).
inline constexpr int64_t kSlowMemorySpace = 5;

struct Layout {
  Ints minor_to_major;
  std::string extras;
  bool operator==(const Layout& o) const { return minor_to_major == o.minor_to_major && extras == o.extras; }
  std::string ToString() const;
  // The n of S(n) in `extras`; 0 if there is none.
  int64_t MemorySpace() const;
  // {rank-1, ..., 0}: row major.
  static Layout Descending(int64_t rank);
};

class Shape {
 public:
  Shape() = default;
  static Shape Array(PrimitiveType type, Ints dims) {
    Shape s;
    s.type_ = type;
    s.dynamic_.assign(dims.size(), false);
    s.dims_ = std::move(dims);
    return s;
  }
  static Shape Tuple(std::vector<Shape> elements) {
    Shape s;
    s.type_ = PrimitiveType::Tuple;
    s.tuple_ = std::move(elements);
    return s;
  }
  static Shape Token() { return Array(PrimitiveType::Token, {}); }
  static Shape Scalar(PrimitiveType type) { return Array(type, {}); }

  PrimitiveType type() const { return type_; }
  void set_type(PrimitiveType t) { type_ = t; }
  const Ints& dims() const { return dims_; }
  Ints& mutable_dims() { return dims_; }
  int64_t dim(int64_t i) const { return dims_[i]; }
  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  bool IsTuple() const { return type_ == PrimitiveType::Tuple; }
  bool IsToken() const { return type_ == PrimitiveType::Token; }
  bool IsArray() const { return IsArrayType(type_); }
  bool IsScalar() const { return IsArray() && dims_.empty(); }
  const std::vector<Shape>& tuple() const { return tuple_; }
  std::vector<Shape>& mutable_tuple() { return tuple_; }

  const std::vector<bool>& dynamic() const { return dynamic_; }
  bool is_dynamic(int64_t d) const { return d < static_cast<int64_t>(dynamic_.size()) && dynamic_[d]; }
  void set_dynamic(int64_t d, bool v) {
    dynamic_.resize(dims_.size(), false);
    dynamic_[d] = v;
  }
  // True for an array with a dynamic dimension, or a tuple that holds one.
  bool HasDynamic() const;

  const std::optional<Layout>& layout() const { return layout_; }
  void set_layout(std::optional<Layout> l) { layout_ = std::move(l); }
  // The layout, or row major where none is set.
  Layout LayoutOrDefault() const { return layout_ ? *layout_ : Layout::Descending(rank()); }
  bool LiesInSlowMemory() const { return layout_ && layout_->MemorySpace() == kSlowMemorySpace; }
  bool HasDefaultLayout() const {
    return !layout_ || layout_->minor_to_major == Layout::Descending(rank()).minor_to_major;
  }
  // Sets row-major layouts on every array leaf.
  void SetDefaultLayouts();
  void ClearLayouts();

  // Product of the extents (1 for a scalar, sum over nothing for tuples: 0).
  int64_t ElementCount() const;
  // Bytes in memory; tuples count their leaves; tokens take none.
  int64_t ByteSize() const;
  // Element strides of each logical dimension under the layout.
  Ints Strides() const;

  // Same type, extents and tuple structure; layouts and dynamic flags do not matter.
  bool Compatible(const Shape& o) const;
  bool CompatibleIgnoringType(const Shape& o) const;
  // Everything equal, layouts and dynamic flags included.
  bool operator==(const Shape& o) const;
  bool operator!=(const Shape& o) const { return !(*this == o); }

  std::string ToString(bool with_layout = true) const;

 private:
  PrimitiveType type_ = PrimitiveType::Tuple;
  Ints dims_;
  std::vector<bool> dynamic_;
  std::optional<Layout> layout_;
  std::vector<Shape> tuple_;
};

// Path of tuple indices from a value to one of its leaves.
using ShapeIndex = Ints;
// Calls fn(index, subshape) for every leaf (non-tuple), in order.
template <typename Fn>
void ForEachLeaf(const Shape& shape, Fn fn, ShapeIndex* prefix = nullptr) {
  ShapeIndex local;
  ShapeIndex& p = prefix ? *prefix : local;
  if (!shape.IsTuple()) {
    fn(static_cast<const ShapeIndex&>(p), shape);
    return;
  }
  for (size_t i = 0; i < shape.tuple().size(); ++i) {
    p.push_back(static_cast<int64_t>(i));
    ForEachLeaf(shape.tuple()[i], fn, &p);
    p.pop_back();
  }
}

// The leaves that are arrays, in order.
std::vector<Shape> ArrayLeaves(const Shape& shape);

int64_t Product(const Ints& v);

// The part of a shape that an index names; null if there is none.
const Shape* PartAt(const Shape& shape, const ShapeIndex& index);

}  // namespace kiln
