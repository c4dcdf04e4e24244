#include "compiler/import/interface_names.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/hlo/scanner.h"
#include "compiler/import/metadata.h"

namespace kiln {
namespace {

constexpr absl::string_view kHeader = "frontend_attributes", kKey = "kiln.result.";
constexpr size_t kMostNames = 1 << 20;

}  // namespace

void NameArgumentsByMetadata(Module* m) {
  std::vector<std::string> names;
  absl::flat_hash_set<std::string> seen;
  for (const Instruction* p : m->entry()->parameters()) {
    names.push_back(p->attrs().metadata ? MetadataField(p->attrs().metadata->text, "op_name") : "");
    if (!p->shape().IsArray() || names.back().empty() || !seen.insert(names.back()).second) return;
  }
  m->argument_names = std::move(names);
}

void SetResultNames(const std::vector<std::string>& names, Module* m) {
  if (std::all_of(names.begin(), names.end(), [](const std::string& n) { return n.empty(); })) return;
  std::string entries;
  for (size_t k = 0; k < names.size(); ++k) absl::StrAppend(&entries, k ? "," : "", kKey, k, "=", QuoteHlo(names[k]));
  for (auto& [key, value] : m->extra_header) {
    if (key != kHeader || !absl::EndsWith(value, "}")) continue;
    value.pop_back();
    absl::StrAppend(&value, value == "{" ? "" : ",", entries, "}");
    return;
  }
  m->extra_header.push_back({std::string(kHeader), absl::StrCat("{", entries, "}")});
}

std::vector<std::string> ResultNames(const Module& m) {
  std::vector<std::string> names;
  for (const auto& [header, value] : m.extra_header) {
    if (header != kHeader) continue;
    Scanner s(value, "");
    if (!s.Eat("{")) continue;
    while (!s.AtEnd() && !s.Eat("}")) {
      absl::string_view key = s.Word();
      if (key.empty() || !s.Eat("=")) break;
      size_t number;
      if (absl::ConsumePrefix(&key, kKey) && absl::SimpleAtoi(key, &number) && number < kMostNames) {
        auto name = s.Quoted();
        if (!name.ok()) break;
        if (names.size() <= number) names.resize(number + 1);
        names[number] = *std::move(name);
      } else if (!s.Balanced(",}").ok()) {
        break;
      }
      s.Eat(",");
    }
  }
  return names;
}

}  // namespace kiln
