// The kiln command: subcommand dispatch, usage and argument parsing.
#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "aot/package/manifest.h"
#include "aot/tools/commands.h"
#include "aot/tools/exit.h"
#include "compiler/hlo/replica_groups.h"

namespace kiln {
namespace {

struct Command {
  const char* name;
  int (*run)(const Arguments&);
  const char* usage;
  const char* help;
  // Options with a value, and flags.
  std::set<std::string> valued, flags;
  size_t min_positional, max_positional;
};

const Command kCommands[] = {
    {"compile",
     CompileCommand,
     "compile MODULE --name NAME --out DIR [--config F] [--target T]... [--tuning F]... [--dim N] [--entry NAME] "
     "[--check-plan] [--json]",
     "Compiles into DIR/libNAME.a, DIR/NAME.h, DIR/NAME_c.h and DIR/NAME.manifest.json. Targets: v2, v3, v4, amx "
     "(x86-64 levels), native; sm_75, sm_80, ... (NVIDIA GPUs), cuda (sm_80, sm_90 and sm_100). --tuning: results of "
     "kiln tune, beside those of the config. --dim: the extent of every unbounded dimension. --entry: the "
     "function, where several are public. --check-plan: every "
     "read and write of the plan is checked against what the program says.",
     {"name", "out", "config", "target", "tuning", "dim", "entry"},
     {"json", "check-plan"},
     1,
     1},
    {"run",
     RunCommand,
     "run MODULE [--input F.npy]... [--seed N] [--out DIR] [--backend cpu|gpu-emulated|reference] [--threads N] "
     "[--repeat N] "
     "[--target LEVEL] [--dim N] [--entry NAME] [--devices N] [--json]",
     "Compiles, links and runs in a process of its own; writes DIR/result_K.npy. Without inputs, seeded random ones. A "
     "program of several devices runs each as a thread, on parts of the inputs as shardings say; results are joined. "
     "--devices: how many, where the module does not say; inputs and results then have a row for each replica.",
     {"input", "seed", "out", "backend", "threads", "repeat", "config", "target", "dim", "entry", "devices"},
     {"json"},
     1,
     1},
    {"check",
     CheckCommand,
     "check FILE... [--backend cpu|gpu-emulated|reference]",
     "Runs StableHLO programs that check themselves; PASS or FAIL for each, then the counts.",
     {"backend", "jobs"},
     {},
     1,
     1000000},
    {"diff",
     DiffCommand,
     "diff FILE [--seed N] [--backend cpu] [--dim N] [--entry NAME] [--devices N] [--atol X] [--rtol X] [--ulps N]",
     "Compares compiled code with the reference evaluator on seeded inputs: types, extents, sizes, and the largest "
     "difference of each result. --dim: the extent of every unbounded dimension. --devices: how many, where the module "
     "does not say; each has inputs of its own. Exit code 1 if anything but floats differs, or floats by more than "
     "--atol + --rtol * |reference|, or than --ulps.",
     {"seed", "backend", "dim", "entry", "devices", "atol", "rtol", "ulps"},
     {},
     1,
     1},
    {"tune",
     TuneCommand,
     "tune MODULE --target GPU --out PROGRAM [--name NAME] [--config F] [--results F]... [--denylist F] [--level N] "
     "[--again] [--dim N] [--entry NAME]",
     "Packs every algorithm of the model's products and convolutions into one program, which measures them on a "
     "machine "
     "with the GPU and writes NAME.GPU.tuning for later compiles (config: gpu { tuning_results }). What --results or "
     "the "
     "config has results for is left out, unless --again. Needs a C compiler to link (CC, or cc).",
     {"target", "out", "name", "config", "results", "denylist", "level", "dim", "entry"},
     {"again"},
     1,
     1},
    {"explain",
     ExplainCommand,
     "explain MODULE [--html F] [--config F] [--dim N] [--entry NAME] [--run]",
     "Says what was decided and why: the work, the arena and who owns its peak, what was done to meet a limit, the "
     "kernels with what they fuse, and what each pass did. --html: the same and more as one page (memory over time, "
     "the "
     "arena packed, kernels as a graph). --run: also measures a run on seeded inputs.",
     {"html", "config", "dim", "entry"},
     {"run"},
     1,
     1},
    {"profile",
     ProfileCommand,
     "profile MODULE [--input F.npy]... [--threads N] [--repeat N] [--html F] [--trace F.json] [--config F] [--target "
     "LEVEL] [--dim N] [--entry NAME] [--json]",
     "Compiles with profiling, runs on seeded inputs or on files, and says where the time goes: by operation, with "
     "speed "
     "and share of what this machine can do at best, and by line of the user's source. --html: also a timeline and a "
     "flame graph by scopes. --trace: every event, for Perfetto or chrome://tracing.",
     {"input", "threads", "repeat", "html", "trace", "config", "target", "dim", "entry"},
     {"json"},
     1,
     1},
    {"reduce",
     ReduceCommand,
     "reduce FILE --keep=CMD",
     "Prints the smallest module that CMD still accepts (exit code 0); {} in CMD stands for the candidate's path. As "
     "in "
     "--keep='! kiln diff {} --ulps 4'.",
     {"keep"},
     {},
     1,
     1},
    {"bisect",
     BisectCommand,
     "bisect FILE [--pipeline=cpu|gpu] [--seed N] [--ulps N] [--dim N] [--entry NAME] [--out DIR]",
     "Finds the pass and the rewrite that first make the module compute something else, by the reference evaluator; "
     "writes the modules around it to DIR. Exit code 1 if there is one, or if compiled code differs (by more than "
     "--ulps, default 64).",
     {"pipeline", "seed", "ulps", "dim", "entry", "out"},
     {},
     1,
     1},
    {"verify",
     VerifyCommand,
     "verify FILE... [--dim N] [--entry NAME]",
     "Parses and verifies; prints OK FILE or ERROR FILE:line:col: why for each.",
     {"dim", "entry"},
     {},
     1,
     1000000},
    {"opt",
     OptCommand,
     "opt FILE [--passes=a,b,...] [--pipeline=cpu|gpu] [--stop-after=PASS] [--dim N] [--entry NAME] [--list]",
     "Runs passes and prints HLO text; --list prints every pass, or with --pipeline the stages of that one.",
     {"passes", "pipeline", "stop-after", "dim", "entry"},
     {"list"},
     0,
     1},
};

void Usage(FILE* out) {
  std::fprintf(out,
               "kiln compiles an HLO or StableHLO program into a static library and a header.\n\nusage: kiln COMMAND "
               "[ARGUMENTS]\n\n");
  for (const Command& c : kCommands) std::fprintf(out, "  kiln %s\n      %s\n", c.usage, c.help);
  std::fprintf(out,
               "\nkiln COMMAND --help explains one command. Exit code: 0 success, 1 wrong input, 2 wrong usage.\n");
}

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

// "; did you mean X?" for the word that is nearest; empty if none is near.
std::string Suggestion(const std::string& word, const std::vector<std::string>& words, const char* prefix = "") {
  const std::string* best = nullptr;
  size_t nearest = 1 + word.size() / 3;
  for (const std::string& w : words)
    if (const size_t d = Distance(word, w); d <= nearest && (!best || d < nearest)) {
      best = &w;
      nearest = d;
    }
  return best ? absl::StrCat("; did you mean ", prefix, *best, "?") : "";
}

const Command* FindCommand(const std::string& name) {
  for (const Command& c : kCommands)
    if (name == c.name) return &c;
  return nullptr;
}

int UnknownCommand(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& c : kCommands) names.push_back(c.name);
  std::fprintf(stderr, "kiln: unknown command '%s'%s (kiln --help lists them)\n", name.c_str(),
               Suggestion(name, names).c_str());
  return 2;
}

int Help(const Command& c) {
  std::printf("usage: kiln %s\n\n%s\n", c.usage, c.help);
  return 0;
}

int RunCommandLine(const Command& c, int argc, char** argv) {
  Arguments args;
  for (int i = 2; i < argc; ++i) {
    const std::string a = argv[i];
    if (a == "--help" || a == "-h") return Help(c);
    if (a.size() < 2 || a[0] != '-') {  // "-" is standard input
      args.positional.push_back(a);
      continue;
    }
    const size_t eq = a.find('='), dashes = a[1] == '-' ? 2 : 1;
    const std::string key = a.substr(dashes, eq == std::string::npos ? eq : eq - dashes);
    if (dashes == 2 && c.flags.count(key) && eq == std::string::npos) {
      args.options.insert({key, ""});
    } else if (dashes == 2 && c.valued.count(key)) {
      if (eq == std::string::npos && i + 1 == argc) {
        std::fprintf(stderr, "kiln %s: --%s needs a value\n", c.name, key.c_str());
        return 2;
      }
      args.options.insert({key, eq == std::string::npos ? argv[++i] : a.substr(eq + 1)});
    } else {
      std::vector<std::string> known(c.valued.begin(), c.valued.end());
      known.insert(known.end(), c.flags.begin(), c.flags.end());
      std::fprintf(stderr, "kiln %s: unknown option %s%s (kiln %s --help lists them)\n", c.name, a.c_str(),
                   Suggestion(key, known, "--").c_str(), c.name);
      return 2;
    }
  }
  if (args.positional.size() < c.min_positional || args.positional.size() > c.max_positional) {
    std::fprintf(stderr, "usage: kiln %s\n", c.usage);
    return 2;
  }
  return c.run(args);
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    Usage(stderr);
    return 2;
  }
  const std::string name = argv[1];
  if (name == "--version" || name == "version") {
    std::printf("kiln %s\n", kKilnVersion);
    return 0;
  }
  if (name == "--help" || name == "-h" || name == "help") {
    if (argc < 3) {
      Usage(stdout);
      return 0;
    }
    const Command* c = FindCommand(argv[2]);
    return c ? Help(*c) : UnknownCommand(argv[2]);
  }
  const Command* c = FindCommand(name);
  return c ? RunCommandLine(*c, argc, argv) : UnknownCommand(name);
}

}  // namespace

absl::Status ReadImportOptions(const Arguments& args, ImportOptions* import) {
  import->entry = args.Get("entry");
  if (args.Has("dim") && (!absl::SimpleAtoi(args.Get("dim"), &import->dim) || import->dim < 0))
    return InvalidArgument("error: --dim takes a number of at least 0");
  return absl::OkStatus();
}

absl::Status SettleDevices(const Arguments& args, Module* m) {
  RETURN_IF_ERROR(SettleDeviceCounts(m));
  if (!args.Has("devices")) return absl::OkStatus();
  int wanted = 0;
  constexpr int kMost = 4096;
  if (!absl::SimpleAtoi(args.Get("devices"), &wanted) || wanted < 1 || wanted > kMost)
    return InvalidArgument("error: --devices takes a number from 1 to ", kMost);
  const int64_t has = m->replica_count * m->partition_count;
  bool sharded = false;
  for (const auto& c : m->computations())
    for (const auto& i : c->instructions()) sharded = sharded || i->attrs().sharding;
  if (has == 1) (sharded ? m->partition_count : m->replica_count) = wanted;
  if (has != 1 && has != wanted)
    return InvalidArgument("error: --devices ", wanted, ": the program is one of ", has, " devices");
  return absl::OkStatus();
}

}  // namespace kiln

int main(int argc, char** argv) {
  kiln::EndWithErrors();
  return kiln::Finished(kiln::Main(argc, argv));
}
