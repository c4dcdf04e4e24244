#include "compiler/hlo/mlir_string.h"

#include "absl/strings/ascii.h"

namespace kiln {
namespace {

constexpr char kHex[] = "0123456789ABCDEF";

int HexValue(char c) {
  return absl::ascii_isdigit(c) ? c - '0' : absl::ascii_isxdigit(c) ? absl::ascii_toupper(c) - 'A' + 10 : -1;
}

// Unescapes what stands between the quotes; the offset of what is no escape, or npos.
size_t Unescape(absl::string_view body, std::string* out) {
  for (size_t k = 0; k < body.size(); ++k) {
    if (body[k] != '\\') {
      *out += body[k];
      continue;
    }
    const char c = k + 1 < body.size() ? body[k + 1] : 0;
    if (c == '"' || c == '\\') {
      *out += c;
      ++k;
    } else if (c == 'n' || c == 't') {
      *out += c == 'n' ? '\n' : '\t';
      ++k;
    } else if (k + 2 < body.size() && HexValue(c) >= 0 && HexValue(body[k + 2]) >= 0) {
      *out += static_cast<char>(HexValue(c) << 4 | HexValue(body[k + 2]));
      k += 2;
    } else {
      return k;
    }
  }
  return absl::string_view::npos;
}

}  // namespace

absl::StatusOr<std::string> ReadMlirString(Scanner* s) {
  if (s->Peek() != '"') return s->Error("expected a quoted string");
  const size_t start = s->pos() + 1;
  const absl::string_view t = s->text();
  size_t end = start;
  while (end < t.size() && t[end] != '"') end += t[end] == '\\' ? 2 : 1;
  if (end >= t.size()) return s->ErrorAtPos(start - 1, "unterminated string");
  std::string out;
  if (const size_t bad = Unescape(t.substr(start, end - start), &out); bad != absl::string_view::npos)
    return s->ErrorAtPos(start + bad, "a backslash in a string needs \", \\, n, t or two hexadecimal digits behind it");
  s->set_pos(end + 1);
  return out;
}

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
