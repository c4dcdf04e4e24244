#include "aot/tools/bisect.h"

#include <cmath>

#include "aot/tools/difference.h"
#include "aot/tools/runner.h"
#include "compiler/hlo/verify.h"

namespace kiln {
namespace {

absl::StatusOr<std::vector<Literal>> Results(const Module& m, const std::vector<Literal>& arguments) {
  RunOptions reference;
  reference.backend = "reference";
  ASSIGN_OR_RETURN(RunResult r, RunModule(m.Clone(), arguments, {}, reference));
  return std::move(r.results);
}

// What is wrong with a module; a module that cannot be evaluated is wrong too.
std::string Wrong(const Module& m, const std::vector<Literal>& arguments, const std::vector<Literal>& want,
                  double ulps) {
  if (absl::Status v = VerifyModule(m); !v.ok()) return std::string(v.message());
  auto got = Results(m, arguments);
  return got.ok() ? DifferenceOf(*got, want, ulps) : std::string(got.status().message());
}

}  // namespace

std::string DifferenceOf(const std::vector<Literal>& got, const std::vector<Literal>& want, double ulps) {
  if (got.size() != want.size()) return absl::StrCat(got.size(), " results, not ", want.size());
  for (size_t k = 0; k < want.size(); ++k) {
    if (!want[k].shape().IsArray()) continue;
    const Difference d = CompareArrays(got[k], want[k]);
    const bool real = IsFloat(want[k].type()) || IsComplex(want[k].type());
    if (d.ulps.value > (real ? ulps : 0) || std::isinf(d.ulps.value))
      return absl::StrCat("result ", k, ", ", Describe(d, got[k], want[k]));
  }
  return "";
}

absl::StatusOr<BisectResult> Bisect(const Module& module, const Pipeline& pipeline, const Pipeline::Lookup& lookup,
                                    const std::vector<Literal>& arguments, double ulps) {
  ASSIGN_OR_RETURN(const std::vector<Literal> want, Results(module, arguments));
  std::vector<std::pair<std::string, std::unique_ptr<Module>>> stages;
  stages.push_back({"", module.Clone()});
  PipelineOptions options;
  options.on_change = [&](const std::string& pass, const Module& after) { stages.push_back({pass, after.Clone()}); };
  auto work = module.Clone();
  // A pipeline that ends in an error still shows how far it came.
  const absl::Status ran = pipeline.Run(*work, options);
  BisectResult out;
  out.changing_passes = static_cast<int>(stages.size()) - 1;
  if (Wrong(*stages.back().second, arguments, want, ulps).empty()) {
    if (!ran.ok()) return ran;
    return out;
  }
  // The first stage is right and the last wrong; somewhere between a right one is followed by a wrong one.
  size_t right = 0, wrong = stages.size() - 1;
  while (wrong - right > 1) {
    const size_t middle = (right + wrong) / 2;
    (Wrong(*stages[middle].second, arguments, want, ulps).empty() ? right : wrong) = middle;
  }
  out.pass = stages[wrong].first;
  out.pass_number = static_cast<int>(wrong);
  out.before = std::move(stages[right].second);
  out.after = std::move(stages[wrong].second);
  out.difference = Wrong(*out.after, arguments, want, ulps);
  const PassInfo* pass = lookup(out.pass);
  if (!pass) return out;
  const auto with_fuel = [&](int64_t fuel, int64_t* spent) -> std::unique_ptr<Module> {
    auto m = out.before->Clone();
    PassContext ctx;
    ctx.fuel = fuel;
    if (!pass->run(*m, ctx).ok()) return nullptr;
    if (spent) *spent = fuel - ctx.fuel;
    return m;
  };
  int64_t total = 0;
  if (!with_fuel(int64_t{1} << 40, &total) || total == 0) return out;
  int64_t good = 0, bad = total;
  while (bad - good > 1) {
    const int64_t middle = (good + bad) / 2;
    auto m = with_fuel(middle, nullptr);
    (m && Wrong(*m, arguments, want, ulps).empty() ? good : bad) = middle;
  }
  auto before = with_fuel(good, nullptr), after = with_fuel(bad, nullptr);
  if (!before || !after || Wrong(*after, arguments, want, ulps).empty()) return out;
  out.rewrite = bad;
  out.before = std::move(before);
  out.after = std::move(after);
  return out;
}

}  // namespace kiln
