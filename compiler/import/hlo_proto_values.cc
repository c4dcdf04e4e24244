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
  for (int64_t d : s.dimensions()) {
    if (d < -1) return Fail("shape", absl::StrCat("negative extent ", d));
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
  const int64_t n = shape.ElementCount();
  // Elements come in the layout's order; ours are row major.
  const std::optional<Layout> layout = shape.layout();
  const PrimitiveType t = shape.type();
  std::string bytes;
  auto take = [&](const auto& field) {
    using E = std::decay_t<decltype(field[0])>;
    bytes.assign(reinterpret_cast<const char*>(field.data()), field.size() * sizeof(E));
  };
  switch (t) {
    case PrimitiveType::Pred:
      for (bool b : p.preds()) bytes += static_cast<char>(b);
      break;
    case PrimitiveType::S32:
      take(p.s32s());
      break;
    case PrimitiveType::S64:
      take(p.s64s());
      break;
    case PrimitiveType::U32:
      take(p.u32s());
      break;
    case PrimitiveType::U64:
      take(p.u64s());
      break;
    case PrimitiveType::F32:
      take(p.f32s());
      break;
    case PrimitiveType::F64:
      take(p.f64s());
      break;
    case PrimitiveType::C64:
      take(p.c64s());
      break;
    case PrimitiveType::C128:
      take(p.c128s());
      break;
    case PrimitiveType::S8:
      bytes = p.s8s();
      break;
    case PrimitiveType::U8:
      bytes = p.u8s();
      break;
    case PrimitiveType::S16:
      bytes = p.s16s();
      break;
    case PrimitiveType::U16:
      bytes = p.u16s();
      break;
    case PrimitiveType::F16:
      bytes = p.f16s();
      break;
    case PrimitiveType::BF16:
      bytes = p.bf16s();
      break;
    case PrimitiveType::F8E5M2:
      bytes = p.f8e5m2s();
      break;
    case PrimitiveType::F8E4M3FN:
      bytes = p.f8e4m3fns();
      break;
    case PrimitiveType::F8E4M3B11FNUZ:
      bytes = p.f8e4m3b11fnuzs();
      break;
    case PrimitiveType::F8E5M2FNUZ:
      bytes = p.f8e5m2fnuzs();
      break;
    case PrimitiveType::F8E4M3FNUZ:
      bytes = p.f8e4m3fnuzs();
      break;
    case PrimitiveType::F8E4M3:
      bytes = p.f8e4m3s();
      break;
    case PrimitiveType::F8E3M4:
      bytes = p.f8e3m4s();
      break;
    case PrimitiveType::S4:
    case PrimitiveType::U4: {  // packed, low nibble first
      const std::string& q = t == PrimitiveType::S4 ? p.s4s() : p.u4s();
      for (int64_t k = 0; k < n && k / 2 < static_cast<int64_t>(q.size()); ++k)
        bytes += static_cast<char>((q[k / 2] >> (k % 2 * 4)) & 15);
      break;
    }
    default:
      return Fail("literal", absl::StrCat("constants of ", TextOf(t), " are not supported in protos"));
  }
  if (static_cast<int64_t>(bytes.size()) != shape.ByteSize())
    return Fail("literal", absl::StrCat(bytes.size(), " bytes for ", shape.ToString(false)));
  Literal l(shape);
  shape.set_layout(layout);
  if (shape.HasDefaultLayout()) {
    if (n) std::memcpy(l.mutable_data(), bytes.data(), bytes.size());
    return l;
  }
  const Ints strides = shape.Strides();
  const int64_t w = ByteWidth(t);
  Ints index(shape.rank(), 0);
  for (int64_t k = 0; k < n; ++k) {
    int64_t from = 0;
    for (int64_t d = 0; d < shape.rank(); ++d) from += index[d] * strides[d];
    std::memcpy(l.mutable_data() + k * w, bytes.data() + from * w, w);
    for (int64_t d = shape.rank() - 1; d >= 0 && ++index[d] == shape.dim(d); --d) index[d] = 0;
  }
  return l;
}

}  // namespace kiln
