#include "aot/tools/command_line.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "aot/tools/help.h"
#include "compiler/base/suggestion.h"

namespace kiln {
namespace {

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
