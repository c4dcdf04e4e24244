// kiln diff FILE: compiled code against the reference evaluator on the same seeded inputs.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "aot/tools/commands.h"
#include "aot/tools/difference.h"
#include "aot/tools/inputs.h"
#include "aot/tools/program.h"
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

bool Within(double got, double want, const Limits& limits) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return true;
  const double d = std::fabs(got - want);
  return std::isfinite(d) && d <= limits.absolute + limits.relative * std::fabs(want);
}

// Whether every element is within the limits of floats; anything else has to be equal.
bool Within(const Literal& got, const Literal& want, const Difference& d, const Limits& limits) {
  if (!IsFloat(want.type()) && !IsComplex(want.type())) return d.differing == 0;
  for (int64_t k = 0; k < want.size(); ++k) {
    const Element g = got.Get(k), w = want.Get(k);
    if (!Within(g.re, w.re, limits) || !Within(g.im, w.im, limits)) return false;
  }
  return d.ulps.value <= limits.ulps;
}

// A result of a device, and what is said of it.
struct Compared {
  bool within = false;
  std::string text, json;
};

// ": compiled 1.5, reference 2"
std::string Both(const WorstElement& w, const Literal& got, const Literal& want) {
  return absl::StrCat(": compiled ", ElementText(got, w.element), ", reference ", ElementText(want, w.element));
}

std::string Differs(const Difference& d, const Literal& got, const Literal& want) {
  const auto index = [&](const WorstElement& w) {
    const std::string text = IndexText(want.shape(), w.element);
    return text.empty() ? "" : " " + text;
  };
  const bool real = IsFloat(want.type()) || IsComplex(want.type());
  std::string out = real
                        ? absl::StrFormat("largest difference %.3g absolute, %.3g relative; %.1f ulps of the reference",
                                          d.absolute.value, d.relative.value, d.ulps.value)
                        : "differs";
  absl::StrAppend(&out, " at element ", d.ulps.element, index(d.ulps), Both(d.ulps, got, want), "\n");
  for (const auto& [name, w] :
       {std::pair<const char*, const WorstElement&>{"absolute", d.absolute}, {"relative", d.relative}})
    absl::StrAppend(&out, "  ", name, absl::StrFormat(" %.3g", w.value), " at element ", w.element, index(w),
                    Both(w, got, want), "\n");
  return absl::StrCat(out, "  ", d.differing, " of ", want.size(), " elements differ\n");
}

Compared Compare(const Literal& got, const Literal& want, const Limits& limits) {
  const std::string shape = want.shape().ToString(false);
  if (got.type() != want.type() || got.shape().dims() != want.shape().dims()) {
    const std::string other = got.shape().ToString(false);
    return {false, absl::StrCat(": compiled ", other, ", reference ", shape, "\n"),
            absl::StrCat(",\"compiled_shape\":", JsonQuote(other))};
  }
  const Difference d = CompareArrays(got, want);
  return {Within(got, want, d, limits), absl::StrCat(" ", shape, ": ", d.differing ? Differs(d, got, want) : "equal\n"),
          absl::StrCat(",\"elements\":", want.size(), ",", DifferenceJson(d, got, want))};
}

// The library's own options where there is a config, with its levels unless the command line names others.
absl::StatusOr<CompileOptions> ReadCompileOptions(const Arguments& args) {
  CompileOptions out;
  out.cpu.levels.clear();
  if (args.Has("config")) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(args.Get("config")));
    ASSIGN_OR_RETURN(out, ParseConfig(text, args.Get("config")));
  }
  if (args.Has("target")) out.cpu.levels = args.All("target");
  if (out.cpu.levels.empty()) out.cpu.levels = {"native"};
  // One program for the CPU, or for the emulator; the evaluator keeps subnormal numbers.
  out.gpu.targets.clear();
  out.model.batch_sizes.clear();
  out.model.weight_constant_bytes = 0;
  out.cpu.flush_subnormals = false;
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

// What a whole comparison says. `json` is empty unless it was asked for.
struct Outcome {
  bool within = true;
  std::string json;
};

absl::StatusOr<Outcome> Run(const Arguments& args) {
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
  Outcome out;
  std::vector<std::string> results;
  for (size_t d = 0; d < want.size(); ++d)
    for (size_t k = 0; k < want[d].size(); ++k) {
      const Compared c = Compare(got[d][k], want[d][k], limits);
      out.within = out.within && c.within;
      if (args.Has("json"))
        results.push_back(absl::StrCat(
            "{\"device\":", d, ",\"result\":", k, ",\"dtype\":", JsonQuote(TextOf(want[d][k].type())), ",\"shape\":[",
            absl::StrJoin(want[d][k].shape().dims(), ","), "],\"within\":", c.within ? "true" : "false", c.json, "}"));
      else if (want.size() > 1)
        std::printf("device %zu result %zu%s", d, k, c.text.c_str());
      else
        std::printf("result %zu%s", k, c.text.c_str());
    }
  if (args.Has("json"))
    out.json = absl::StrCat("{\"within\":", out.within ? "true" : "false", ",\"results\":[",
                            absl::StrJoin(results, ","), "]}\n");
  return out;
}

// --bisect: the search for what changed a result.
void FindRewrite(const Arguments& args) {
  std::printf("which rewrite changes the result:\n");
  Arguments bisect;
  bisect.positional = args.positional;
  for (const char* key : {"input", "seed", "ulps", "dim", "entry"})
    for (const std::string& value : args.All(key)) bisect.options.insert({key, value});
  bisect.options.insert({"out", args.Get("bisect")});
  BisectCommand(bisect);
}

}  // namespace

int DiffCommand(const Arguments& args) {
  auto r = Run(args);
  if (!r.ok()) {
    std::fprintf(stderr, "%s\n", std::string(r.status().message()).c_str());
    return 1;
  }
  if (!r->within && args.Has("bisect")) FindRewrite(args);
  std::fputs(r->json.c_str(), stdout);
  return r->within ? 0 : 1;
}

}  // namespace kiln
