// kiln diff FILE: compiled code against the reference evaluator on the same seeded inputs.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "aot/tools/commands.h"
#include "aot/tools/inputs.h"
#include "aot/tools/program.h"
#include "aot/tools/ulp.h"
#include "compiler/base/text.h"
#include "compiler/import/import.h"

namespace kiln {
namespace {

struct Limits {
  double ulps = HUGE_VAL, absolute = HUGE_VAL, relative = 0;
};

absl::StatusOr<Limits> ReadLimits(const Arguments& args) {
  Limits out;
  if (args.Has("rtol")) out.absolute = 0;
  for (const auto& [key, value] :
       {std::pair<const char*, double*>{"ulps", &out.ulps}, {"atol", &out.absolute}, {"rtol", &out.relative}})
    if (args.Has(key) && (!absl::SimpleAtod(args.Get(key), value) || !(*value >= 0)))
      return InvalidArgument("error: --", key, " takes a number of at least 0");
  return out;
}

// The largest differences of two arrays of floats; where one is NaN or infinite and the other is not, infinite.
struct Differences {
  double absolute = 0, relative = 0;
  bool within = true;
};

Differences Between(const Literal& got, const Literal& want, const Limits& limits) {
  Differences out;
  for (int64_t k = 0; k < want.size(); ++k) {
    const Element g = got.Get(k), w = want.Get(k);
    for (const auto& [a, b] : {std::pair<double, double>{g.re, w.re}, {g.im, w.im}}) {
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      const double d = std::isfinite(a) && std::isfinite(b) ? std::fabs(a - b) : HUGE_VAL;
      out.absolute = std::max(out.absolute, d);
      out.relative = std::max(out.relative, d / std::fabs(b));
      out.within = out.within && std::isfinite(d) && d <= limits.absolute + limits.relative * std::fabs(b);
    }
  }
  return out;
}

// Prints how a result compares; whether it is within the limits.
bool Report(const std::string& title, const Literal& got, const Literal& want, const Limits& limits) {
  const std::string shape = want.shape().ToString(false);
  if (got.type() != want.type() || got.shape().dims() != want.shape().dims()) {
    std::printf("%s: compiled %s, reference %s\n", title.c_str(), got.shape().ToString(false).c_str(), shape.c_str());
    return false;
  }
  const UlpError e = LargestUlpError(got, want);
  if (e.ulps == 0) {
    std::printf("%s %s: equal\n", title.c_str(), shape.c_str());
    return true;
  }
  const std::string where = absl::StrCat("at element ", e.element, ": compiled ", e.got, ", reference ", e.want);
  if (!IsFloat(want.type()) && !IsComplex(want.type())) {
    std::printf("%s %s: differs %s\n", title.c_str(), shape.c_str(), where.c_str());
    return false;
  }
  const Differences d = Between(got, want, limits);
  std::printf("%s %s: largest difference %.3g absolute, %.3g relative; %.1f ulps of the reference %s\n", title.c_str(),
              shape.c_str(), d.absolute, d.relative, e.ulps, where.c_str());
  return d.within && e.ulps <= limits.ulps;
}

// The library's own options where there is a config, with its levels unless the command line names others.
absl::StatusOr<CompileOptions> ReadCompileOptions(const Arguments& args) {
  CompileOptions out;
  out.cpu_levels.clear();
  if (args.Has("config")) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(args.Get("config")));
    ASSIGN_OR_RETURN(out, ParseConfig(text, args.Get("config")));
  }
  if (args.Has("target")) out.cpu_levels = args.All("target");
  if (out.cpu_levels.empty()) out.cpu_levels = {"native"};
  // One program for the CPU, or for the emulator; the evaluator keeps subnormal numbers.
  out.gpu_targets.clear();
  out.batch_sizes.clear();
  out.weight_constant_bytes = 0;
  out.flush_subnormals = false;
  return out;
}

// What each device is given: the arrays of files, or seeded ones.
absl::StatusOr<std::vector<Values>> ReadArguments(const Arguments& args, const Module& module) {
  const int64_t devices = module.replica_count * module.partition_count;
  if (args.Has("input")) {
    if (devices > 1) return InvalidArgument("error: --input is for programs of one device");
    const std::unique_ptr<Module> fixed = module.Clone();
    RETURN_IF_ERROR(MakeStatic(fixed.get()));
    ASSIGN_OR_RETURN(const std::vector<Literal> inputs, ReadInputs(args.All("input"), *fixed));
    ASSIGN_OR_RETURN(Values values, WithoutSizes(inputs, ArgumentLeaves(module)));
    return std::vector<Values>{std::move(values)};
  }
  uint64_t seed = 0;
  if (!absl::SimpleAtoi(args.Get("seed", "0"), &seed)) return InvalidArgument("error: --seed takes a number");
  // A program with shardings is given whole arrays, the same on every device.
  bool sharded = false;
  for (const auto& c : module.computations())
    for (const auto& i : c->instructions())
      sharded = sharded || i->attrs().sharding ||
                (i->attrs().frontend_attributes && absl::StrContains(i->attrs().frontend_attributes->text, "sdy."));
  std::vector<Values> out;
  for (int64_t d = 0; d < devices; ++d) out.push_back(SeededValues(module, seed, sharded ? 0 : d));
  return out;
}

absl::StatusOr<int> Run(const Arguments& args) {
  ASSIGN_OR_RETURN(ImportOptions import, SettleFromInputs(args.All("input")));
  ASSIGN_OR_RETURN(const CompileOptions compile, ReadCompileOptions(args));
  RETURN_IF_ERROR(ReadImportOptions(args, compile, &import));
  ASSIGN_OR_RETURN(const Limits limits, ReadLimits(args));
  ASSIGN_OR_RETURN(auto module, LoadModule(args.positional[0], import));
  RETURN_IF_ERROR(SettleDevices(args, module.get()));
  ASSIGN_OR_RETURN(const std::vector<Values> inputs, ReadArguments(args, *module));
  RunOptions reference, compiled;
  reference.backend = "reference";
  compiled.backend = args.Get("backend", "cpu");
  compiled.launcher = args.Get("launcher", "threads");
  ASSIGN_OR_RETURN(const std::vector<Values> want, RunProgram(*module, inputs, compile, reference));
  ASSIGN_OR_RETURN(const std::vector<Values> got, RunProgram(*module, inputs, compile, compiled));
  bool within = true;
  for (size_t d = 0; d < want.size(); ++d)
    for (size_t k = 0; k < want[d].size(); ++k) {
      const std::string title =
          want.size() > 1 ? absl::StrCat("device ", d, " result ", k) : absl::StrCat("result ", k);
      within = Report(title, got[d][k], want[d][k], limits) && within;
    }
  return within ? 0 : 1;
}

}  // namespace

int DiffCommand(const Arguments& args) {
  auto r = Run(args);
  if (!r.ok()) {
    std::fprintf(stderr, "%s\n", std::string(r.status().message()).c_str());
    return 1;
  }
  if (*r == 0 || !args.Has("bisect")) return *r;
  std::printf("which rewrite changes the result:\n");
  Arguments bisect;
  bisect.positional = args.positional;
  for (const char* key : {"input", "seed", "ulps", "dim", "entry"})
    for (const std::string& value : args.All(key)) bisect.options.insert({key, value});
  bisect.options.insert({"out", args.Get("bisect")});
  BisectCommand(bisect);
  return *r;
}

}  // namespace kiln
