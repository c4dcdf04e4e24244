#include "aot/tools/command_line.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "aot/tools/help.h"

namespace kiln {
namespace {

// How many letters to add, drop or change between two words.
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t k = 0; k <= b.size(); ++k) row[k] = k;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t k = 1; k <= b.size(); ++k)
      diagonal = std::exchange(row[k], std::min({row[k] + 1, row[k - 1] + 1, diagonal + (a[i - 1] != b[k - 1])}));
  }
  return row[b.size()];
}

const Option* FindOption(const Command& c, const std::string& word) {
  const bool is_long = absl::StartsWith(word, "--");
  for (const Option& o : c.options)
    if (is_long ? word.substr(2) == o.name : o.letter && word == std::string{'-', o.letter}) return &o;
  return nullptr;
}

std::string Unknown(const Command& c, const std::string& word) {
  std::vector<std::string> names;
  for (const Option& o : c.options) names.emplace_back(o.name);
  const std::string bare = word.substr(std::min(word.find_first_not_of('-'), word.size()));
  return absl::StrCat("unknown option ", word, Suggestion(bare, names, "--"), " (kiln ", c.name, " --help lists them)");
}

std::string MissingOption(const Command& c, const Arguments& arguments) {
  for (const Option& o : c.options)
    if (o.takes == Takes::kNeeded && !arguments.Has(o.name))
      return absl::StrCat("--", o.name, " is missing\nusage: ", UsageOf(c));
  return "";
}

}  // namespace

std::string Suggestion(const std::string& word, const std::vector<std::string>& words, const char* prefix) {
  const std::string* best = nullptr;
  size_t nearest = 1 + word.size() / 3;
  for (const std::string& w : words)
    if (const size_t d = Distance(word, w); d <= nearest && (!best || d < nearest)) {
      best = &w;
      nearest = d;
    }
  return best ? absl::StrCat("; did you mean ", prefix, *best, "?") : "";
}

CommandLine ReadCommandLine(const Command& c, const std::vector<std::string>& words) {
  CommandLine out;
  bool options = true;
  for (size_t k = 0; k < words.size(); ++k) {
    const std::string& word = words[k];
    if (!options || word.size() < 2 || word[0] != '-') {  // "-" is standard input
      out.arguments.positional.push_back(word);
      continue;
    }
    if (word == "--") {
      options = false;
      continue;
    }
    if (word == "--help" || word == "-h") {
      out.wants_help = true;
      return out;
    }
    const size_t equals = word.find('=');
    const bool joined = equals != std::string::npos;
    const Option* o = FindOption(c, word.substr(0, equals));
    if (!o || (joined && !o->value)) {
      out.error = Unknown(c, word.substr(0, equals));
    } else if (o->value && !joined && k + 1 == words.size()) {
      out.error = absl::StrCat(word, " needs a value: --", o->name, " ", o->value);
    } else {
      out.arguments.options.insert({o->name, !o->value ? "" : joined ? word.substr(equals + 1) : words[++k]});
    }
    if (!out.error.empty()) return out;
  }
  const size_t operands = out.arguments.positional.size();
  if (operands < c.least_operands || operands > c.most_operands)
    out.error = absl::StrCat(operands < c.least_operands ? "an argument is missing" : "too many arguments",
                             "\nusage: ", UsageOf(c));
  else
    out.error = MissingOption(c, out.arguments);
  return out;
}

}  // namespace kiln
