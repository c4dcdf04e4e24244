#include "compiler/import/symbols.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "compiler/base/status.h"
#include "compiler/hlo/mlir_string.h"

namespace kiln::mlir {
namespace {

using Functions = absl::flat_hash_map<absl::string_view, const Function*>;

Functions ByName(const Program& p) {
  Functions out;
  for (const Function& f : p.functions) out.insert({f.name, &f});
  return out;
}

struct Reference {
  const Function* to;
  const Op* at;
};

// Regions nest no deeper than the readers let them.
void CollectReferences(const Region& r, const Functions& functions, std::vector<Reference>* out) {
  for (const auto& op : r.ops) {
    for (const std::string& name : SymbolsOf(*op))
      if (auto it = functions.find(name); it != functions.end()) out->push_back({it->second, op.get()});
    for (const Region& inner : op->regions) CollectReferences(inner, functions, out);
  }
}

std::string Names(const std::vector<const Function*>& functions) {
  return absl::StrJoin(functions, ", ",
                       [](std::string* out, const Function* f) { absl::StrAppend(out, "@", f->name); });
}

}  // namespace

std::vector<std::string> SymbolsIn(absl::string_view text) {
  std::vector<std::string> out;
  Scanner s(text, "");
  for (size_t at = text.find('@'); at != absl::string_view::npos; at = text.find('@', s.pos())) {
    s.set_pos(at + 1);
    if (s.PeekRaw() == '"') {
      auto name = ReadMlirString(&s);
      if (name.ok()) out.push_back(*std::move(name));
    } else if (const absl::string_view name = s.Word("_.$-"); !name.empty()) {
      out.emplace_back(name);
    }
  }
  return out;
}

std::string CalleeOf(const Op& op) {
  const bool composite = absl::EndsWith(op.name, ".composite");
  if (!composite && op.name != "func.call") return "";
  const std::string& text = op.Attr(composite ? "decomposition" : "callee");
  if (text.empty() || text[0] != '@') return text;
  const auto names = SymbolsIn(text);
  return names.empty() ? "" : names[0];
}

std::vector<std::string> SymbolsOf(const Op& op) {
  std::vector<std::string> out;
  if (std::string callee = CalleeOf(op); !callee.empty()) out.push_back(std::move(callee));
  for (const char* key : {"called_computations", "programs", "infeed"})
    if (op.Has(key) && absl::StrContains(op.Attr(key), '@'))
      for (std::string& name : SymbolsIn(op.Attr(key))) out.push_back(std::move(name));
  return out;
}

absl::StatusOr<const Function*> EntryOf(const Program& p, const std::string& file, const std::string& wanted) {
  const Functions functions = ByName(p);
  if (!wanted.empty()) {
    if (auto it = functions.find(wanted); it != functions.end()) return it->second;
    std::vector<const Function*> all;
    for (const Function& f : p.functions) all.push_back(&f);
    return InvalidArgument(file, ":1:1: error: no function is named @", wanted, " (--entry); there are ", Names(all));
  }
  if (p.functions.size() == 1) return &p.functions[0];
  absl::flat_hash_set<const Function*> referred;
  for (const Function& f : p.functions) {
    std::vector<Reference> out;
    CollectReferences(f.body, functions, &out);
    for (const Reference& r : out)
      if (r.to != &f) referred.insert(r.to);
  }
  std::vector<const Function*> candidates;
  for (const Function& f : p.functions)
    if (f.is_public && !referred.contains(&f)) candidates.push_back(&f);
  auto main = functions.find("main");
  if (main != functions.end() && std::find(candidates.begin(), candidates.end(), main->second) == candidates.end())
    candidates.insert(candidates.begin(), main->second);
  if (candidates.size() == 1) return candidates[0];
  if (candidates.empty()) return InvalidArgument(file, ":1:1: error: no function is public, and none is named @main");
  const SourceLoc at = candidates[1]->loc;
  return InvalidArgument(file, ":", at.line, ":", at.column,
                         ": error: several functions are public and called by no other: ", Names(candidates),
                         "; --entry NAME says which one is meant");
}

absl::StatusOr<std::vector<const Function*>> CalleesFirst(const Program& p, const std::string& file,
                                                          const Function* entry) {
  const Functions functions = ByName(p);
  struct Visit {
    const Function* function;
    std::vector<Reference> references;
    size_t next = 0;
  };
  enum State { kOpen = 1, kDone = 2 };
  absl::flat_hash_map<const Function*, int> state;
  std::vector<const Function*> order;
  std::vector<Visit> stack;
  const auto open = [&](const Function* f) {
    state[f] = kOpen;
    stack.push_back({f, {}});
    CollectReferences(f->body, functions, &stack.back().references);
  };
  open(entry);
  while (!stack.empty()) {
    Visit& v = stack.back();
    if (v.next == v.references.size()) {
      state[v.function] = kDone;
      order.push_back(v.function);
      stack.pop_back();
      continue;
    }
    const Reference r = v.references[v.next++];
    const int seen = state[r.to];
    if (seen == kOpen)
      return InvalidArgument(file, ":", r.at->loc.line, ":", r.at->loc.column, ": error: ", r.at->name, ": @",
                             r.to->name, " calls itself", r.to == v.function ? "" : " by way of other functions");
    if (seen != kDone) open(r.to);
  }
  return order;
}

}  // namespace kiln::mlir
