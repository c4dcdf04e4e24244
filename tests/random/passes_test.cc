// Every pass alone on random modules: results stay, bit for bit, the specs hold, and *changed* is the truth.
// check_passes runs more modules.
#include "compiler/hlo/parser.h"
#include "compiler/pipeline/registry.h"
#include "gtest/gtest.h"
#include "tests/random/annotations.h"
#include "tests/random/pass_specs.h"

namespace kiln {
namespace {

constexpr uint64_t kModules = 50, kModulesInPlace = 30;

class EachPass : public testing::TestWithParam<const PassInfo*> {};

TEST_P(EachPass, KeepsResultsAndTellsTheTruth) {
  const PassInfo& pass = *GetParam();
  // Each pass sees modules of its own.
  const uint64_t first = 1000 * static_cast<uint64_t>(&pass - AllPasses().data());
  for (uint64_t seed = first; seed < first + kModules && !HasFailure(); ++seed)
    CheckPassAlone(pass, seed, [&](const std::string& spec, const std::string& what) {
      ADD_FAILURE() << "seed " << seed << " " << spec << ": " << what;
    });
}

TEST(Pipelines, EveryPassKeepsTheSpecsInItsPlace) {
  for (uint64_t seed = 0; seed < kModulesInPlace && !HasFailure(); ++seed)
    CheckPassesInPlace(seed, [&](const std::string& spec, const std::string& what) {
      ADD_FAILURE() << "seed " << seed << " " << spec << ": " << what;
    });
}

// What a pass might do wrong, as modules before and after it.
struct Planted {
  const char* before;
  const char* after;
  bool kept;
};

std::unique_ptr<Module> Parsed(const std::string& body) {
  auto m = ParseHlo("HloModule m\nENTRY e { p = f32[4] parameter(0)\n " + body + " }", "t.hlo");
  EXPECT_TRUE(m.ok()) << m.status() << body;
  return m.ok() ? *std::move(m) : nullptr;
}

// None of the modules below has as many instructions.
constexpr int64_t kAllOld = 100;

TEST(Specs, LostControlEdgesAreFound) {
  constexpr char kOrdered[] =
      "a = f32[4] negate(p)\n b = f32[4] abs(p), control-predecessors={a}\n ROOT t = (f32[4], f32[4]) tuple(p, b)";
  const Planted cases[] = {
      {kOrdered, kOrdered, true},
      {kOrdered, "a = f32[4] negate(p)\n b = f32[4] abs(p)\n ROOT t = (f32[4], f32[4]) tuple(p, b)", false},
      // What stands in the place of b has to wait, too.
      {kOrdered, "a = f32[4] negate(p)\n n = f32[4] maximum(p, a)\n ROOT t = (f32[4], f32[4]) tuple(p, n)", true},
      {kOrdered, "a = f32[4] negate(p)\n n = f32[4] maximum(p, p)\n ROOT t = (f32[4], f32[4]) tuple(p, n)", false},
      // One in between that went takes no order with it.
      {"a = f32[4] negate(p)\n d = f32[4] abs(p), control-predecessors={a}\n "
       "ROOT r = f32[4] sine(p), control-predecessors={d}",
       "a = f32[4] negate(p)\n ROOT r = f32[4] sine(p)", false},
  };
  for (const Planted& c : cases)
    EXPECT_EQ(CheckControlEdgesKept(*Parsed(c.before), *Parsed(c.after), kAllOld).ok(), c.kept) << c.after;
}

TEST(Specs, LostShardingsAreFound) {
  constexpr char kSharded[] = "ROOT a = f32[4] negate(p), sharding={devices=[2]<=[2]}";
  const Planted cases[] = {{kSharded, kSharded, true},
                           {kSharded, "ROOT a = f32[4] negate(p)", false},
                           {kSharded, "ROOT a = f32[4] negate(p), sharding={replicated}", false}};
  for (const Planted& c : cases)
    EXPECT_EQ(CheckShardingsKept(*Parsed(c.before), *Parsed(c.after), kAllOld).ok(), c.kept) << c.after;
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
