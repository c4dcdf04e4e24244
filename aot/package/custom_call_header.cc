#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "aot/package/header_text.h"
#include "aot/package/names.h"
#include "compiler/base/text.h"

namespace kiln {

// What the host program's own functions must look like.
std::string CustomCallDeclarations(const CompiledModel& m) {
  if (m.custom_calls.empty()) return "";
  std::string out = R"(
// Functions that the program must provide; a missing one is a link error that names it. They run on the thread that
// runs the model; arrays are row major.
)";
  bool status = false, typed = false;
  for (const CustomCallSignature& c : m.custom_calls) {
    status = status || c.api == ApiVersion::API_VERSION_STATUS_RETURNING ||
             c.api == ApiVersion::API_VERSION_STATUS_RETURNING_UNIFIED;
    typed = typed || c.api == ApiVersion::API_VERSION_TYPED_FFI;
  }
  if (status)
    out += R"(// Zero at the call; a code other than 0 ends the run with $UPPER_CUSTOM_CALL.
typedef struct $NAME_call_status {
  int32_t code;
  const char* message;
  size_t message_size;
} $NAME_call_status;
)";
  if (typed) {
    out += R"(// An array that a function reads or writes. `type` is one of the numbers below.
typedef struct $NAME_buffer {
  void* data;
  const int64_t* dims;
  int32_t rank;
  int32_t type;
} $NAME_buffer;
enum {
)";
#define TYPE(e, text, bits, proto, cls, ...) \
  if (IsArrayType(PrimitiveType::e))         \
    absl::StrAppend(&out, "  $UPPER_TYPE_", absl::AsciiStrToUpper(text), " = ", proto, ",\n");
#include "compiler/hlo/types.def"
    out += "};\n";
  }
  const std::vector<std::string> functions = NameCallTargets(m.custom_calls, m.name);
  for (size_t k = 0; k < m.custom_calls.size(); ++k) {
    const CustomCallSignature& c = m.custom_calls[k];
    const std::string& id = functions[k];
    absl::StrAppend(&out, "\n// Custom call \"", c.target, "\".\n");
    std::string parameters;
    switch (c.api) {
      case ApiVersion::API_VERSION_ORIGINAL:
        parameters = "void* out, const void** in";
        break;
      case ApiVersion::API_VERSION_STATUS_RETURNING:
        parameters = "void* out, const void** in, $NAME_call_status* status";
        break;
      case ApiVersion::API_VERSION_STATUS_RETURNING_UNIFIED:
        parameters = "void* out, const void** in, const char* opaque, size_t opaque_size, $NAME_call_status* status";
        break;
      case ApiVersion::API_VERSION_TYPED_FFI: {
        const std::string type = absl::StrCat("$NAME_", id, "_attributes");
        absl::StrAppend(&out, "typedef struct ", type);
        if (!c.attributes.empty()) {
          out += " {\n";
          const std::vector<std::string> fields = NameAttributes(c, m.name);
          for (size_t f = 0; f < fields.size(); ++f) {
            const CallAttributeValue& a = c.attributes[f];
            const std::string& field = fields[f];
            if (a.text)
              absl::StrAppend(&out, "  const char* ", field, ";\n  size_t ", field, "_size;\n");
            else if (a.list)
              absl::StrAppend(&out, "  const ", CType(a.type), "* ", field, ";\n  size_t ", field, "_size;\n");
            else
              absl::StrAppend(&out, "  ", CType(a.type), " ", field, ";\n");
          }
          out += "}";
        }
        absl::StrAppend(&out, " ", type, ";\n");
        if (c.attributes.empty())
          out += "// It has no attributes: the pointer is NULL. ";
        else
          out += "// ";
        out += "Returns 0, or anything else to end the run with $UPPER_CUSTOM_CALL.\n";
        parameters =
            absl::StrCat("const $NAME_buffer* operands, const $NAME_buffer* results, const ", type, "* attributes");
        break;
      }
    }
    absl::StrAppend(&out, c.api == ApiVersion::API_VERSION_TYPED_FFI ? "int32_t " : "void ", id, "(", parameters, ")");
    if (id != c.target) absl::StrAppend(&out, " __asm__(\"", c.target, "\")");
    out += ";\n";
  }
  return out;
}

}  // namespace kiln
