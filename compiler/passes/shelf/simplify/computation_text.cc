#include "compiler/passes/shelf/simplify/computation_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace kiln {
namespace {

std::string AttributeText(attr::Comp c) { return c->name(); }
std::string AttributeText(const attr::Comps& v) {
  return absl::StrJoin(v, ";", [](std::string* out, const Computation* c) { *out += c->name(); });
}
template <typename T>
std::string AttributeText(const T& v) {
  return AttrText(v);
}

}  // namespace

std::string InstructionText(const Instruction* i) {
  std::string out = absl::StrCat(i->shape().ToString(), " ", TextOf(i->opcode()));
  if (i->Is(Opcode::Constant)) absl::StrAppend(&out, "=", i->literal().ToString());
  const Attributes& a = i->attrs();
#define ATTR(field, kind, text)                         \
  if (a.field && absl::string_view(text) != "metadata") \
    absl::StrAppend(&out, ",", #field, "=", AttributeText(*a.field));
#include "compiler/hlo/attributes.def"
  return out;
}

std::string ComputationText(const Computation* c) {
  absl::flat_hash_map<const Instruction*, size_t> number;
  std::string out = c->execution_thread();
  for (const Instruction* i : c->PostOrder()) {
    number.insert({i, number.size()});
    absl::StrAppend(&out, "\n", i == c->root() ? "ROOT " : "", InstructionText(i), "(");
    for (const Instruction* o : i->operands()) absl::StrAppend(&out, number.at(o), ",");
    out += ")";
    for (const Instruction* p : i->control_predecessors()) absl::StrAppend(&out, "<", number.at(p));
  }
  return out;
}

}  // namespace kiln
