// Types of the versioned and of the builtin dialect.
#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "compiler/base/status.h"
#include "compiler/import/bytecode/codes.h"
#include "compiler/import/bytecode/vhlo.h"

namespace kiln::bytecode {
namespace {

const char* ElementText(uint64_t code) {
  switch (code) {
#define VHLO_OP(...)
#define VHLO_ENUM(...)
#define VHLO_TYPE(code, text) \
  case code:                  \
    return text;
#include "compiler/import/bytecode/vhlo.def"
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<FunctionType> Tables::Function(uint64_t attribute) {
  ASSIGN_OR_RETURN(Cursor c, Open(attribute, kType, kBuiltinType, "a type"));
  const uint64_t index = c.Varint();
  RETURN_IF_ERROR(Check(c));
  ASSIGN_OR_RETURN(const Entry* e, Find(in_.types, index, "type"));
  Cursor t = e->bytes;
  if (e->dialect != "vhlo" || !e->custom || t.Varint() != kFunction) return Fail(t, "the type of a function is none");
  FunctionType f;
  for (std::vector<mlir::Type>* list : {&f.inputs, &f.results}) {
    const uint64_t n = t.Count();
    for (uint64_t k = 0; k < n; ++k) {
      const uint64_t one = t.Varint();
      RETURN_IF_ERROR(Check(t));
      ASSIGN_OR_RETURN(mlir::Type type, TypeAt(one));
      list->push_back(std::move(type));
    }
  }
  RETURN_IF_ERROR(Check(t));
  return f;
}

absl::StatusOr<std::string> Tables::TypeText(uint64_t index) {
  ASSIGN_OR_RETURN(const Entry* e, Find(in_.types, index, "type"));
  Cursor c = e->bytes;
  const uint64_t code = c.Varint();
  if (e->dialect == "vhlo" && e->custom) {
    if (const char* text = ElementText(code)) return std::string(text);
    if (code == kNone) return std::string("none");
  }
  ASSIGN_OR_RETURN(mlir::Type type, TypeAt(index));
  return type.ToString(false);
}

absl::StatusOr<mlir::Type> Tables::TypeAt(uint64_t index) {
  ASSIGN_OR_RETURN(const Entry* e, Find(in_.types, index, "type"));
  if (!types_[index]) {
    if (depth_ >= kMaxDepth) return Fail(e->bytes, "types nest too deep, or hold themselves");
    ++depth_;
    auto type = ReadType(*e);
    --depth_;
    RETURN_IF_ERROR(type.status());
    types_[index] = std::move(*type);
  }
  return *types_[index];
}

absl::StatusOr<mlir::Type> Tables::ReadType(const Entry& e) {
  Cursor c = e.bytes;
  if (!e.custom) {
    std::string text(c.Bytes(c.left()));
    if (!text.empty() && text.back() == 0) text.pop_back();
    auto type = mlir::ParseType(text);
    return type.ok() ? std::move(type) : Fail(e.bytes, absl::StrCat("type '", text, "' is not supported"));
  }
  const uint64_t code = c.Varint();
  RETURN_IF_ERROR(Check(c));
  if (e.dialect == "builtin") return ReadBuiltinType(c, code);
  if (e.dialect != "vhlo") return Fail(c, absl::StrCat("a type of dialect '", e.dialect, "'"));
  if (const char* text = ElementText(code)) {
    const auto t = mlir::ElementType(text);
    if (!t) return Fail(c, absl::StrCat("element type ", text, " is not supported"));
    return mlir::Type(Shape::Scalar(*t));
  }
  switch (code) {
    case kComplex: {
      const uint64_t part = c.Varint();
      RETURN_IF_ERROR(Check(c));
      ASSIGN_OR_RETURN(mlir::Type t, TypeAt(part));
      if (t.type() != PrimitiveType::F32 && t.type() != PrimitiveType::F64)
        return Fail(c, "complex numbers of parts that are neither f32 nor f64");
      return mlir::Type(Shape::Scalar(ComplexOf(t.type())));
    }
    case kRankedTensor:
      return ReadTensorType(c, false);
    case kRankedTensorExtended:
      return ReadTensorType(c, true);
    case kToken:
      return mlir::Type(Shape::Token());
    case kTuple: {
      const uint64_t n = c.Count();
      std::vector<Shape> parts;
      for (uint64_t k = 0; k < n; ++k) {
        const uint64_t one = c.Varint();
        RETURN_IF_ERROR(Check(c));
        ASSIGN_OR_RETURN(mlir::Type t, TypeAt(one));
        // A tuple of tuples of tuples may double at each level.
        if (parts.size() + t.tuple().size() > 4096 || (depth_ > 8 && t.IsTuple()))
          return Fail(c, "a tuple type of too many parts");
        parts.push_back(std::move(t));
      }
      RETURN_IF_ERROR(Check(c));
      return mlir::Type(Shape::Tuple(std::move(parts)));
    }
    case kQuantized:
    case kQuantizedPerAxis:
      return ReadQuantized(c, code == kQuantizedPerAxis);
    default:
      return Fail(c, absl::StrCat("VHLO type kind ", code, " is not known to this version of kiln"));
  }
}

absl::StatusOr<mlir::Type> Tables::ReadBuiltinType(Cursor& c, uint64_t code) {
  if (code == kBuiltinRankedTensor) return ReadTensorType(c, false);
  std::string text;
  if (code == kBuiltinIntegerType) {
    const uint64_t v = c.Varint();  // width and signedness: none, signed, unsigned
    text = absl::StrCat((v & 3) == 2 ? "ui" : "i", v >> 2);
  } else {
    text = code == kBuiltinIndex  ? "index"
           : code == kBuiltinBf16 ? "bf16"
           : code == kBuiltinF16  ? "f16"
           : code == kBuiltinF32  ? "f32"
           : code == kBuiltinF64  ? "f64"
                                  : "";
  }
  RETURN_IF_ERROR(Check(c));
  const auto t = mlir::ElementType(text);
  if (!t) return Fail(c, absl::StrCat("builtin type ", code, " '", text, "' is not supported"));
  return mlir::Type(Shape::Scalar(*t));
}

absl::StatusOr<mlir::Type> Tables::ReadTensorType(Cursor& c, bool extended) {
  std::vector<int64_t> bounds;
  if (extended) {
    const uint64_t index = c.Varint();
    RETURN_IF_ERROR(Check(c));
    ASSIGN_OR_RETURN(Cursor b, Open(index, kExtensions, ~uint64_t{0}, "a tensor's bounds"));
    bounds.resize(b.Count());
    for (int64_t& x : bounds) x = b.SignedVarint();
    RETURN_IF_ERROR(Check(b));
  }
  const uint64_t rank = c.Count();
  Ints dims;
  std::vector<bool> dynamic;
  int64_t elements = 1;
  for (uint64_t d = 0; d < rank && c.ok(); ++d) {
    int64_t extent = c.SignedVarint();
    dynamic.push_back(extent == INT64_MIN);
    if (dynamic.back())
      extent = d < bounds.size() && bounds[d] >= 0 ? bounds[d] : -1;
    else if (extent < 0)
      return Fail(c, absl::StrCat("extent ", extent));
    if (extent > 0 && elements > (int64_t{1} << 40) / extent) return Fail(c, "more elements than kiln handles (2^40)");
    elements *= std::max<int64_t>(extent, 1);
    dims.push_back(extent);
  }
  const uint64_t element = c.Varint();
  RETURN_IF_ERROR(Check(c));
  ASSIGN_OR_RETURN(mlir::Type of, TypeAt(element));
  if (!of.IsArray() || of.rank() != 0) return Fail(c, "a tensor's elements are no numbers");
  mlir::Type type = Shape::Array(of.type(), dims);
  type.quantized = of.quantized;
  for (size_t d = 0; d < dims.size(); ++d) type.set_dynamic(static_cast<int64_t>(d), dynamic[d]);
  return type;
}

absl::StatusOr<mlir::Type> Tables::ReadQuantized(Cursor& c, bool per_axis) {
  QuantizedType q;
  const bool is_signed = c.Varint() & 1;
  const uint64_t storage = c.Varint(), expressed = c.Varint();
  RETURN_IF_ERROR(Check(c));
  ASSIGN_OR_RETURN(mlir::Type s, TypeAt(storage));
  ASSIGN_OR_RETURN(mlir::Type e, TypeAt(expressed));
  if (!s.IsArray() || !IsIntegral(s.type()) || !e.IsArray() || !IsFloat(e.type()))
    return Fail(c, "a quantized type's storage is no integer, or what it expresses no float");
  std::string text(TextOf(s.type()));
  text[0] = is_signed ? 's' : 'u';
  q.storage = TypeFromText(text).value_or(s.type());
  q.expressed = e.type();
  if (per_axis) {
    q.axis = static_cast<int64_t>(c.Varint());
    q.low = c.SignedVarint();
    q.high = c.SignedVarint();
    q.scales.resize(c.Count());
    for (double& x : q.scales) x = std::bit_cast<double>(c.SignedVarint());
    q.zero_points.resize(c.Count());
    for (int64_t& x : q.zero_points) x = c.SignedVarint();
  } else {
    q.scales = {std::bit_cast<double>(c.SignedVarint())};
    q.zero_points = {c.SignedVarint()};
    q.low = c.SignedVarint();
    q.high = c.SignedVarint();
  }
  RETURN_IF_ERROR(Check(c));
  if (q.scales.size() != q.zero_points.size() || q.scales.empty() || q.axis < -1 || q.low > q.high)
    return Fail(c, "a quantized type's parameters contradict each other");
  mlir::Type out = Shape::Scalar(q.storage);
  out.quantized = std::make_shared<QuantizedType>(std::move(q));
  return out;
}

}  // namespace kiln::bytecode
