#include "compiler/hlo/canonical_text.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace kiln {
namespace {

std::string ComputationText(const Computation* c);

std::string ValueText(attr::Comp c) { return ComputationText(c); }
std::string ValueText(const attr::Comps& v) {
  return absl::StrJoin(v, ";", [](std::string* o, const Computation* c) { *o += ComputationText(c); });
}
template <typename T>
std::string ValueText(const T& v) {
  return AttrText(v);
}

bool Carried(absl::string_view spelling) {
  return spelling == "metadata" || spelling == "sharding" || spelling == "frontend_attributes" ||
         spelling == "origin" || spelling == "statistics" || spelling == "original_value" ||
         spelling == "backend_config";
}

std::string Body(const Instruction* i) {
  std::string out = absl::StrCat(i->shape().ToString(), TextOf(i->opcode()));
  if (i->Is(Opcode::Constant)) out += i->literal().ToString();
  const Attributes& a = i->attrs();
#define ATTR(field, kind, text) \
  if (a.field && !Carried(text)) absl::StrAppend(&out, ",", #field, "=", ValueText(*a.field));
#include "compiler/hlo/attributes.def"
  return out;
}

// Operands before users, as the root reaches them, whatever order the computation lists them in; what the root does not
// reach comes last.
std::vector<const Instruction*> FromRoot(const Computation* c) {
  std::vector<const Instruction*> out;
  absl::flat_hash_set<const Instruction*> seen;
  const auto visit = [&](const Instruction* from) {
    if (!seen.insert(from).second) return;
    std::vector<std::pair<const Instruction*, int64_t>> path = {{from, 0}};  // with the operand to visit next
    while (!path.empty()) {
      const Instruction* i = path.back().first;
      const int64_t next = path.back().second++;
      if (next == static_cast<int64_t>(i->operands().size())) {
        out.push_back(i);
        path.pop_back();
      } else if (seen.insert(i->operand(next)).second) {
        path.push_back({i->operand(next), 0});
      }
    }
  };
  visit(c->root());
  for (const Instruction* i : c->PostOrder()) visit(i);
  return out;
}

std::string ComputationText(const Computation* c) {
  absl::flat_hash_map<const Instruction*, size_t> number;
  std::string out = "{";
  for (const Instruction* i : FromRoot(c)) {
    number.insert({i, number.size()});
    absl::StrAppend(&out, Body(i), "(");
    for (const Instruction* o : i->operands()) absl::StrAppend(&out, number.at(o), ",");
    out += ")";
    if (i == c->root()) out += "!";
  }
  return out + "}";
}

}  // namespace

std::string CanonicalText(const Instruction* i) {
  std::string text = Body(i);
  for (const Instruction* o : i->operands()) absl::StrAppend(&text, ";", o->shape().ToString());
  return text;
}

}  // namespace kiln
