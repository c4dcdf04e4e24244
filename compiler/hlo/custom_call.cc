#include "compiler/hlo/custom_call.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "compiler/base/status.h"
#include "compiler/hlo/mlir_string.h"
#include "compiler/hlo/scanner.h"

namespace kiln {
namespace {

// i32, ui8, f64, i1 as MLIR writes them; HLO's own spellings too.
std::optional<PrimitiveType> ScalarType(absl::string_view text) {
  if (text == "i1") return PrimitiveType::Pred;
  if (absl::StartsWith(text, "ui")) return TypeFromText(absl::StrCat("u", text.substr(2)));
  if (absl::StartsWith(text, "si")) return TypeFromText(absl::StrCat("s", text.substr(2)));
  if (absl::StartsWith(text, "i")) return TypeFromText(absl::StrCat("s", text.substr(1)));
  return TypeFromText(text);
}

bool CanPass(PrimitiveType t) {
  return t == PrimitiveType::Pred || t == PrimitiveType::F32 || t == PrimitiveType::F64 ||
         (IsIntegral(t) && InfoOf(t).bits >= 8);
}

class DictionaryReader {
 public:
  explicit DictionaryReader(absl::string_view text) : s_(text, "backend_config") {}

  absl::StatusOr<std::vector<CallAttributeValue>> Read() {
    std::vector<CallAttributeValue> out;
    RETURN_IF_ERROR(s_.Expect("{"));
    while (!s_.Eat("}")) {
      if (!out.empty()) RETURN_IF_ERROR(s_.Expect(","));
      CallAttributeValue v;
      if (s_.Peek() == '"') {
        ASSIGN_OR_RETURN(v.name, ReadMlirString(&s_));
      } else {
        v.name = std::string(s_.Word("_.$-"));
      }
      if (v.name.empty()) return s_.Error("expected the name of an attribute");
      RETURN_IF_ERROR(s_.Expect("="));
      written_.clear();
      RETURN_IF_ERROR(Value(&v));
      RETURN_IF_ERROR(Settle(&v));
      out.push_back(std::move(v));
    }
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return out;
  }

 private:
  absl::Status Value(CallAttributeValue* v) {
    if (s_.Peek() == '"') {
      v->text = true;
      ASSIGN_OR_RETURN(v->string, ReadMlirString(&s_));
      return absl::OkStatus();
    }
    if (s_.Eat("array<")) {
      v->list = true;
      const std::string type(s_.Word());
      RETURN_IF_ERROR(Type(v, type));
      if (s_.Eat(":")) do
          RETURN_IF_ERROR(Number(v));
        while (s_.Eat(","));
      return s_.Expect(">");
    }
    if (s_.Eat("dense<")) {  // the elements of a tensor, in order
      v->list = true;
      while (!s_.Eat(">"))
        if (!s_.Eat("[") && !s_.Eat("]") && !s_.Eat(",")) RETURN_IF_ERROR(Number(v));
      RETURN_IF_ERROR(s_.Expect(":"));
      RETURN_IF_ERROR(s_.Expect("tensor<"));
      const std::string tensor(s_.Word());
      // Extents and type run together: 2x3xi32.
      const size_t type = tensor.rfind('x');
      RETURN_IF_ERROR(Type(v, type == std::string::npos ? tensor : tensor.substr(type + 1)));
      int64_t count = 1;
      for (size_t at = 0; type != std::string::npos && at <= type;) {
        const size_t end = tensor.find('x', at);
        int64_t extent;
        if (!absl::SimpleAtoi(tensor.substr(at, end - at), &extent) || extent < 0 || extent > (1 << 20))
          return s_.Error(absl::StrCat("attribute '", v->name, "' has an extent that is no number"));
        count = std::min<int64_t>(count * extent, 1 << 20);
        at = end + 1;
      }
      if (v->values.size() == 1) {
        v->values.resize(static_cast<size_t>(count), v->values[0]);
        written_.resize(static_cast<size_t>(count), written_[0]);
      }
      if (static_cast<int64_t>(v->values.size()) != count)
        return s_.Error(absl::StrCat("attribute '", v->name, "' has another number of elements than its type"));
      return s_.Expect(">");
    }
    if (s_.Eat("[")) {
      v->list = true;
      while (!s_.Eat("]")) {
        if (!v->values.empty()) RETURN_IF_ERROR(s_.Expect(","));
        RETURN_IF_ERROR(Typed(v));
      }
      return v->type == PrimitiveType::Opaque ? Type(v, "i64") : absl::OkStatus();
    }
    return Typed(v);
  }

  // A number and its type: `3 : i32`, `1.5`, `true`.
  absl::Status Typed(CallAttributeValue* v) {
    RETURN_IF_ERROR(Number(v));
    const Written how = written_.back();
    std::string type = how == Written::kBool ? "i1" : how == Written::kReal ? "f64" : "i64";
    if (s_.Eat(":")) type = std::string(s_.Word());
    return Type(v, type);
  }

  absl::Status Type(CallAttributeValue* v, absl::string_view text) {
    const auto t = ScalarType(text);
    if (!t || !CanPass(*t))
      return s_.Error(absl::StrCat("attribute '", v->name, "' has type '", text, "', which a C struct cannot hold"));
    if (v->list && v->type != PrimitiveType::Opaque && v->type != *t)
      return s_.Error(absl::StrCat("attribute '", v->name, "' mixes types"));
    v->type = *t;
    return absl::OkStatus();
  }

  absl::Status Number(CallAttributeValue* v) {
    s_.Peek();
    const std::string w(s_.Word("_.+-"));
    Element e;
    uint64_t u;
    if (w == "true" || w == "false") {
      e.i = w == "true";
      written_.push_back(Written::kBool);
    } else if (absl::SimpleAtoi(w, &e.i)) {
      written_.push_back(Written::kInteger);
    } else if (absl::SimpleAtoi(w, &u)) {
      e.i = static_cast<int64_t>(u);
      written_.push_back(Written::kLarge);
    } else if (absl::StartsWith(w, "0x") && absl::SimpleHexAtoi(w, &u)) {
      e.i = static_cast<int64_t>(u);
      written_.push_back(Written::kBits);
    } else if (absl::SimpleAtod(w, &e.re)) {
      written_.push_back(Written::kReal);
    } else {
      return s_.Error(absl::StrCat("attribute '", v->name, "' has a value that is no number, string or list"));
    }
    v->values.push_back(e);
    return absl::OkStatus();
  }

  // The numbers as values of the type, which stands behind them.
  absl::Status Settle(CallAttributeValue* v) {
    const PrimitiveType t = v->type;
    for (size_t k = 0; k < v->values.size(); ++k) {
      Element& e = v->values[k];
      bool fits;
      if (IsFloat(t)) {
        fits = written_[k] != Written::kBool;
        if (written_[k] == Written::kBits)
          e.re = DecodeFloat(t, static_cast<uint64_t>(e.i));
        else if (written_[k] != Written::kReal)
          e.re = written_[k] == Written::kLarge ? static_cast<double>(static_cast<uint64_t>(e.i))
                                                : static_cast<double>(e.i);
      } else {
        const int bits = InfoOf(t).bits;
        const uint64_t u = static_cast<uint64_t>(e.i);
        fits = written_[k] != Written::kReal && (t == PrimitiveType::Pred || written_[k] != Written::kBool);
        // Signless integers may be written either way.
        if (written_[k] == Written::kLarge || written_[k] == Written::kBits || e.i >= 0)
          fits = fits && (bits == 64 || u >> bits == 0);
        else
          fits = fits && IsSigned(t) && (bits == 64 || e.i >= -(int64_t{1} << (bits - 1)));
        e.i = WrapInt(t, e.i);
      }
      if (!fits)
        return s_.Error(absl::StrCat("attribute '", v->name, "' has a value that ", TextOf(t), " cannot hold"));
    }
    return absl::OkStatus();
  }

  enum class Written { kBool, kInteger, kLarge, kBits, kReal };

  Scanner s_;
  std::vector<Written> written_;  // how each number of the value was
};

std::string Unquoted(absl::string_view text) {
  if (text.empty() || text[0] != '"') return std::string(text);
  Scanner s(text, "backend_config");
  auto q = s.Quoted();
  return q.ok() ? *q : std::string(text);
}

// Functions that no host of a library can have, by how their names begin.
struct Foreign {
  absl::string_view prefix, reason;
};
constexpr absl::string_view kOfGpuLibrary =
    "' of a GPU's library: this program was optimised for a GPU, the CPU target has no such function";
constexpr absl::string_view kOfPython =
    "', a Python function of the process that traced the program (jax.pure_callback, io_callback, debug.print): a "
    "library has no Python";
constexpr Foreign kForeign[] = {
    {"__cublas", kOfGpuLibrary},    {"__cudnn", kOfGpuLibrary},
    {"__cusolver", kOfGpuLibrary},  {"__gpu", kOfGpuLibrary},
    {"__triton", kOfGpuLibrary},    {"xla_python_", kOfPython},
    {"xla_ffi_python_", kOfPython}, {"xla_ffi_partitioned_python_", kOfPython},
};

}  // namespace

absl::StatusOr<CustomCallSignature> SignatureOf(const Instruction* call) {
  CustomCallSignature s;
  const Attributes& a = call->attrs();
  s.target = a.custom_call_target ? a.custom_call_target->text : "";
  if (s.target.empty()) return ErrorAt(call, "names no target");
  for (unsigned char c : s.target)
    if (c <= ' ' || c >= 127 || c == '"' || c == '\\')
      return ErrorAt(call, absl::StrCat("target '", s.target, "' cannot be a symbol"));
  for (const Foreign& f : kForeign)
    if (absl::StartsWith(s.target, f.prefix))
      return ErrorAt(call, absl::StrCat("calls '", s.target, f.reason), absl::StatusCode::kUnimplemented);
  s.api = a.api_version.value_or(ApiVersion::API_VERSION_ORIGINAL);
  const std::string config = a.backend_config ? Unquoted(a.backend_config->text) : "";
  if (s.api == ApiVersion::API_VERSION_STATUS_RETURNING_UNIFIED) s.opaque = config;
  if (s.api == ApiVersion::API_VERSION_TYPED_FFI && !absl::StripAsciiWhitespace(config).empty()) {
    auto attributes = DictionaryReader(config).Read();
    if (!attributes.ok()) return ErrorAt(call, attributes.status().message());
    s.attributes = std::move(*attributes);
  }
  return s;
}

bool SamePrototype(const CustomCallSignature& a, const CustomCallSignature& b) {
  return a.target == b.target && a.api == b.api &&
         std::equal(a.attributes.begin(), a.attributes.end(), b.attributes.begin(), b.attributes.end(),
                    [](const CallAttributeValue& x, const CallAttributeValue& y) {
                      return x.name == y.name && x.type == y.type && x.list == y.list && x.text == y.text;
                    });
}

}  // namespace kiln
