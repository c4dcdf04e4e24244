#include "compiler/hlo/metadata.h"

#include "compiler/hlo/scanner.h"

namespace kiln {

std::string MetadataField(absl::string_view text, absl::string_view wanted) {
  Scanner s(text, "");
  s.Eat("{");
  while (!s.AtEnd() && s.Peek() != '}') {
    s.Eat(",");
    const absl::string_view key = s.Word("_");
    if (key.empty() || !s.Eat("=")) return "";
    if (s.Peek() == '"') {
      auto value = s.Quoted();
      if (!value.ok() || key == wanted) return value.value_or("");
    } else if (s.Peek() == '{') {
      if (!s.Eat("{") || !s.Balanced("}").ok() || !s.Eat("}")) return "";
    } else {
      const absl::string_view value = s.Word("_.-");
      if (value.empty() || key == wanted) return std::string(value);
    }
  }
  return "";
}

}  // namespace kiln
