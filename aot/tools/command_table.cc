#include "aot/tools/command_table.h"

#include <limits>

namespace kiln {
namespace {

constexpr size_t kAnyNumber = std::numeric_limits<size_t>::max();

// What several commands take.
const Option kDim = {"dim", "N", "the extent of every unbounded dimension"};
const Option kEntry = {"entry", "NAME", "the function to begin with, where several are public"};
const Option kEntries = {"entry", "NAME",
                         "a public function that becomes an entry of the library; NAME=FILE: a module that does, where "
                         "no MODULE is given; default: all public functions",
                         Takes::kAny};
const Option kConfig = {"config", "F", "a configuration (text proto, see config.proto)"};
const Option kSeed = {"seed", "N", "which random inputs; default 0"};
const Option kLauncher = {"launcher", "threads|mpi",
                          "what devices are: threads of a process, or ranks of Open MPI, which mpirun starts"};
const Option kDevices = {"devices", "N", "how many devices, where the module does not say"};
const Option kBackend = {
    "backend", "B",
    "cpu (the default), cpu-emulated (AVX-VNNI, AVX512-FP16 and AMX in software, where --target has them "
    "and this machine does not), gpu (the machine's), gpu-emulated, or reference (the evaluator)"};
const Option kLevel = {"target", "LEVEL", "the x86-64 level; default native"};
const Option kInput = {"input", "F.npy", "the next argument's array; none: seeded random ones", Takes::kAny};

const Command kCompile = {
    "compile",
    CompileCommand,
    "MODULE",
    0,
    1,
    "Compiles a program into a static library, headers and a manifest.",
    "Writes DIR/libNAME.a, DIR/NAME.h (C++17), DIR/NAME_c.h (C99) and DIR/NAME.manifest.json. The library depends on "
    "libc and libm alone. Several functions, of one module or of several, become entries that share weights and "
    "memory.",
    {{"name", "NAME", "what the library, its namespace and its functions are called", Takes::kNeeded},
     {"out", "DIR", "the folder to write to; it is made if it is missing", Takes::kNeeded, 'o'},
     kConfig,
     {"target", "T",
      "v2, v3, v3dot, v4, v4dot, v4fp16, v4bf16, amx (x86-64 levels), cpu (v2, v3, v4, and others by "
      "which products gain), native, sm_75, sm_80, ... (NVIDIA GPUs), or cuda (sm_80, sm_90 and sm_100); default: the "
      "config's, else cpu",
      Takes::kAny},
     {"batch", "N", "a variant for this size of the unbounded dimension, beside those of the config", Takes::kAny},
     {"tuning", "F", "what a tuning program wrote (kiln tune), beside those of the config", Takes::kAny},
     kDim,
     kEntries,
     {"shared", nullptr, "also write DIR/libNAME.so, for programs that load models (kiln.h); no linker is needed"},
     {"cache", "DIR",
      "keep products in DIR, and take them from there when all that decides them is as it was; default: KILN_CACHE of "
      "the environment; \"\": none"},
     {"cache-limit", "SIZE",
      "what the cache may take, as 500M or 5G, before the products that were not asked for longest go; 0: any size; "
      "default: KILN_CACHE_LIMIT, else 5G"},
     {"json", nullptr, "print sizes and counts as one line of JSON"},
     {"verbose", nullptr, "say each stage as it begins, how much is left, and at the end what each took", Takes::kOne,
      'v'}}};

const Command kLink = {
    "link",
    LinkCommand,
    "LIBRARY.a...",
    1,
    kAnyNumber,
    "Makes one shared object of compiled libraries.",
    "For programs that load models: it shows the one symbol kiln_models (kiln.h). No linker is needed.",
    {{"out", "FILE.so", "the file to write", Takes::kNeeded, 'o'}}};

const Command kInspect = {"inspect",
                          InspectCommand,
                          "FILE.a|FILE.so",
                          1,
                          1,
                          "Says what a compiled library holds.",
                          "Versions, targets, memory, arguments and results. None of the library's code runs.",
                          {{"json", nullptr, "print the same as JSON, a list of models"},
                           {"entry", "NAME", "only this entry of a library that has several"}}};

const Command kRun = {
    "run",
    RunCommand,
    "MODULE",
    1,
    1,
    "Compiles, links and runs a program in a process of its own.",
    "Results go to DIR/result_K.npy. A program of several devices runs each as a thread, on parts of the inputs as "
    "shardings say; results are joined. If CC names a C compiler, it links (and can add the functions of custom "
    "calls).",
    {kInput,
     kSeed,
     {"out", "DIR", "the folder for results", Takes::kOne, 'o'},
     kBackend,
     {"threads", "N", "how many threads one run may use; default 1"},
     {"repeat", "N", "how many runs; times are of all but the first"},
     kLevel,
     kConfig,
     kDim,
     kEntry,
     {"devices", "N",
      "how many devices, where the module does not say; inputs and results then have a row for each replica"},
     kLauncher,
     {"json", nullptr, "print times, types and counts as one line of JSON"}}};

const Command kCheck = {"check",
                        CheckCommand,
                        "FILE...",
                        1,
                        kAnyNumber,
                        "Runs StableHLO programs that check themselves.",
                        "Prints PASS or FAIL for each, then the counts.",
                        {kBackend, kLevel, kEntry, {"jobs", "N", "accepted; files are run one after the other"}}};

const Command kDiff = {
    "diff",
    DiffCommand,
    "FILE",
    1,
    1,
    "Compares compiled code with the reference evaluator on the same inputs.",
    "Says the types, the extents and the largest absolute, relative and last-place difference of each result, with "
    "where they are. The exit code is 1 if anything but floats differs, or floats by more "
    "than --atol + --rtol * |reference|, or than --ulps. A device has inputs of its own.",
    {kInput,
     kSeed,
     kBackend,
     kConfig,
     {"target", "LEVEL", "the x86-64 level; default: the config's, else native", Takes::kAny},
     kDim,
     kEntry,
     kDevices,
     kLauncher,
     {"atol", "X", "the absolute difference that floats may have"},
     {"rtol", "X", "the difference that floats may have, relative to the reference"},
     {"ulps", "N", "the difference that floats may have, in units of the last place"},
     {"bisect", "DIR", "where it differs: also find the rewrite at fault, and write the modules around it to DIR"},
     {"json", nullptr, "print the same as one line of JSON, the last"}}};

const Command kTune = {
    "tune",
    TuneCommand,
    "MODULE",
    1,
    1,
    "Measures how a model's products and convolutions are best computed.",
    "Results are for later compiles (compile --tuning, or tuning_results in the config). On this machine's CPU they "
    "are "
    "measured at once, and --out names their file. For a GPU --out is a program that has every algorithm that is a "
    "candidate; on a machine with the GPU it writes NAME.GPU.tuning. Linking it needs a C compiler (CC, or cc).",
    {{"target", "T", "what to measure on: a GPU (sm_90, ...), cpu, or an x86-64 level that this machine has"},
     {"out", "FILE", "the results, or the program to write", Takes::kNeeded, 'o'},
     {"threads", "N", "on a CPU, how many threads a run uses; default 1"},
     {"name", "NAME", "what results are called; default model"},
     kConfig,
     {"results", "F", "results that there are already; they are left out", Takes::kAny},
     {"denylist", "F", "algorithms that must not be used"},
     {"level", "N", "on a GPU, how much to measure, 1 to 4"},
     {"again", nullptr, "measure what has results too"},
     kDim,
     kEntry}};

const Command kExplain = {"explain",
                          ExplainCommand,
                          "MODULE",
                          1,
                          1,
                          "Says what was decided and why.",
                          "The work, the arena and who owns its peak, what was done to meet a limit, the kernels with "
                          "what they fuse, and what each pass did.",
                          {{"html", "F",
                            "write the same and more as one page: memory over time, the arena packed, "
                            "kernels as a graph"},
                           {"run", nullptr, "also measure a run on seeded inputs"},
                           {"json", nullptr, "print the same as one line of JSON"},
                           {"target", "T",
                            "the program for this x86-64 level or GPU (sm_90, ...); default: the config's for CPUs, or "
                            "its first GPU if it has no level"},
                           kConfig,
                           kDim,
                           kEntry}};

const Command kProfile = {
    "profile",
    ProfileCommand,
    "MODULE",
    1,
    1,
    "Says where the time of a run goes.",
    "By operation, with speed and share of what this machine can do at best, and by line of the user's source.",
    {kInput,
     {"threads", "N", "how many threads one run may use; default 1"},
     {"repeat", "N", "how many runs are measured"},
     {"html", "F", "write a page with a timeline and a flame graph by scopes"},
     {"trace", "F.json", "write every event, for Perfetto or chrome://tracing"},
     kConfig,
     kLevel,
     kDim,
     kEntry,
     {"json", nullptr, "print the same as JSON"}}};

const Command kReduce = {
    "reduce",
    ReduceCommand,
    "FILE",
    1,
    1,
    "Prints the smallest module that a command still accepts.",
    "As in --keep='! kiln diff {} --ulps 4'.",
    {{"keep", "CMD", "a shell command that succeeds on what to keep; {} in it is the candidate's path",
      Takes::kNeeded}}};

const Command kBisect = {
    "bisect",
    BisectCommand,
    "FILE",
    1,
    1,
    "Finds the pass and the rewrite that first change a result.",
    "Looks with the reference evaluator after each pass, and writes the modules around the rewrite. "
    "The exit code is 1 if there is one, or if compiled code differs.",
    {kInput,
     {"pipeline", "P", "cpu (the default) or gpu"},
     kSeed,
     {"ulps", "N", "the difference that floats may have; default 64"},
     kDim,
     kEntry,
     {"out", "DIR", "the folder for bisect_before.hlo and bisect_after.hlo; default .", Takes::kOne, 'o'}}};

const Command kVerify = {"verify",
                         VerifyCommand,
                         "FILE...",
                         1,
                         kAnyNumber,
                         "Parses and verifies programs.",
                         "Prints OK FILE or ERROR FILE:line:col: why for each.",
                         {kDim, kEntry}};

const Command kOpt = {
    "opt",
    OptCommand,
    "FILE",
    0,
    1,
    "Runs passes and prints HLO text.",
    "With --json, what the passes did instead: instructions before and after, and how often each ran and "
    "changed the module.",
    {{"passes", "A,B,...", "the passes to run"},
     {"pipeline", "P", "cpu or gpu: all passes of that pipeline"},
     {"stop-after", "PASS", "the last pass to run"},
     kDim,
     kEntry,
     {"list", nullptr, "print every pass, or with --pipeline the stages of that one"},
     {"json", nullptr, "print one line of JSON"}}};

const Command kSizes = {"sizes",
                        SizesCommand,
                        "MANIFEST...",
                        1,
                        kAnyNumber,
                        "Prints what libraries take: code, weights, arena, arrays.",
                        "In bytes, from the NAME.manifest.json that compile wrote.",
                        {{"out", "F", "the file to write instead", Takes::kOne, 'o'}}};

const Command kBenchmark = {"benchmark",
                            BenchmarkCommand,
                            "MANIFEST",
                            1,
                            1,
                            "Writes a C program that times a library.",
                            "The program takes --runs N, --threads N and --json. It is compiled and linked with the "
                            "library; its inputs are seeded, of the largest batch size.",
                            {{"out", "F.c", "the file to write", Takes::kNeeded, 'o'},
                             {"entry", "NAME", "which entry to time, of a library that has several"}}};

}  // namespace

const std::vector<Command>& AllCommands() {
  static const auto* commands =
      new std::vector<Command>{kCompile, kLink,   kInspect, kRun,    kProfile, kCheck, kDiff,     kTune,
                               kExplain, kReduce, kBisect,  kVerify, kOpt,     kSizes, kBenchmark};
  return *commands;
}

const Command* FindCommand(const std::string& name) {
  for (const Command& c : AllCommands())
    if (name == c.name) return &c;
  return nullptr;
}

}  // namespace kiln
