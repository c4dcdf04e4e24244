// Every pass alone on random modules: results stay, bit for bit, the module stays valid, and *changed* is the truth.
#include "aot/tools/ulp.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/verify.h"
#include "compiler/pipeline/registry.h"
#include "gtest/gtest.h"
#include "tests/random/arguments.h"
#include "tests/random/generator.h"

namespace kiln {
namespace {

constexpr uint64_t kModules = 60;

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

class EachPass : public testing::TestWithParam<const PassInfo*> {};

TEST_P(EachPass, KeepsResultsAndTellsTheTruth) {
  const PassInfo& pass = *GetParam();
  // Each pass sees modules of its own.
  const uint64_t first = 1000 * static_cast<uint64_t>(&pass - AllPasses().data());
  for (uint64_t seed = first; seed < first + kModules; ++seed) {
    std::unique_ptr<Module> m = RandomModule(seed);
    const std::vector<Literal> arguments = SmallValues(*m, seed);
    ASSERT_TRUE(Lead(*m, pass, seed).ok());
    const std::unique_ptr<Module> before = m->Clone();
    const std::string text = ToText(*before);
    PassContext ctx;
    ctx.algebra = Algebra::kExact;
    auto changed = pass.run(*m, ctx);
    ASSERT_TRUE(changed.ok()) << changed.status() << "\n" << text;
    EXPECT_EQ(*changed, ToText(*m) != text) << "seed " << seed << "\n" << text << "\nbecame\n" << ToText(*m);
    ASSERT_TRUE(VerifyModule(*m).ok()) << VerifyModule(*m) << "\n" << text;
    // The row's facts: what held and is not said to break still holds, and what it gives does.
    for (const Facts f : {fact::Core, fact::LaidOut, fact::Fused})
      if ((pass.gives & f) || (!(pass.breaks & f) && CheckFacts(*before, f).ok()))
        ASSERT_TRUE(CheckFacts(*m, f).ok())
            << "seed " << seed << " " << FactNames(f) << ": " << CheckFacts(*m, f) << "\n"
            << text << "\nbecame\n"
            << ToText(*m);
    if (!*changed) continue;
    RunOptions reference;
    reference.backend = "reference";
    auto want = RunModule(before->Clone(), arguments, {}, reference);
    auto got = RunModule(m->Clone(), arguments, {}, reference);
    ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status() << "\n" << text;
    ASSERT_EQ(want->results.size(), got->results.size());
    for (size_t r = 0; r < want->results.size(); ++r) {
      const UlpError e = LargestUlpError(got->results[r], want->results[r]);
      ASSERT_EQ(e.ulps, 0) << "seed " << seed << " result " << r << " element " << e.element << ": " << e.got
                           << ", expected " << e.want << "\n"
                           << text << "\nbecame\n"
                           << ToText(*m);
    }
  }
}

std::vector<const PassInfo*> Passes() {
  std::vector<const PassInfo*> out;
  for (const PassInfo& p : AllPasses()) out.push_back(&p);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Random, EachPass, testing::ValuesIn(Passes()), [](const auto& info) {
  std::string name = info.param->name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace kiln
