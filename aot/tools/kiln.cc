// The kiln command: what each first word means. The commands are those of command_table.cc.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "aot/tools/command_line.h"
#include "aot/tools/exit.h"
#include "aot/tools/help.h"
#include "aot/tools/mpi_launcher.h"
#include "compiler/base/suggestion.h"

namespace kiln {
namespace {

constexpr int kWrongUsage = 2;

int Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return 0;
}

int UnknownCommand(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& c : AllCommands()) names.emplace_back(c.name);
  std::fprintf(stderr, "kiln: unknown command '%s'%s (kiln --help lists them)\n", name.c_str(),
               Suggestion(name, names).c_str());
  return kWrongUsage;
}

int Help(const std::vector<std::string>& words) {
  if (words.size() < 2) return Print(HelpOfAll());
  if (words[1] == "--man") return Print(ManualPage());
  if (words[1] == "--bash") return Print(BashCompletion());
  const Command* c = FindCommand(words[1]);
  return c ? Print(HelpOf(*c)) : UnknownCommand(words[1]);
}

int Main(const std::vector<std::string>& words) {
  if (words.empty()) {
    std::fputs(HelpOfAll().c_str(), stderr);
    return kWrongUsage;
  }
  const std::string& name = words[0];
  if (name == "--version" || name == "version") return Print(VersionText());
  if (name == "--help" || name == "-h" || name == "help") return Help(words);
  // What mpirun starts for `kiln run --launcher mpi`: no command for people, so help does not list it.
  if (name == "rank" && words.size() == 2) return RankCommand(words[1]);
  const Command* c = FindCommand(name);
  if (!c) return UnknownCommand(name);
  const CommandLine line = ReadCommandLine(*c, {words.begin() + 1, words.end()});
  if (line.wants_help) return Print(HelpOf(*c));
  if (!line.error.empty()) {
    std::fprintf(stderr, "kiln %s: %s\n", c->name, line.error.c_str());
    return kWrongUsage;
  }
  return c->run(line.arguments);
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  kiln::EndWithErrors();
  return kiln::Finished(kiln::Main({argv + (argc > 0), argv + argc}));
}
