#include "compiler/import/mlir_string.h"

#include "absl/strings/ascii.h"

namespace kiln {
namespace {

constexpr char kHex[] = "0123456789ABCDEF";

}  // namespace

std::string MlirStringValue(absl::string_view text) {
  if (text.empty() || text[0] != '"') return std::string(text);
  Scanner s(text, "");
  auto value = ReadMlirString(&s);
  return value.ok() ? *std::move(value) : std::string(text);
}

std::string QuoteMlir(absl::string_view text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (absl::ascii_isprint(c) && c != '"') {
      out += static_cast<char>(c);
    } else {
      out += {'\\', kHex[c >> 4], kHex[c & 15]};
    }
  }
  return out + "\"";
}

}  // namespace kiln
