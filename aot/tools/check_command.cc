// kiln check FILE...: runs StableHLO programs that check themselves.
//
// The checks (check.expect_eq, ...) leave the program: their operands become its results, the backend computes them,
// and the comparison happens here. Programs of several devices (interpreter.run_parallel) run first; their results
// become constants.
#include <cmath>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "aot/tools/commands.h"
#include "aot/tools/difference.h"
#include "aot/tools/runner.h"
#include "compiler/import/import.h"
#include "compiler/pipeline/registry.h"

namespace kiln {
namespace {

struct Check {
  std::string kind;
  std::string limits;  // "max_ulp_difference=3", "tolerance=0.1", or empty
  size_t first;        // result index of its first operand; the second follows
  bool normwise;       // the value comes from an operation whose error is bounded by norms
};

// Of the attribute `key`, or what the check takes by default.
double Limit(const Check& c, absl::string_view key, double otherwise) {
  absl::string_view text = c.limits;
  double v;
  if (absl::ConsumePrefix(&text, key) && absl::ConsumePrefix(&text, "=") && absl::SimpleAtod(text, &v)) return v;
  return otherwise;
}

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

double LargestMagnitude(const Literal& l) {
  double m = 0;
  for (int64_t k = 0; k < l.size(); ++k) {
    const Element e = l.Get(k);
    const double a = std::hypot(e.re, e.im);
    if (std::isfinite(a)) m = std::max(m, a);
  }
  return m;
}

absl::Status Compare(const Check& c, const Literal& got, const Literal& want) {
  const PrimitiveType t = want.type();
  const bool real = IsFloat(t) || IsComplex(t);
  if (!got.shape().Compatible(want.shape()))
    return InvalidArgument(c.kind, ": shapes differ: ", got.shape().ToString(false), " and ",
                           want.shape().ToString(false));
  bool ok;
  if (absl::StrContains(c.kind, "almost")) {
    const double tolerance = Limit(c, "tolerance", 1e-3);
    ok = real ? Near(got, want, tolerance, tolerance) : got == want;
  } else if (absl::StrContains(c.kind, "close")) {
    const double ulps = Limit(c, "max_ulp_difference", 3);
    ok = real ? CompareArrays(got, want).ulps.value <= ulps : got == want;
    // Error bounds of transforms and triangular solves are in terms of the whole array's size.
    if (!ok && c.normwise) {
      const double unit = std::ldexp(1.0, -InfoOf(ComponentType(t)).mantissa_bits);
      ok = Near(got, want, 0, ulps * unit * LargestMagnitude(want));
    }
  } else {
    ok = real ? Near(got, want, 0, 0) : got == want;
  }
  if (ok) return absl::OkStatus();
  const Difference d = CompareArrays(got, want);
  return InvalidArgument(c.kind, ": ", Describe(d, got, want), " (", d.ulps.value, " ulps)");
}

bool IsTarget(const Instruction* i, absl::string_view prefix) {
  return i->Is(Opcode::CustomCall) && i->attrs().custom_call_target &&
         absl::StartsWith(i->attrs().custom_call_target->text, prefix);
}

// Makes `results` what the entry returns, and takes out every check and parallel run that they do not need.
void ReturnOnly(Module& m, const std::vector<Instruction*>& results) {
  Computation* e = m.entry();
  std::vector<Shape> shapes;
  for (const Instruction* i : results) shapes.push_back(i->shape());
  e->set_root(e->Add(Opcode::Tuple, Shape::Tuple(shapes), results));
  for (bool again = true; again;) {
    again = false;
    std::vector<Instruction*> all;
    for (const auto& i : e->instructions()) all.push_back(i.get());
    for (Instruction* i : all)
      if (i->users().empty() && !i->IsRoot() && !i->Is(Opcode::Parameter) &&
          (!i->HasSideEffect() || IsTarget(i, "check.") || IsTarget(i, "interpreter."))) {
        e->Remove(i);
        again = true;
      }
  }
  m.RemoveUnreachableComputations();
  m.aliases.clear();
  m.entry_layout.reset();
  m.replica_count = m.partition_count = 1;
}

// A module whose entry is the computation `name` of `m`.
std::unique_ptr<Module> ProgramOf(const Module& m, const std::string& name) {
  std::unique_ptr<Module> copy = m.Clone();
  for (const auto& c : copy->computations())
    if (c->name() == name) copy->set_entry(c.get());
  copy->RemoveUnreachableComputations();
  copy->aliases.clear();
  copy->entry_layout.reset();
  return copy;
}

struct Session {
  CompileOptions compile;
  RunOptions run;

  // The values of instructions of the entry.
  absl::StatusOr<std::vector<Literal>> Values(const Module& m, const std::vector<Instruction*>& wanted) {
    std::unique_ptr<Module> copy = m.Clone();
    absl::flat_hash_map<std::string, Instruction*> by_name;
    for (const auto& i : copy->entry()->instructions()) by_name[i->name()] = i.get();
    std::vector<Instruction*> results;
    for (const Instruction* i : wanted) results.push_back(by_name.at(i->name()));
    ReturnOnly(*copy, results);
    ASSIGN_OR_RETURN(RunResult r, RunModule(std::move(copy), {}, compile, run));
    return std::move(r.results);
  }

  // Runs the programs of an interpreter.run_parallel and puts constants in place of its results.
  absl::Status RunParallel(Module& m, Instruction* p) {
    const int64_t devices = m.replica_count * m.partition_count;
    const std::vector<Computation*> called = *p->attrs().called_computations;
    std::vector<Instruction*> arrays;
    for (Instruction* o : p->operands())
      if (o->shape().IsArray()) arrays.push_back(o);
    std::vector<Literal> operands;
    if (!arrays.empty()) {
      ASSIGN_OR_RETURN(operands, Values(m, arrays));
    }
    std::vector<Literal> infeed;
    for (size_t k = devices; k < called.size(); ++k) {
      std::unique_ptr<Module> feed = ProgramOf(m, called[k]->name());
      feed->replica_count = feed->partition_count = 1;
      ASSIGN_OR_RETURN(RunResult r, RunModule(std::move(feed), {}, compile, run));
      infeed.insert(infeed.end(), r.results.begin(), r.results.end());
    }
    absl::flat_hash_map<const Computation*, std::unique_ptr<Module>> modules;
    std::vector<DeviceProgram> programs;
    size_t next = 0;
    for (int64_t d = 0; d < devices; ++d) {
      auto& module = modules[called[d]];
      if (!module) module = ProgramOf(m, called[d]->name());
      DeviceProgram program{module.get(), {}};
      for (const Instruction* a : module->entry()->parameters())
        if (a->shape().IsArray()) {
          if (next >= operands.size()) return ErrorAt(p, "has fewer operands than its programs take");
          program.arguments.push_back(operands[next++]);
        }
      programs.push_back(std::move(program));
    }
    ASSIGN_OR_RETURN(auto results, RunDevices(programs, m.replica_count, m.partition_count, infeed, compile, run));
    std::vector<Literal> flat;
    for (const auto& r : results) flat.insert(flat.end(), r.begin(), r.end());
    Computation* e = m.entry();
    std::vector<Instruction*> parts;
    next = 0;
    for (const Shape& s : p->shape().tuple()) {
      if (s.IsArray() && (next >= flat.size() || !flat[next].shape().Compatible(s)))
        return ErrorAt(p, "its results are not those of its programs");
      parts.push_back(s.IsArray() ? e->AddConstant(flat[next++]) : e->Add(Opcode::AfterAll, s, {}));
    }
    p->ReplaceAllUsesWith(e->Add(Opcode::Tuple, p->shape(), parts));
    e->Remove(p);
    return absl::OkStatus();
  }
};

bool Normwise(const Instruction* i) {
  while (i->operand_count() == 1 || i->Is(Opcode::GetTupleElement)) {
    if (i->Is(Opcode::Fft)) return true;
    i = i->operand(0);
  }
  return i->Is(Opcode::TriangularSolve);
}

absl::Status CheckFile(const std::string& file, const Arguments& args) {
  ImportOptions import;
  import.entry = args.Get("entry");
  ASSIGN_OR_RETURN(auto module, LoadModule(file, import));
  PassContext ctx;
  RETURN_IF_ERROR(FindPass("call-inliner")->run(*module, ctx).status());
  Computation* e = module->entry();
  if (!e->parameters().empty()) return InvalidArgument(file, ":1:1: error: the entry takes arguments");
  Session session;
  session.compile.cpu.levels = {args.Get("target", "native")};
  session.compile.cpu.flush_subnormals = false;
  // These programs hold their inputs as constants: the kernels shall compute, not the compiler.
  session.compile.pipeline.disabled = {"constant-folding"};
  session.run.backend = args.Get("backend", "cpu");
  session.run.check_accesses = true;
  for (bool again = true; again;) {
    again = false;
    for (Instruction* i : e->PostOrder())
      if (IsTarget(i, "interpreter.run_parallel")) {
        RETURN_IF_ERROR(session.RunParallel(*module, i));
        again = true;
        break;
      }
  }
  std::vector<Check> checks;
  std::vector<Instruction*> operands;
  for (Instruction* i : e->PostOrder()) {
    if (!IsTarget(i, "check.")) continue;
    if (i->operand_count() != 2) return ErrorAt(i, "this check is not supported", absl::StatusCode::kUnimplemented);
    checks.push_back({i->attrs().custom_call_target->text,
                      i->attrs().backend_config ? i->attrs().backend_config->text : "", operands.size(),
                      Normwise(i->operand(0))});
    for (Instruction* o : i->operands()) operands.push_back(o);
  }
  if (checks.empty()) return InvalidArgument(file, ":1:1: error: the program checks nothing");
  ASSIGN_OR_RETURN(std::vector<Literal> values, session.Values(*module, operands));
  for (const Check& c : checks) RETURN_IF_ERROR(Compare(c, values[c.first], values[c.first + 1]));
  return absl::OkStatus();
}

}  // namespace

int CheckCommand(const Arguments& args) {
  int passed = 0, failed = 0;
  for (const std::string& file : args.positional) {
    const absl::Status s = CheckFile(file, args);
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
