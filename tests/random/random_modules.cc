// random_modules FIRST COUNT: compares evaluator, compiled code and compiled code without optimisation on the modules
// of COUNT seeds. Prints each seed that differs; --keep DIR leaves its text there, also of one that ends the program,
// and the first device's arguments.
// --unoptimised N compiles without optimisation for one seed in N, 0 for none: most of the time goes to LLVM. --arena
// PERCENT gives optimised code so much of the arena that it would take (what cannot be met is left out), and every
// third a slow one. --partitions N cuts arrays of the modules over N devices, which changes no result; those modules
// have algorithms too, and one seed in four reduces by functions that need an order, for CPUs alone: GPUs reduce in
// any. --wide 1: more operations, types and attributes, complex numbers, and some larger arrays.
#include <cstdio>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "aot/tools/npy.h"
#include "compiler/base/text.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/verify.h"
#include "compiler/pipeline/registry.h"
#include "tests/random/arguments.h"
#include "tests/random/generator.h"
#include "tests/random/shardings.h"

namespace kiln {
namespace {

struct Options {
  RandomOptions random;
  std::vector<std::string> backends;
  uint64_t unoptimised = 1;
  int64_t arena_percent = 0, partitions = 1;
  const char* keep = nullptr;
  std::string level = "native";
};

// Less memory than the program takes by itself.
absl::Status Tighten(uint64_t seed, const Module& m, int64_t percent, CompileOptions* o) {
  ASSIGN_OR_RETURN(const CompiledModel model, Compile(m.Clone(), *o));
  o->model.max_arena_bytes = model.report.temp_bytes * percent / 100;
  if (seed % 3 == 0 && o->model.max_arena_bytes > 0) o->model.slow_arena_bytes = model.report.temp_bytes;
  return absl::OkStatus();
}

std::string KeptAt(const Options& o, uint64_t seed) { return absl::StrCat(o.keep, "/", seed, ".hlo"); }

std::string KeptArgument(const Options& o, uint64_t seed, size_t k) {
  return absl::StrCat(o.keep, "/", seed, ".", k, ".npy");
}

void RemoveKept(const Options& o, uint64_t seed) {
  std::remove(KeptAt(o, seed).c_str());
  for (size_t k = 0; std::remove(KeptArgument(o, seed, k).c_str()) == 0;) ++k;
}

// `tight`: counts those that ran in less memory than they take by themselves.
absl::Status Try(uint64_t seed, const Options& o, uint64_t* tight) {
  RandomOptions random = o.random;
  random.ordered = random.libraries && seed % 4 == 0 && absl::c_linear_search(o.backends, "cpu");
  const std::unique_ptr<Module> m = RandomModule(seed, random);
  if (o.partitions > 1) AddShardings(m.get(), seed, o.partitions);
  if (o.keep) RETURN_IF_ERROR(WriteFile(KeptAt(o, seed), ToText(*m)));
  RETURN_IF_ERROR(VerifyModule(*m));
  std::vector<Values> arguments;
  for (int64_t d = 0; d < o.random.devices; ++d) arguments.push_back(SmallValues(*m, seed, d));
  for (int64_t d = 1; d < o.partitions; ++d) arguments.push_back(arguments[0]);
  for (size_t k = 0; o.keep && k < arguments[0].size(); ++k)
    RETURN_IF_ERROR(WriteNpy(KeptArgument(o, seed, k), arguments[0][k]));
  CompileOptions full, plain;
  full.cpu.levels = plain.cpu.levels = {o.level};
  full.cpu.sum_f16_in_f32 = plain.cpu.sum_f16_in_f32 = true;
  full.cpu.flush_subnormals = plain.cpu.flush_subnormals = false;
  full.model.round_every_operation = plain.model.round_every_operation = true;  // as the evaluator does
  full.debug.poison_freed = true;
  full.cpu.threads = plain.cpu.threads = seed % 4 ? 1 : 0;  // code for threads takes longer to make than small kernels
  plain.pipeline.disabled = {
      "algsimp", "cse", "constant-folding", "cpu-instruction-fusion", "transpose-folding", "conditional-simplifier"};
  if (o.arena_percent > 0) RETURN_IF_ERROR(Tighten(seed, *m, o.arena_percent, &full));
  RunOptions reference;
  reference.backend = "reference";
  ASSIGN_OR_RETURN(const std::vector<Values> want, RunProgram(*m, arguments, full, reference));
  for (const std::string& backend : random.ordered ? std::vector<std::string>{"cpu"} : o.backends)
    for (const bool optimised : {true, false}) {
      if (!optimised && (o.unoptimised == 0 || seed % o.unoptimised != 0)) continue;
      RunOptions run;
      run.backend = backend;
      run.check_accesses = true;
      const std::string how = absl::StrCat(backend, optimised ? ", optimised" : ", unoptimised");
      const auto got = RunProgram(*m, arguments, optimised ? full : plain, run);
      if (optimised && full.model.max_arena_bytes > 0) {
        if (absl::IsResourceExhausted(got.status())) continue;
        *tight += got.ok();
      }
      if (!got.ok()) return InvalidArgument(how, ": ", got.status().message());
      for (size_t d = 0; d < want.size(); ++d)
        if (absl::Status s = SameValues((*got)[d], want[d], {}); !s.ok())
          return InvalidArgument(how, want.size() > 1 ? absl::StrCat(", device ", d) : "", ": ", s.message());
    }
  return absl::OkStatus();
}

// A difference is one of rounding where it goes with another offset of what is rounded.
absl::Status TryTwice(uint64_t seed, const Options& o, uint64_t* tight) {
  const absl::Status s = Try(seed, o, tight);
  if (s.ok() || !o.random.wide) return s;
  Options other = o;
  other.keep = nullptr;
  for (const double offset : {0.2113, -0.0719}) {
    other.random.offset = offset;
    if (Try(seed, other, tight).ok()) return absl::OkStatus();
  }
  return s;
}

int Usage() {
  std::fprintf(
      stderr,
      "usage: random_modules FIRST COUNT [--keep DIR] [--backend cpu|cpu-emulated|gpu-emulated] [--level LEVEL]\n"
      "                      [--devices N] [--dynamic 1] [--wide 1] [--unoptimised N] [--arena PERCENT]\n"
      "                      [--partitions N]\n");
  return 2;
}

int Main(int argc, char** argv) {
  Options o;
  uint64_t first = 0, count = 0;
  if (argc < 3 || argc % 2 == 0 || !absl::SimpleAtoi(argv[1], &first) || !absl::SimpleAtoi(argv[2], &count))
    return Usage();
  for (int k = 3; k + 1 < argc; k += 2) {
    const std::string key = argv[k];
    if (key == "--keep")
      o.keep = argv[k + 1];
    else if (key == "--backend")
      o.backends.emplace_back(argv[k + 1]);
    else if (key == "--level")
      o.level = argv[k + 1];
    else if (key == "--dynamic")
      o.random.dynamic = true;
    else if (key == "--wide")
      o.random.wide = true;
    else if (key == "--unoptimised") {
      if (!absl::SimpleAtoi(argv[k + 1], &o.unoptimised)) return Usage();
    } else if (key == "--partitions") {
      if (!absl::SimpleAtoi(argv[k + 1], &o.partitions) || o.partitions < 1) return Usage();
    } else if (key == "--arena") {
      if (!absl::SimpleAtoi(argv[k + 1], &o.arena_percent) || o.arena_percent < 1) return Usage();
    } else if (key != "--devices" || !absl::SimpleAtoi(argv[k + 1], &o.random.devices) || o.random.devices < 1)
      return Usage();
  }
  o.random.libraries = o.partitions > 1;
  if (o.backends.empty()) o.backends = {"cpu", "gpu-emulated"};
  uint64_t failed = 0, tight = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const absl::Status s = TryTwice(seed, o, &tight);
    if (s.ok() && o.keep) RemoveKept(o, seed);
    if (s.ok()) continue;
    ++failed;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), std::string(s.message()).c_str());
    std::fflush(stdout);
  }
  if (o.arena_percent > 0) std::printf("%llu in less memory\n", static_cast<unsigned long long>(tight));
  std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(count - failed),
              static_cast<unsigned long long>(failed));
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) { return kiln::Main(argc, argv); }
