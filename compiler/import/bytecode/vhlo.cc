#include "compiler/import/bytecode/vhlo.h"

#include <bit>
#include <cmath>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/base/status.h"
#include "compiler/hlo/mlir_string.h"
#include "compiler/import/bytecode/codes.h"
#include "compiler/import/dense.h"

namespace kiln::bytecode {
namespace {

constexpr int64_t kMaxListedElements = 1 << 16;

struct EnumInfo {
  absl::string_view name;
  std::vector<std::string> words;
};

const EnumInfo* EnumOf(uint64_t code) {
  static const auto* const table = new absl::flat_hash_map<uint64_t, EnumInfo>{
#define VHLO_OP(...)
#define VHLO_TYPE(...)
#define VHLO_ENUM(code, name, words) {code, {name, absl::StrSplit(words, ' ')}},
#include "compiler/import/bytecode/vhlo.def"
  };
  auto it = table->find(code);
  return it == table->end() ? nullptr : &it->second;
}

double DoubleOf(int64_t bits) { return std::bit_cast<double>(bits); }

// A number of its own, or the bits of what is none.
std::string NumberText(PrimitiveType type, double v) {
  return std::isfinite(v) ? absl::StrFormat("%.17g", v) : absl::StrFormat("0x%X", EncodeFloat(type, v));
}

// "[[1, 2], [3, 4]]" of a literal.
void Nested(const Literal& l, int64_t dim, int64_t* next, std::string* out) {
  if (dim == l.shape().rank()) {
    const Element e = l.Get((*next)++);
    if (l.type() == PrimitiveType::Pred)
      *out += e.i ? "true" : "false";
    else if (IsFloat(l.type()))
      *out += NumberText(l.type(), e.re);
    else
      absl::StrAppend(out, e.i);
    return;
  }
  *out += '[';
  for (int64_t k = 0; k < l.shape().dim(dim); ++k) {
    if (k) *out += ", ";
    Nested(l, dim + 1, next, out);
  }
  *out += ']';
}

// A dictionary's key that needs no quotes.
bool IsBareIdentifier(absl::string_view key) {
  if (key.empty() || absl::ascii_isdigit(key[0])) return false;
  for (char c : key)
    if (!absl::ascii_isalnum(c) && c != '_' && c != '.' && c != '$') return false;
  return true;
}

std::string MlirElement(PrimitiveType t) {
  if (t == PrimitiveType::Pred) return "i1";
  const std::string text(TextOf(t));
  if (IsSigned(t)) return "i" + text.substr(1);
  if (IsUnsigned(t)) return "ui" + text.substr(1);
  return text;
}

}  // namespace

const std::vector<std::string>* AttributesOf(absl::string_view op) {
  static const auto* const table = new absl::flat_hash_map<std::string, std::vector<std::string>>{
#define VHLO_TYPE(...)
#define VHLO_ENUM(...)
#define VHLO_OP(name, attributes) {#name, absl::StrSplit(attributes, ' ')},
#include "compiler/import/bytecode/vhlo.def"
  };
  auto it = table->find(op);
  return it == table->end() ? nullptr : &it->second;
}

Tables::Tables(const Container& container, const std::string& file)
    : in_(container), file_(file), texts_(container.attributes.size()), types_(container.types.size()) {
  // Attributes share parts, which texts repeat: honest files stay far below this.
  size_t size = 0;
  for (const Entry& e : container.attributes) size += e.bytes.left();
  text_left_ = 64 * size + (1 << 20);
}

absl::Status Tables::Check(const Cursor& c) const {
  return c.ok() ? absl::OkStatus() : Fail(c, "an attribute or type ends too early");
}

absl::StatusOr<const Entry*> Tables::Find(const std::vector<Entry>& table, uint64_t index,
                                          absl::string_view what) const {
  if (index >= table.size())
    return InvalidArgument(file_, ":1:1: error: bytecode: ", what, " ", index, " of ", table.size());
  return &table[index];
}

absl::StatusOr<std::string> Tables::RawString(Cursor& c) {
  const uint64_t index = c.Varint();
  RETURN_IF_ERROR(Check(c));
  if (index >= in_.strings.size()) return Fail(c, absl::StrCat("there is no string ", index));
  return std::string(in_.strings[index]);
}

absl::StatusOr<Cursor> Tables::Open(uint64_t index, uint64_t code, uint64_t builtin, absl::string_view what) const {
  ASSIGN_OR_RETURN(const Entry* e, Find(in_.attributes, index, "attribute"));
  Cursor c = e->bytes;
  const uint64_t found = c.Varint();
  if (!e->custom || !c.ok() || found != (e->dialect == "vhlo" ? code : builtin))
    return Fail(c, absl::StrCat("attribute ", index, " is not ", what));
  return c;
}

absl::StatusOr<Dictionary> Tables::Entries(uint64_t index) {
  ASSIGN_OR_RETURN(Cursor c, Open(index, kDictionary, kBuiltinDictionary, "a dictionary"));
  const uint64_t n = c.Count();
  Dictionary out;
  for (uint64_t k = 0; k < n; ++k) {
    const uint64_t name = c.Varint(), value = c.Varint();
    RETURN_IF_ERROR(Check(c));
    ASSIGN_OR_RETURN(std::string key, String(name));
    ASSIGN_OR_RETURN(std::string text, Attribute(value));
    out.push_back({std::move(key), std::move(text)});
  }
  RETURN_IF_ERROR(Check(c));
  return out;
}

absl::StatusOr<std::vector<uint64_t>> Tables::Elements(uint64_t index) {
  ASSIGN_OR_RETURN(Cursor c, Open(index, kArray, kBuiltinArray, "an array"));
  std::vector<uint64_t> out(c.Count());
  for (uint64_t& e : out) e = c.Varint();
  RETURN_IF_ERROR(Check(c));
  return out;
}

absl::StatusOr<std::string> Tables::String(uint64_t index) {
  ASSIGN_OR_RETURN(Cursor c, Open(index, kString, kBuiltinString, "a string"));
  return RawString(c);
}

absl::StatusOr<std::string> Tables::Attribute(uint64_t index) {
  ASSIGN_OR_RETURN(const Entry* e, Find(in_.attributes, index, "attribute"));
  // A dictionary states tensors in full, so that its text need not serve elsewhere.
  if (in_dictionary_ || !texts_[index]) {
    if (depth_ >= kMaxDepth) return Fail(e->bytes, "attributes nest too deep, or hold themselves");
    ++depth_;
    auto text = ReadAttribute(*e);
    --depth_;
    RETURN_IF_ERROR(text.status());
    if (in_dictionary_) {
      RETURN_IF_ERROR(Charge(*text, *e));
      return text;
    }
    texts_[index] = std::move(*text);
  }
  RETURN_IF_ERROR(Charge(*texts_[index], *e));
  return *texts_[index];
}

absl::Status Tables::Charge(const std::string& text, const Entry& e) {
  if (text.size() > text_left_) return Fail(e.bytes, "attributes that are out of proportion to the file");
  text_left_ -= text.size();
  return absl::OkStatus();
}

absl::StatusOr<std::string> Tables::ReadAttribute(const Entry& e) {
  if (!e.custom) {
    Cursor c = e.bytes;
    std::string text(c.Bytes(c.left()));
    if (!text.empty() && text.back() == 0) text.pop_back();
    return text;
  }
  if (e.dialect == "vhlo") return ReadVhlo(e.bytes);
  if (e.dialect == "builtin") return ReadBuiltin(e.bytes);
  if (e.dialect == "sdy") return ReadSdy(e.bytes);
  return Fail(e.bytes, absl::StrCat("an attribute of dialect '", e.dialect, "' in binary form"));
}

absl::StatusOr<std::vector<std::string>> Tables::Texts(Cursor& c) {
  const uint64_t n = c.Count();
  std::vector<std::string> texts;
  for (uint64_t k = 0; k < n; ++k) {
    const uint64_t index = c.Varint();
    RETURN_IF_ERROR(Check(c));
    ASSIGN_OR_RETURN(std::string text, Attribute(index));
    texts.push_back(std::move(text));
  }
  RETURN_IF_ERROR(Check(c));
  return texts;
}

absl::StatusOr<std::string> Tables::ReadList(Cursor& c) {
  ASSIGN_OR_RETURN(const std::vector<std::string> parts, Texts(c));
  return absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
}

absl::StatusOr<std::string> Tables::ReadDictionary(Cursor& c) {
  const uint64_t n = c.Count();
  std::vector<std::string> parts;
  const bool outer = std::exchange(in_dictionary_, true);
  const absl::Cleanup restore = [&] { in_dictionary_ = outer; };
  for (uint64_t k = 0; k < n; ++k) {
    const uint64_t name = c.Varint(), value = c.Varint();
    RETURN_IF_ERROR(Check(c));
    ASSIGN_OR_RETURN(std::string key, String(name));
    ASSIGN_OR_RETURN(std::string text, Attribute(value));
    parts.push_back(absl::StrCat(IsBareIdentifier(key) ? key : QuoteMlir(key), " = ", text));
  }
  RETURN_IF_ERROR(Check(c));
  return absl::StrCat("{", absl::StrJoin(parts, ", "), "}");
}

absl::StatusOr<std::string> Tables::ReadInteger(Cursor& c) {
  const uint64_t index = c.Varint();
  ASSIGN_OR_RETURN(mlir::Type type, TypeAt(index));
  if (!type.IsArray() || type.rank() != 0) return Fail(c, "an integer's type is none");
  const bool byte = InfoOf(type.type()).bits <= 8;
  const int64_t v = byte ? static_cast<int8_t>(c.Byte()) : c.SignedVarint();
  RETURN_IF_ERROR(Check(c));
  if (type.type() == PrimitiveType::Pred) return std::string(v ? "true" : "false");
  return absl::StrCat(WrapInt(type.type(), v), " : ", MlirElement(type.type()));
}

// Integers in full, so that every reader of lists understands them; in a dictionary, floats too; other elements as
// bytes.
absl::StatusOr<std::string> Tables::ReadTensor(Cursor& c, bool builtin) {
  const uint64_t index = c.Varint();
  if (builtin && index >= in_.types.size()) return Fail(c, "a tensor's type is none");
  ASSIGN_OR_RETURN(mlir::Type type, TypeAt(index));
  const absl::string_view bytes = c.Bytes(c.Varint());
  RETURN_IF_ERROR(Check(c));
  if (!type.IsArray()) return Fail(c, "a tensor's type is none");
  std::vector<std::string> extents;
  for (int64_t d : type.dims()) {
    if (d < 0) return Fail(c, "a tensor attribute has an unknown extent");
    extents.push_back(absl::StrCat(d, "x"));
  }
  const std::string suffix = absl::StrCat(" : tensor<", absl::StrJoin(extents, ""), MlirElement(type.type()), ">");
  const bool listed =
      type.ElementCount() <= kMaxListedElements &&
      (in_dictionary_ ? !IsComplex(type.type())
                      : (IsIntegral(type.type()) || type.type() == PrimitiveType::Pred) && type.rank() > 0);
  if (!listed) return absl::StrCat("dense<bytes:", bytes, ">");
  if (type.ElementCount() == 0)
    return type.rank() == 1 ? absl::StrCat("array<", MlirElement(type.type()), ">") : absl::StrCat("dense<>", suffix);
  auto l = DenseFromBytes(bytes, Shape::Array(type.type(), type.dims()));
  if (!l.ok()) return Fail(c, l.status().message());
  std::string text;
  int64_t next = 0;
  Nested(*l, 0, &next, &text);
  if (type.rank() == 1)
    return absl::StrCat("array<", MlirElement(type.type()), ": ", text.substr(1, text.size() - 2), ">");
  return absl::StrCat("dense<", text, ">", suffix);
}

absl::StatusOr<std::string> Tables::ReadVhlo(Cursor c) {
  const uint64_t code = c.Varint();
  if (const EnumInfo* e = EnumOf(code)) {
    const uint64_t v = c.Varint();
    RETURN_IF_ERROR(Check(c));
    if (v >= e->words.size()) return Fail(c, absl::StrCat(e->name, " ", v, " is not known"));
    return absl::StrCat("#stablehlo<", e->name, " ", e->words[v], ">");
  }
  switch (code) {
    case kArray:
      return ReadList(c);
    case kBoolean: {
      const bool v = c.Varint() != 0;
      RETURN_IF_ERROR(Check(c));
      return std::string(v ? "true" : "false");
    }
    case kApiVersion: {
      const uint64_t v = c.Varint();
      RETURN_IF_ERROR(Check(c));
      return absl::StrCat(v, " : i32");
    }
    case kDictionary:
      return ReadDictionary(c);
    case kFloat: {
      const uint64_t index = c.Varint();
      ASSIGN_OR_RETURN(mlir::Type type, TypeAt(index));
      if (!type.IsArray() || !IsFloat(type.type())) return Fail(c, "a float's type is none");
      const int64_t bits = InfoOf(type.type()).bits <= 8 ? c.Byte() : c.SignedVarint();
      RETURN_IF_ERROR(Check(c));
      return absl::StrCat(NumberText(type.type(), DecodeFloat(type.type(), static_cast<uint64_t>(bits))), " : ",
                          MlirElement(type.type()));
    }
    case kInteger:
      return ReadInteger(c);
    case kOutputOperandAlias: {
      std::string tuple[2];
      uint64_t operand = 0;
      for (int part = 0; part < 2; ++part) {
        std::vector<int64_t> v(c.Count());
        for (int64_t& x : v) x = c.SignedVarint();
        tuple[part] = absl::StrCat("[", absl::StrJoin(v, ", "), "]");
        if (part == 0) operand = c.Varint();
      }
      RETURN_IF_ERROR(Check(c));
      return absl::StrCat("#stablehlo.output_operand_alias<output_tuple_indices = ", tuple[0],
                          ", operand_index = ", operand, ", operand_tuple_indices = ", tuple[1], ">");
    }
    case kString: {
      ASSIGN_OR_RETURN(std::string text, RawString(c));
      return QuoteMlir(text);
    }
    case kTensor:
      return ReadTensor(c, false);
    case kType: {
      const uint64_t index = c.Varint();
      RETURN_IF_ERROR(Check(c));
      return TypeText(index);
    }
    case kResultAccuracy: {
      const double atol = DoubleOf(c.SignedVarint()), rtol = DoubleOf(c.SignedVarint());
      const int64_t ulps = c.SignedVarint();
      const uint64_t mode = c.Varint();
      RETURN_IF_ERROR(Check(c));
      ASSIGN_OR_RETURN(std::string text, Attribute(mode));
      return absl::StrFormat("#stablehlo.result_accuracy<atol = %.17g, rtol = %.17g, ulps = %d, mode = %s>", atol, rtol,
                             ulps, text);
    }
    default:
      return Fail(c, absl::StrCat("VHLO attribute kind ", code, " is not known to this version of kiln"));
  }
}

absl::StatusOr<std::string> Tables::ReadBuiltin(Cursor c) {
  const uint64_t code = c.Varint();
  switch (code) {
    case kBuiltinArray:
      return ReadList(c);
    case kBuiltinDictionary:
      return ReadDictionary(c);
    case kBuiltinString: {
      ASSIGN_OR_RETURN(std::string text, RawString(c));
      return QuoteMlir(text);
    }
    case kBuiltinSymbol: {
      const uint64_t index = c.Varint();
      RETURN_IF_ERROR(Check(c));
      ASSIGN_OR_RETURN(const std::string name, String(index));
      return "@" + name;
    }
    case kBuiltinType: {
      const uint64_t index = c.Varint();
      RETURN_IF_ERROR(Check(c));
      return TypeText(index);
    }
    case kBuiltinUnit:
      return std::string("unit");
    case kBuiltinInteger:
      return ReadInteger(c);
    case kBuiltinFloat: {
      const uint64_t index = c.Varint();
      ASSIGN_OR_RETURN(mlir::Type type, TypeAt(index));
      const int64_t bits = c.SignedVarint();
      RETURN_IF_ERROR(Check(c));
      if (!type.IsArray() || !IsFloat(type.type())) return Fail(c, "a float's type is none");
      return absl::StrCat(NumberText(type.type(), DecodeFloat(type.type(), static_cast<uint64_t>(bits))), " : ",
                          MlirElement(type.type()));
    }
    case kBuiltinDense:
      return ReadTensor(c, true);
    default:
      // Locations and the like say nothing to a compiler.
      return absl::StrCat("#builtin<", code, ">");
  }
}

}  // namespace kiln::bytecode
