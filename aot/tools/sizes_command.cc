// kiln sizes MANIFEST...: what libraries take, as a table.
#include <cstdio>

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
  };
  constexpr Column kColumns[] = {
      {"code", &ManifestFacts::code_bytes},          {"weights", &ManifestFacts::constant_bytes},
      {"arena", &ManifestFacts::temp_bytes},         {"slow arena", &ManifestFacts::slow_arena_bytes},
      {"arguments", &ManifestFacts::argument_bytes}, {"results", &ManifestFacts::output_bytes},
      {"archive", &ManifestFacts::archive_bytes}};
  std::string out = absl::StrFormat("%-24s %-16s", "library", "target");
  for (const Column& c : kColumns) absl::StrAppendFormat(&out, " %12s", c.title);
  out += "\n";
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
    ASSIGN_OR_RETURN(const ManifestFacts m, ReadManifest(text, file));
    absl::StrAppendFormat(&out, "%-24s %-16s", m.name, m.target);
    for (const Column& c : kColumns) absl::StrAppendFormat(&out, " %12d", m.*c.bytes);
    out += "\n";
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

int SizesCommand(const Arguments& args) {
  if (absl::Status s = Run(args); !s.ok()) {
    std::fprintf(stderr, "%s\n", std::string(s.message()).c_str());
    return 1;
  }
  return 0;
}

}  // namespace kiln
