// The kiln command: subcommand dispatch, usage and argument parsing.
#include <cstdio>
#include <cstring>
#include <set>

#include "absl/strings/numbers.h"
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
     "compile MODULE --name NAME --out DIR [--config F] [--target T]... [--tuning F]... [--dim N] [--check-plan] "
     "[--json]",
     "Compiles into DIR/libNAME.a, DIR/NAME.h, DIR/NAME_c.h and DIR/NAME.manifest.json. Targets: v2, v3, v4, amx "
     "(x86-64 levels), native; sm_75, sm_80, ... (NVIDIA GPUs), cuda (sm_80, sm_90 and sm_100). --tuning: results of "
     "kiln tune, beside those of the config. --dim: the extent of every unbounded dimension. --check-plan: every "
     "read and write of the plan is checked against what the program says.",
     {"name", "out", "config", "target", "tuning", "dim"},
     {"json", "check-plan"},
     1,
     1},
    {"run",
     RunCommand,
     "run MODULE [--input F.npy]... [--seed N] [--out DIR] [--backend cpu|gpu-emulated|reference] [--threads N] "
     "[--repeat N] "
     "[--target LEVEL] [--dim N] [--devices N] [--json]",
     "Compiles, links and runs in a process of its own; writes DIR/result_K.npy. Without inputs, seeded random ones. A "
     "program of several devices runs each as a thread: all are given the inputs, the first one's results are written. "
     "--devices: how many, where the module does not say; inputs and results then have a row for each replica.",
     {"input", "seed", "out", "backend", "threads", "repeat", "config", "target", "dim", "devices"},
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
     "diff FILE [--seed N] [--backend cpu] [--dim N] [--devices N] [--atol X] [--rtol X] [--ulps N]",
     "Compares compiled code with the reference evaluator on seeded inputs: types, extents, sizes, and the largest "
     "difference of each result. --dim: the extent of every unbounded dimension. --devices: how many, where the module "
     "does not say; each has inputs of its own. Exit code 1 if anything but floats differs, or floats by more than "
     "--atol + --rtol * |reference|, or than --ulps.",
     {"seed", "backend", "dim", "devices", "atol", "rtol", "ulps"},
     {},
     1,
     1},
    {"tune",
     TuneCommand,
     "tune MODULE --target GPU --out PROGRAM [--name NAME] [--config F] [--results F]... [--denylist F] [--level N] "
     "[--again] [--dim N]",
     "Packs every algorithm of the model's products and convolutions into one program, which measures them on a "
     "machine "
     "with the GPU and writes NAME.GPU.tuning for later compiles (config: gpu { tuning_results }). What --results or "
     "the "
     "config has results for is left out, unless --again. Needs a C compiler to link (CC, or cc).",
     {"target", "out", "name", "config", "results", "denylist", "level", "dim"},
     {"again"},
     1,
     1},
    {"explain",
     ExplainCommand,
     "explain MODULE [--html F] [--config F] [--dim N] [--run]",
     "Says what was decided and why: the work, the arena and who owns its peak, what was done to meet a limit, the "
     "kernels with what they fuse, and what each pass did. --html: the same and more as one page (memory over time, "
     "the "
     "arena packed, kernels as a graph). --run: also measures a run on seeded inputs.",
     {"html", "config", "dim"},
     {"run"},
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
     "bisect FILE [--pipeline=cpu|gpu] [--seed N] [--ulps N] [--dim N] [--out DIR]",
     "Finds the pass and the rewrite that first make the module compute something else, by the reference evaluator; "
     "writes the modules around it to DIR. Exit code 1 if there is one, or if compiled code differs (by more than "
     "--ulps, default 64).",
     {"pipeline", "seed", "ulps", "dim", "out"},
     {},
     1,
     1},
    {"verify",
     VerifyCommand,
     "verify FILE...",
     "Parses and verifies; prints OK FILE or ERROR FILE:line:col: why for each.",
     {},
     {},
     1,
     1000000},
    {"opt",
     OptCommand,
     "opt FILE [--passes=a,b,...] [--pipeline=cpu|gpu] [--stop-after=PASS] [--list]",
     "Runs passes and prints HLO text; --list prints every pass.",
     {"passes", "pipeline", "stop-after"},
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

int Main(int argc, char** argv) {
  if (argc < 2) {
    Usage(stderr);
    return 2;
  }
  if (!std::strcmp(argv[1], "--help") || !std::strcmp(argv[1], "-h") || !std::strcmp(argv[1], "help")) {
    Usage(stdout);
    return 0;
  }
  for (const Command& c : kCommands) {
    if (std::strcmp(c.name, argv[1])) continue;
    Arguments args;
    for (int i = 2; i < argc; ++i) {
      std::string a = argv[i];
      if (a == "--help") {
        std::printf("usage: kiln %s\n\n%s\n", c.usage, c.help);
        return 0;
      }
      if (a.size() < 3 || a.compare(0, 2, "--")) {
        args.positional.push_back(a);
        continue;
      }
      std::string value;
      const size_t eq = a.find('=');
      std::string key = a.substr(2, eq == std::string::npos ? eq : eq - 2);
      if (c.flags.count(key) && eq == std::string::npos) {
        args.options.insert({key, ""});
      } else if (c.valued.count(key)) {
        if (eq != std::string::npos)
          value = a.substr(eq + 1);
        else if (++i < argc)
          value = argv[i];
        else {
          std::fprintf(stderr, "kiln %s: --%s needs a value\n", c.name, key.c_str());
          return 2;
        }
        args.options.insert({key, value});
      } else {
        std::fprintf(stderr, "kiln %s: unknown option %s\nusage: kiln %s\n", c.name, a.c_str(), c.usage);
        return 2;
      }
    }
    if (args.positional.size() < c.min_positional || args.positional.size() > c.max_positional) {
      std::fprintf(stderr, "usage: kiln %s\n", c.usage);
      return 2;
    }
    return c.run(args);
  }
  std::fprintf(stderr, "kiln: unknown command '%s'\n", argv[1]);
  Usage(stderr);
  return 2;
}

}  // namespace

absl::Status ReadDim(const Arguments& args, ImportOptions* import) {
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
