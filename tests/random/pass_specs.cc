#include "tests/random/pass_specs.h"

#include "aot/planning.h"
#include "aot/tools/difference.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/verify.h"
#include "compiler/pipeline/registry.h"
#include "tests/random/annotations.h"
#include "tests/random/arguments.h"
#include "tests/random/generator.h"

namespace kiln {
namespace {

// A property that a pass keeps: if it held before, it holds afterwards.
struct Spec {
  const char* name;
  absl::Status (*check)(const Module& before, const Module& after, int64_t first_new);
};

absl::Status Typed(const Module&, const Module& after, int64_t) { return VerifyModule(after); }

// Rules on shardings and schedules, which only front ends are held to: what was in order stays so.
absl::Status AsWritten(const Module& before, const Module& after, int64_t) {
  return VerifyAsWritten(before).ok() ? VerifyAsWritten(after) : absl::OkStatus();
}

constexpr Spec kAlways[] = {
    {"typed", Typed},
    {"control edges", CheckControlEdgesKept},
    {"shardings", CheckShardingsKept},
    {"as written", AsWritten},
};

constexpr std::pair<const char*, Facts> kStages[] = {
    {"core", fact::Core}, {"laid out", fact::LaidOut}, {"fused", fact::Fused}};

// Passes whose work is to take annotations away, by spec.
bool Excused(const PassInfo& pass, const std::string& spec) {
  const std::string name = pass.name;
  if (spec == "control edges") return name == "control-dep-remover" || name == "despecializer";
  return spec == "shardings" &&
         (name == "sharding-remover" || name == "manual-sharding-expander" || name == "spmd-partitioner");
}

std::string Story(const std::string& text, const Module& after) { return text + "\nbecame\n" + ToText(after); }

void CheckSpecs(const PassInfo& pass, const Module& before, const Module& after, int64_t first_new,
                const OnViolation& tell) {
  const auto check = [&](const std::string& spec, const absl::Status& s) {
    if (!s.ok()) tell(spec, absl::StrCat(s.message(), "\n", Story(ToText(before), after)));
  };
  for (const Spec& spec : kAlways)
    if (!Excused(pass, spec.name)) check(spec.name, spec.check(before, after, first_new));
  // The row's facts: what held and is not said to break still holds, and what it gives does.
  for (const auto& [name, f] : kStages)
    if ((pass.gives & f) || (!(pass.breaks & f) && CheckFacts(before, f).ok())) check(name, CheckFacts(after, f));
}

Annotations AnnotationsOf(uint64_t seed) {
  Annotations a;
  a.control_edges = seed % 3 == 1;
  a.shardings = seed % 5 == 2;
  a.layouts = seed % 7 == 3;
  return a;
}

std::unique_ptr<Module> AnnotatedModule(uint64_t seed) {
  RandomOptions options;
  options.wide = seed % 4 == 1;
  std::unique_ptr<Module> m = RandomModule(seed, options);
  Annotate(m.get(), seed, AnnotationsOf(seed));
  return m;
}

// What must hold before the pass may run; of modules with an odd number also what it says to keep.
absl::Status Lead(Module& m, const PassInfo& pass, uint64_t seed) {
  Pipeline p("lead", FindPass);
  const Facts lead = pass.needs | (seed % 2 ? ~pass.breaks : fact::None);
  const bool fused = (lead & fact::Fused) && (lead & fact::LaidOut) && (pass.needs & fact::Fused || seed % 4 == 3);
  if (fused || (lead & fact::LaidOut)) p.Add("layout-assignment");
  if (fused) p.Add("reshape-decomposer").Add("cpu-instruction-fusion").Add("fusion-wrapper");
  RETURN_IF_ERROR(p.Run(m, {}));
  m.RemoveUnreachableComputations();  // what passes clean up without a word
  return absl::OkStatus();
}

// Bit for bit, by the evaluator.
void CheckResults(const Module& before, const Module& after, const std::vector<Literal>& arguments,
                  const OnViolation& tell) {
  RunOptions reference;
  reference.backend = "reference";
  const auto want = RunModule(before.Clone(), arguments, {}, reference);
  const auto got = RunModule(after.Clone(), arguments, {}, reference);
  if (!want.ok() || !got.ok()) return tell("results", absl::StrCat(want.status().message(), got.status().message()));
  if (want->results.size() != got->results.size()) return tell("results", Story(ToText(before), after));
  for (size_t r = 0; r < want->results.size(); ++r) {
    const Difference d = CompareArrays(got->results[r], want->results[r]);
    if (d.differing == 0) continue;
    tell("results", absl::StrCat("result ", r, ": ", Describe(d, got->results[r], want->results[r]), "\n",
                                 Story(ToText(before), after)));
  }
}

}  // namespace

void CheckPassAlone(const PassInfo& pass, uint64_t seed, const OnViolation& tell) {
  const std::unique_ptr<Module> m = AnnotatedModule(seed);
  const std::vector<Literal> arguments = SmallValues(*m, seed);
  if (absl::Status s = Lead(*m, pass, seed); !s.ok()) return tell("lead", std::string(s.message()));
  const std::unique_ptr<Module> before = m->Clone();
  const std::string text = ToText(*m);
  const int64_t first_new = m->next_id();
  PassContext ctx;
  ctx.algebra = Algebra::kExact;  // results are compared bit for bit
  const auto changed = pass.run(*m, ctx);
  if (!changed.ok()) return tell("runs", absl::StrCat(changed.status().message(), "\n", text));
  if (*changed != (ToText(*m) != text)) tell("truthful", Story(text, *m));
  CheckSpecs(pass, *before, *m, first_new, tell);
  if (*changed) CheckResults(*before, *m, arguments, tell);
}

void CheckPassesInPlace(uint64_t seed, const OnViolation& tell) {
  for (const ProgramTarget target : {ProgramTarget::kCpu, ProgramTarget::kGpu}) {
    std::unique_ptr<Module> m = AnnotatedModule(seed), last;
    int64_t first_new = 0;
    CompileOptions options;
    options.pipeline.verify_each = true;
    options.pipeline.on_change = [&](const std::string& pass, const Module& after) {
      const auto named = [&](const std::string& spec, const std::string& what) {
        tell(absl::StrCat(pass, ": ", spec), what);
      };
      if (last) CheckSpecs(*FindPass(pass), *last, after, first_new, named);
      last = after.Clone();
      first_new = after.next_id();
    };
    const auto planned = PlanProgram(std::move(m), "random", options, target, [](const std::string&) {});
    if (!planned.ok()) tell("planned", std::string(planned.status().message()));
  }
}

}  // namespace kiln
