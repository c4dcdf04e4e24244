#include "compiler/import/origin.h"

#include "absl/strings/str_cat.h"
#include "compiler/hlo/attributes.h"
#include "compiler/hlo/mlir_string.h"

namespace kiln {
namespace {

constexpr int kMaxDepth = 512;  // to which locations nest
// What MLIR's tools call a file that they read from a pipe: no place that anybody could look at.
constexpr absl::string_view kStandardInput = "-";

}  // namespace

std::string Origin::ToString() const {
  if (empty()) return "unknown";
  const std::string place = file.empty() ? "" : absl::StrCat(QuoteMlir(file), ":", line, ":0");
  if (name.empty()) return place;
  return place.empty() ? QuoteMlir(name) : absl::StrCat(QuoteMlir(name), "(", place, ")");
}

std::string Origin::Metadata() const {
  std::string out = name.empty() ? "" : absl::StrCat("op_name=", QuoteHlo(name));
  if (!file.empty() && file != kStandardInput)
    absl::StrAppend(&out, out.empty() ? "" : " ", "source_file=", QuoteHlo(file), " source_line=", line);
  return out.empty() ? "" : absl::StrCat("{", out, "}");
}

Origin CallSite(Origin callee, const Origin& caller) {
  if (callee.name.empty()) callee.name = caller.name;
  if (callee.file.empty()) std::tie(callee.file, callee.line) = std::tie(caller.file, caller.line);
  return callee;
}

Origin Named(std::string name, Origin child) {
  child.name = std::move(name);
  return child;
}

Origin Origins::Of(absl::string_view text) {
  Scanner s(text, "");
  return Read(&s, 0);
}

Origin Origins::ReadAlias(absl::string_view name, int depth) {
  const auto alias = aliases_.find(name);
  if (alias == aliases_.end()) return {};
  const auto [known, is_new] = known_.try_emplace(alias->first);
  if (!is_new) return known->second;  // of a cycle: nothing
  Scanner s(alias->second, "");
  Origin origin = Read(&s, depth + 1);
  known_[alias->first] = origin;
  return origin;
}

// "name", "name"(location) or "file":line:column, perhaps to another column.
Origin Origins::ReadNamed(Scanner* s, int depth) {
  auto text = ReadMlirString(s);
  if (!text.ok()) return {};
  if (s->Eat("(")) {
    Origin child = Read(s, depth + 1);
    s->Eat(")");
    return Named(*std::move(text), std::move(child));
  }
  if (!s->Eat(":")) return Named(*std::move(text), {});
  const auto line = s->Integer();
  if (!line.ok()) return {};
  while (s->Eat(":") || s->Eat("to"))
    if (s->Peek() != ':' && !s->Integer().ok()) return {};
  return {"", *std::move(text), *line};
}

// fused<metadata>[location, ...]: the first name and the first place.
Origin Origins::ReadFused(Scanner* s, int depth) {
  if (s->Eat("<") && (!s->Balanced(">").ok() || !s->Eat(">"))) return {};
  if (!s->Eat("[")) return {};
  Origin out;
  for (bool first = true; !s->Eat("]"); first = false) {
    if (!first && !s->Eat(",")) return {};
    const size_t at = s->pos();
    out = CallSite(std::move(out), Read(s, depth + 1));
    if (s->pos() == at) return out;
  }
  return out;
}

Origin Origins::Read(Scanner* s, int depth) {
  if (depth > kMaxDepth) return {};
  if (s->Peek() == '"') return ReadNamed(s, depth);
  if (s->Peek() == '#') return ReadAlias(s->Word("_.#!-"), depth);
  if (s->Eat("?")) return {};
  const absl::string_view word = s->Word("_");
  if (word == "fused") return ReadFused(s, depth);
  if (word == "loc" && s->Eat("(")) {
    Origin inner = Read(s, depth + 1);
    s->Eat(")");
    return inner;
  }
  if (word != "callsite" || !s->Eat("(")) return {};
  Origin callee = Read(s, depth + 1);
  if (!s->Eat("at")) return callee;
  Origin caller = Read(s, depth + 1);
  s->Eat(")");
  return CallSite(std::move(callee), caller);
}

}  // namespace kiln
