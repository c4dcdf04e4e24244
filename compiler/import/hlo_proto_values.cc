// Shapes and literals.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_join.h"
#include "compiler/import/hlo_proto_reader.h"

namespace kiln {

absl::StatusOr<Shape> ProtoReader::ToShape(const proto::ShapeProto& s, int depth) {
  if (depth > limits_.nesting) return Fail("shape", absl::StrCat("tuples nest deeper than ", limits_.nesting));
  auto type = TypeFromProto(s.element_type());
  if (!type) return Fail("shape", absl::StrCat("unknown element type ", s.element_type()));
  if (*type == PrimitiveType::Tuple) {
    std::vector<Shape> parts;
    for (const auto& t : s.tuple_shapes()) {
      ASSIGN_OR_RETURN(Shape e, ToShape(t, depth + 1));
      parts.push_back(std::move(e));
    }
    return Shape::Tuple(std::move(parts));
  }
  if (*type == PrimitiveType::Buffer) {
    if (s.tuple_shapes_size() != 1) return Fail("shape", "a buffer holds one array");
    ASSIGN_OR_RETURN(Shape array, ToShape(s.tuple_shapes(0), depth + 1));
    Shape buffer = Shape::Tuple({std::move(array)});
    buffer.set_type(PrimitiveType::Buffer);
    return buffer;
  }
  int64_t n = 1;
  for (int k = 0; k < s.dimensions_size(); ++k) {
    const int64_t d = s.dimensions(k);
    // -1: without a bound, which only a dynamic extent can be.
    if (d < -1 || (d == -1 && !(k < s.is_dynamic_dimension_size() && s.is_dynamic_dimension(k))))
      return Fail("shape", absl::StrCat("negative extent ", d));
    if (d > 0 && n > limits_.elements / d)
      return Fail("shape", absl::StrCat("more than ", limits_.elements, " elements"));
    n *= std::max<int64_t>(d, 1);
  }
  Shape out = Shape::Array(*type, ToInts(s.dimensions()));
  for (int d = 0; d < s.is_dynamic_dimension_size() && d < out.rank(); ++d)
    out.set_dynamic(d, s.is_dynamic_dimension(d));
  if (s.has_layout() && s.layout().minor_to_major_size() == out.rank()) {
    Layout l;
    l.minor_to_major = ToInts(s.layout().minor_to_major());
    std::vector<bool> seen(out.rank(), false);
    for (int64_t d : l.minor_to_major) {
      if (d < 0 || d >= out.rank() || seen[d]) return Fail("layout", "minor_to_major is no permutation");
      seen[d] = true;
    }
    for (const auto& t : s.layout().tiles())
      absl::StrAppend(&l.extras, l.extras.empty() ? "T(" : "(", absl::StrJoin(t.dimensions(), ","), ")");
    if (s.layout().element_size_in_bits()) absl::StrAppend(&l.extras, "E(", s.layout().element_size_in_bits(), ")");
    if (s.layout().memory_space()) absl::StrAppend(&l.extras, "S(", s.layout().memory_space(), ")");
    if (out.rank() > 0 || !l.extras.empty()) out.set_layout(std::move(l));  // as text has it
  }
  return out;
}

namespace {

using proto::LiteralProto;

template <typename Field>
std::string BytesOf(const Field& field) {
  return std::string(reinterpret_cast<const char*>(field.data()), field.size() * sizeof(*field.data()));
}
std::string BytesOf(const std::string& field) { return field; }

// Two elements of a byte as a byte each, the low half first.
std::string Halves(const std::string& field) {
  std::string out;
  for (char both : field) {
    out += static_cast<char>(both & 15);
    out += static_cast<char>(both >> 4 & 15);
  }
  return out;
}

struct FieldOfType {
  PrimitiveType type;
  std::string (*bytes)(const LiteralProto& p);
};

// The elements' bytes, in the order of the layout.
constexpr FieldOfType kFields[] = {
#define FIELD(type, read, field)                                               \
  {                                                                            \
    PrimitiveType::type, [](const LiteralProto& p) { return read(p.field()); } \
  }
    FIELD(Pred, BytesOf, preds),
    FIELD(S4, Halves, s4s),
    FIELD(S8, BytesOf, s8s),
    FIELD(S16, BytesOf, s16s),
    FIELD(S32, BytesOf, s32s),
    FIELD(S64, BytesOf, s64s),
    FIELD(U4, Halves, u4s),
    FIELD(U8, BytesOf, u8s),
    FIELD(U16, BytesOf, u16s),
    FIELD(U32, BytesOf, u32s),
    FIELD(U64, BytesOf, u64s),
    FIELD(F8E3M4, BytesOf, f8e3m4s),
    FIELD(F8E4M3, BytesOf, f8e4m3s),
    FIELD(F8E4M3FN, BytesOf, f8e4m3fns),
    FIELD(F8E4M3B11FNUZ, BytesOf, f8e4m3b11fnuzs),
    FIELD(F8E4M3FNUZ, BytesOf, f8e4m3fnuzs),
    FIELD(F8E5M2, BytesOf, f8e5m2s),
    FIELD(F8E5M2FNUZ, BytesOf, f8e5m2fnuzs),
    FIELD(F16, BytesOf, f16s),
    FIELD(BF16, BytesOf, bf16s),
    FIELD(F32, BytesOf, f32s),
    FIELD(F64, BytesOf, f64s),
    FIELD(C64, BytesOf, c64s),
    FIELD(C128, BytesOf, c128s),
#undef FIELD
};

// Elements that come in the order of `shape`'s layout; ours are row major.
Literal RowMajor(const Shape& shape, const std::string& bytes) {
  Literal l(shape);
  if (shape.HasDefaultLayout()) {
    if (!bytes.empty()) std::memcpy(l.mutable_data(), bytes.data(), bytes.size());
    return l;
  }
  const Ints strides = shape.Strides();
  const int64_t w = ByteWidth(shape.type());
  Ints index(shape.rank(), 0);
  for (int64_t k = 0; k < l.size(); ++k) {
    int64_t from = 0;
    for (int64_t d = 0; d < shape.rank(); ++d) from += index[d] * strides[d];
    std::memcpy(l.mutable_data() + k * w, bytes.data() + from * w, w);
    for (int64_t d = shape.rank() - 1; d >= 0 && ++index[d] == shape.dim(d); --d) index[d] = 0;
  }
  return l;
}

}  // namespace

absl::StatusOr<Literal> ProtoReader::ToLiteral(const proto::LiteralProto& p, int depth) {
  if (depth > 100) return Fail("literal", "tuples nest deeper than 100");
  ASSIGN_OR_RETURN(Shape shape, ToShape(p.shape()));
  if (shape.IsTuple()) {
    std::vector<Literal> parts;
    for (const auto& t : p.tuple_literals()) {
      ASSIGN_OR_RETURN(Literal e, ToLiteral(t, depth + 1));
      parts.push_back(std::move(e));
    }
    return Literal::Tuple(std::move(parts));
  }
  if (!shape.IsArray()) return Fail("literal", "not an array");
  for (const FieldOfType& field : kFields) {
    if (field.type != shape.type()) continue;
    std::string bytes = field.bytes(p);
    // A byte of halves may hold one element more than there are.
    if (BitWidth(shape.type()) == 4 && static_cast<int64_t>(bytes.size()) > shape.ByteSize())
      bytes.resize(static_cast<size_t>(shape.ByteSize()));
    if (static_cast<int64_t>(bytes.size()) != shape.ByteSize())
      return Fail("literal", absl::StrCat(bytes.size(), " bytes for ", shape.ToString(false)));
    return RowMajor(shape, bytes);
  }
  return Fail("literal", absl::StrCat("constants of ", TextOf(shape.type()), " are not supported in protos"));
}

}  // namespace kiln
