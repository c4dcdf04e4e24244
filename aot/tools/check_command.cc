// kiln check FILE...: runs StableHLO programs that check themselves.
//
// The checks (check.expect_eq, ...) leave the program: their operands become its results, the backend computes them,
// and the comparison happens here.
#include <cmath>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "aot/tools/commands.h"
#include "aot/tools/runner.h"
#include "aot/tools/ulp.h"
#include "compiler/import/import.h"
#include "compiler/pipeline/registry.h"

namespace kiln {
namespace {

struct Check {
  std::string kind;
  size_t first;  // result index of its first operand; the second follows
};

bool Near(const Literal& got, const Literal& want, double relative, double absolute) {
  for (int64_t k = 0; k < want.size(); ++k) {
    const Element g = got.Get(k), w = want.Get(k);
    for (auto [a, b] : {std::pair{g.re, w.re}, std::pair{g.im, w.im}}) {
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      if (!(std::fabs(a - b) <= absolute + relative * std::fabs(b))) return false;
    }
  }
  return true;
}

absl::Status Compare(const Check& c, const Literal& got, const Literal& want) {
  const PrimitiveType t = want.type();
  const bool real = IsFloat(t) || IsComplex(t);
  if (!got.shape().Compatible(want.shape()))
    return InvalidArgument(c.kind, ": shapes differ: ", got.shape().ToString(false), " and ",
                           want.shape().ToString(false));
  bool ok;
  if (absl::StrContains(c.kind, "almost"))
    ok = real ? Near(got, want, 1e-3, 1e-3) : got == want;
  else if (absl::StrContains(c.kind, "close"))
    ok = real ? LargestUlpError(got, want).ulps <= 3 : got == want;
  else
    ok = real ? Near(got, want, 0, 0) : got == want;
  if (ok) return absl::OkStatus();
  const UlpError e = LargestUlpError(got, want);
  return InvalidArgument(c.kind, ": element ", e.element, " is ", e.got, ", expected ", e.want, " (", e.ulps, " ulps)");
}

absl::Status CheckFile(const std::string& file, const std::string& backend) {
  ASSIGN_OR_RETURN(auto module, LoadModule(file));
  PassContext ctx;
  RETURN_IF_ERROR(CallInliner(*module, ctx).status());
  Computation* e = module->entry();
  if (!e->parameters().empty()) return InvalidArgument(file, ":1:1: error: the entry takes arguments");
  std::vector<Check> checks;
  std::vector<Instruction*> results;
  std::vector<Shape> shapes;
  for (Instruction* i : e->PostOrder()) {
    if (!i->Is(Opcode::CustomCall) || !i->attrs().custom_call_target ||
        !absl::StartsWith(i->attrs().custom_call_target->text, "check."))
      continue;
    if (i->operand_count() != 2) return ErrorAt(i, "this check is not supported", absl::StatusCode::kUnimplemented);
    checks.push_back({i->attrs().custom_call_target->text, results.size()});
    for (Instruction* o : i->operands()) {
      results.push_back(o);
      shapes.push_back(o->shape());
    }
  }
  if (checks.empty()) return InvalidArgument(file, ":1:1: error: the program checks nothing");
  e->set_root(e->Add(Opcode::Tuple, Shape::Tuple(shapes), results));
  for (bool again = true; again;) {
    again = false;
    for (Instruction* i : e->PostOrder())
      if (i->Is(Opcode::CustomCall) && i->users().empty() &&
          absl::StartsWith(i->attrs().custom_call_target->text, "check.")) {
        e->Remove(i);
        again = true;
      }
  }
  module->aliases.clear();
  module->entry_layout.reset();
  CompileOptions compile;
  compile.cpu_levels = {"native"};
  compile.flush_subnormals = false;
  RunOptions run;
  run.backend = backend;
  ASSIGN_OR_RETURN(RunResult r, RunModule(std::move(module), {}, compile, run));
  for (const Check& c : checks) RETURN_IF_ERROR(Compare(c, r.results[c.first], r.results[c.first + 1]));
  return absl::OkStatus();
}

}  // namespace

int CheckCommand(const Arguments& args) {
  int passed = 0, failed = 0;
  for (const std::string& file : args.positional) {
    const absl::Status s = CheckFile(file, args.Get("backend", "cpu"));
    if (s.ok()) {
      std::printf("PASS %s\n", file.c_str());
      ++passed;
    } else {
      std::printf("FAIL %s: %s\n", file.c_str(), std::string(s.message()).c_str());
      ++failed;
    }
    std::fflush(stdout);
  }
  std::printf("%d passed, %d failed, 0 skipped\n", passed, failed);
  return failed ? 1 : 0;
}

}  // namespace kiln
