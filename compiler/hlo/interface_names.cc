#include "compiler/hlo/interface_names.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/hlo/metadata.h"
#include "compiler/hlo/scanner.h"

namespace kiln {
namespace {

constexpr absl::string_view kHeader = "frontend_attributes", kResult = "kiln.result.", kSize = "kiln.size.";
constexpr size_t kMostNames = 1 << 20;

// Values as the attributes KEY0, KEY1, ...
void SetList(absl::string_view key, const std::vector<std::string>& values, Module* m) {
  std::string entries;
  for (size_t k = 0; k < values.size(); ++k) absl::StrAppend(&entries, k ? "," : "", key, k, "=", QuoteHlo(values[k]));
  for (auto& [header, value] : m->extra_header) {
    if (header != kHeader || !absl::EndsWith(value, "}")) continue;
    value.pop_back();
    absl::StrAppend(&value, value == "{" ? "" : ",", entries, "}");
    return;
  }
  m->extra_header.push_back({std::string(kHeader), absl::StrCat("{", entries, "}")});
}

std::vector<std::string> List(absl::string_view wanted, const Module& m) {
  std::vector<std::string> values;
  for (const auto& [header, value] : m.extra_header) {
    if (header != kHeader) continue;
    Scanner s(value, "");
    if (!s.Eat("{")) continue;
    while (!s.AtEnd() && !s.Eat("}")) {
      absl::string_view key = s.Word();
      if (key.empty() || !s.Eat("=")) break;
      size_t number;
      if (absl::ConsumePrefix(&key, wanted) && absl::SimpleAtoi(key, &number) && number < kMostNames) {
        auto text = s.Quoted();
        if (!text.ok()) break;
        if (values.size() <= number) values.resize(number + 1);
        values[number] = *std::move(text);
      } else if (!s.Balanced(",}").ok()) {
        break;
      }
      s.Eat(",");
    }
  }
  return values;
}

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
  SetList(kResult, names, m);
}

std::vector<std::string> ResultNames(const Module& m) { return List(kResult, m); }

void SetSizeResults(const std::vector<ResultDimension>& dimensions, Module* m) {
  std::vector<std::string> texts;
  for (const ResultDimension& d : dimensions) texts.push_back(absl::StrCat(d.result, ",", d.dimension));
  if (!texts.empty()) SetList(kSize, texts, m);
}

std::vector<ResultDimension> SizeResults(const Module& m) {
  std::vector<ResultDimension> out;
  for (const std::string& text : List(kSize, m)) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, ',');
    ResultDimension d;
    if (!absl::SimpleAtoi(parts.first, &d.result) || !absl::SimpleAtoi(parts.second, &d.dimension)) return {};
    out.push_back(d);
  }
  return out;
}

}  // namespace kiln
