#include "compiler/hlo/canonical_text.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace kiln {
namespace {

bool Carried(absl::string_view spelling) {
  return spelling == "metadata" || spelling == "sharding" || spelling == "frontend_attributes" ||
         spelling == "origin" || spelling == "statistics" || spelling == "original_value" ||
         spelling == "backend_config";
}

using ComputationWriter = absl::FunctionRef<std::string(const Computation*)>;

std::string ValueText(attr::Comp c, ComputationWriter write) { return write(c); }
std::string ValueText(const attr::Comps& v, ComputationWriter write) {
  return absl::StrJoin(v, ";", [&](std::string* o, const Computation* c) { *o += write(c); });
}
template <typename T>
std::string ValueText(const T& v, ComputationWriter) {
  return AttrText(v);
}

std::string ComputationText(const Computation* c);

std::string Body(const Instruction* i) {
  return OwnText(i, ComputationText, [](const Literal& l) { return l.ToString(); });
}

std::string ComputationText(const Computation* c) {
  absl::flat_hash_map<const Instruction*, size_t> number;
  std::string out = "{";
  for (const Instruction* i : c->PostOrder()) {
    number.insert({i, number.size()});
    absl::StrAppend(&out, Body(i), "(");
    for (const Instruction* o : i->operands()) absl::StrAppend(&out, number.at(o), ",");
    out += ")";
    if (i == c->root()) out += "!";
  }
  return out + "}";
}

}  // namespace

std::string OwnText(const Instruction* i, ComputationWriter computation,
                    absl::FunctionRef<std::string(const Literal&)> constant) {
  std::string out = absl::StrCat(i->shape().ToString(), TextOf(i->opcode()));
  if (i->Is(Opcode::Constant)) out += constant(i->literal());
  const Attributes& a = i->attrs();
#define ATTR(field, kind, text) \
  if (a.field && !Carried(text)) absl::StrAppend(&out, ",", #field, "=", ValueText(*a.field, computation));
#include "compiler/hlo/attributes.def"
  return out;
}

std::string CanonicalText(const Instruction* i) {
  std::string text = Body(i);
  for (const Instruction* o : i->operands()) absl::StrAppend(&text, ";", o->shape().ToString());
  return text;
}

}  // namespace kiln
