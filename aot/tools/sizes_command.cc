// kiln sizes MANIFEST...: what libraries take, as a table.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "aot/tools/commands.h"
#include "aot/tools/manifest_facts.h"
#include "compiler/base/text.h"

namespace kiln {
namespace {

absl::StatusOr<std::string> Table(const std::vector<std::string>& files) {
  struct Column {
    const char* title;
    int64_t ManifestFacts::*bytes;
    bool of_entry;  // whether each entry has a number of its own
  };
  constexpr Column kColumns[] = {
      {"code", &ManifestFacts::code_bytes, false},         {"weights", &ManifestFacts::constant_bytes, false},
      {"arena", &ManifestFacts::temp_bytes, true},         {"slow arena", &ManifestFacts::slow_arena_bytes, true},
      {"arguments", &ManifestFacts::argument_bytes, true}, {"results", &ManifestFacts::output_bytes, true},
      {"archive", &ManifestFacts::archive_bytes, false}};
  std::string out = absl::StrFormat("%-24s %-16s", "library", "target");
  for (const Column& c : kColumns) absl::StrAppendFormat(&out, " %12s", c.title);
  out += "\n";
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
    ASSIGN_OR_RETURN(const ManifestFacts m, ReadManifest(text, file));
    absl::StrAppendFormat(&out, "%-24s %-16s", m.name, m.target);
    for (const Column& c : kColumns) absl::StrAppendFormat(&out, " %12d", m.*c.bytes);
    out += "\n";
    for (const ManifestFacts& e : m.entries) {
      absl::StrAppendFormat(&out, "%-24s %-16s", absl::StrCat("  ", e.entry), "");
      for (const Column& c : kColumns) absl::StrAppendFormat(&out, " %12s", c.of_entry ? absl::StrCat(e.*c.bytes) : "");
      out += "\n";
    }
  }
  return out;
}

absl::Status Run(const Arguments& args) {
  ASSIGN_OR_RETURN(const std::string table, Table(args.positional));
  if (args.Has("out")) return WriteFile(args.Get("out"), table);
  std::fputs(table.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

int SizesCommand(const Arguments& args) { return ExitCode(Run(args)); }

}  // namespace kiln
