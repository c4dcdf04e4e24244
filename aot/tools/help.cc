#include "aot/tools/help.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "aot/package/manifest.h"
#include "codegen/llvm/version.h"
#include "runtime_min/types.h"

namespace kiln {
namespace {

constexpr size_t kWidth = 80;

// `text` in lines of kWidth, each after `indent` spaces. `first` stands before it, on a line of its own if it is wider.
std::string Wrapped(const std::string& text, size_t indent, const std::string& first) {
  std::string out, line = first;
  bool empty = true;
  if (line.size() > indent) {
    out = line + "\n";
    line.clear();
  }
  line.resize(indent, ' ');
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!empty && line.size() + 1 + word.size() > kWidth) {
      out += line + "\n";
      line.assign(indent, ' ');
      empty = true;
    }
    absl::StrAppend(&line, empty ? "" : " ", word);
    empty = false;
  }
  return out + line + "\n";
}

std::string Form(const Option& o) {
  return absl::StrCat("--", o.name, o.value ? absl::StrCat(" ", o.value) : std::string());
}

}  // namespace

std::string UsageOf(const Command& c) {
  std::string out =
      absl::StrCat("kiln ", c.name, " ", c.least_operands ? "" : "[", c.operands, c.least_operands ? "" : "]");
  bool others = false;
  for (const Option& o : c.options)
    if (o.takes == Takes::kNeeded)
      absl::StrAppend(&out, " ", Form(o));
    else
      others = true;
  return others ? out + " [OPTION]..." : out;
}

std::string HelpOf(const Command& c) {
  std::string out =
      absl::StrCat("usage: ", UsageOf(c), "\n\n", Wrapped(absl::StrCat(c.summary, " ", c.details), 0, ""));
  if (!c.options.empty()) out += "\n";
  constexpr size_t kColumn = 22;
  for (const Option& o : c.options) {
    const std::string letter = o.letter ? std::string{'-', o.letter, ',', ' '} : std::string(4, ' ');
    const std::string again = o.takes == Takes::kAny ? " (may be repeated)" : "";
    out += Wrapped(o.help + again, kColumn, absl::StrCat("  ", letter, Form(o), " "));
  }
  return out;
}

std::string HelpOfAll() {
  std::string out =
      "kiln compiles an HLO or StableHLO program into a static library and headers.\n\n"
      "usage: kiln COMMAND ARGUMENT...\n\n";
  for (const Command& c : AllCommands()) out += Wrapped(c.summary, 11, absl::StrCat("  ", c.name, " "));
  return out + "\n" +
         Wrapped(
             "kiln help COMMAND (or kiln COMMAND -h) explains one command, kiln --version says the versions. Exit "
             "code: 0 success, 1 wrong input, 2 wrong usage.",
             0, "");
}

std::string VersionText() {
  return absl::StrCat("kiln ", kKilnVersion, "\nLLVM ", LlvmVersion(), "\nABI ", KILN_ABI_VERSION, "\n");
}

}  // namespace kiln
