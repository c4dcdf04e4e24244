#include "compiler/passes/sharding/domain_map.h"

#include "absl/strings/str_cat.h"

namespace kiln {
namespace {

// The balanced braces behind `key=`.
std::string Field(const std::string& text, const std::string& key) {
  const size_t at = text.find(key + "={");
  if (at == std::string::npos) return "";
  const size_t open = at + key.size() + 1;
  int depth = 0;
  for (size_t k = open; k < text.size(); ++k) {
    if (text[k] == '{') ++depth;
    if (text[k] == '}' && --depth == 0) return text.substr(open, k - open + 1);
  }
  return "";
}

}  // namespace

std::optional<DomainSides> SidesOf(const Instruction* domain) {
  if (!domain->Is(Opcode::Domain) || !domain->attrs().domain) return std::nullopt;
  const std::string& text = domain->attrs().domain->text;
  return DomainSides{Field(text, "entry"), Field(text, "exit")};
}

std::string DomainText(const DomainSides& sides) {
  return absl::StrCat("{kind=\"sharding\", entry=", sides.users, ", exit=", sides.operand, "}");
}

}  // namespace kiln
