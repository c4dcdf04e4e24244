// Each pass on the programs of golden/PASS.hlo: where it fires, and look-alikes that it must leave alone.
//
// A case opens with "// CASE fires" or "// CASE refuses" (of a checker: "// CASE fails", with the "// ERROR text"; of
// one that only looks: "// CASE notes", with each "// NOTE text"). Where the pass fires, the lines "//= text" behind
// the module are what it makes of it, exactly; `./dev golden` writes them anew. "// HAS text" and "// LACKS text" say
// what matters in them, and survive a careless `./dev golden`. Besides that: `changed` is the truth, nothing happens
// without fuel, the module still verifies, and the evaluator computes the same from seeded arguments before and after,
// on all devices ("// EXACT": bit for bit; "// UNCOMPARED": not, because the evaluator knows no memory). "// TUNED"
// gives the pass measured results (see Tuned).
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string_view>

#include "compiler/eval/world.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/tuning.h"
#include "compiler/hlo/verify.h"
#include "compiler/pipeline/registry.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

constexpr std::string_view kResult = "//=";

struct Case {
  std::string pass, text, error, result;
  std::string source, blank;  // all lines but those of the result, and the empty ones behind it
  int line = 0;               // of "// CASE"
  bool fires = false, exact = false, compared = true;
  std::vector<std::string> has, lacks, notes, tuned;
};

void PrintTo(const Case& c, std::ostream* os) { *os << c.pass << "\n" << c.text; }

std::vector<Case> ReadCases() {
  std::vector<Case> out;
  std::vector<std::filesystem::path> files;
  for (const auto& f : std::filesystem::directory_iterator("tests/passes/golden")) files.push_back(f.path());
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    std::ifstream in(path);
    int number = 0;
    std::string preamble;
    for (std::string line; std::getline(in, line);) {
      ++number;
      const auto rest = [&](const std::string& key) -> std::optional<std::string> {
        if (line.rfind("// " + key, 0) != 0) return std::nullopt;
        return line.substr(std::min(line.size(), key.size() + 4));
      };
      if (const auto kind = rest("CASE")) {
        out.emplace_back();
        out.back().pass = path.stem().string();
        out.back().line = number;
        out.back().source = std::exchange(preamble, "");
        out.back().fires = *kind == "fires";
      } else if (out.empty() || out.back().pass != path.stem()) {
        preamble += line + "\n";
        continue;
      } else if (const auto has = rest("HAS")) {
        out.back().has.push_back(*has);
      } else if (const auto lacks = rest("LACKS")) {
        out.back().lacks.push_back(*lacks);
      } else if (const auto note = rest("NOTE")) {
        out.back().notes.push_back(*note);
      } else if (const auto tuned = rest("TUNED")) {
        out.back().tuned.push_back(*tuned);
      } else if (const auto error = rest("ERROR")) {
        out.back().error = *error;
      } else if (line.rfind(kResult, 0) == 0) {
        out.back().result += line.substr(std::min(line.size(), kResult.size() + 1)) + "\n";
      } else if (rest("EXACT")) {
        out.back().exact = true;
      } else if (rest("UNCOMPARED")) {
        out.back().compared = false;
      } else {
        out.back().text += line + "\n";
      }
      Case& c = out.back();
      if (line.empty()) {
        c.blank += "\n";
      } else if (line.rfind(kResult, 0) != 0) {
        c.source += c.blank + line + "\n";
        c.blank.clear();
      }
    }
  }
  return out;
}

const std::vector<Case>& Cases() {
  static const auto* cases = new std::vector<Case>(ReadCases());
  return *cases;
}

// With KILN_BLESS in the environment: what the passes made of the cases that ran replaces what their files say.
class Bless : public testing::Environment {
 public:
  static bool Asked() { return std::getenv("KILN_BLESS") != nullptr; }
  static std::map<std::string, std::map<int, std::string>>& Results() {
    static auto* results = new std::map<std::string, std::map<int, std::string>>;
    return *results;
  }

  void TearDown() override {
    for (const auto& [pass, results] : Results()) {
      std::string out;
      for (const Case& c : Cases()) {
        if (c.pass != pass) continue;
        const auto found = results.find(c.line);
        std::istringstream lines(found == results.end() ? c.result : found->second);
        out += c.source;
        for (std::string l; std::getline(lines, l);) out += std::string(kResult) + (l.empty() ? "" : " ") + l + "\n";
        out += c.blank;
      }
      std::ofstream("tests/passes/golden/" + pass + ".hlo") << out;
    }
  }
};

const testing::Environment* const kBless = testing::AddGlobalTestEnvironment(new Bless);

Literal Argument(const Shape& s, std::mt19937& rng) {
  if (s.IsTuple()) {
    std::vector<Literal> parts;
    for (const Shape& e : s.tuple()) parts.push_back(Argument(e, rng));
    return Literal::Tuple(std::move(parts));
  }
  Shape plain = Shape::Array(s.type(), s.dims());
  Literal out(plain);
  for (int64_t k = 0; k < out.size(); ++k) {
    const int n = static_cast<int>(rng() % 16);
    Literal one = IsIntegral(s.type()) || s.type() == PrimitiveType::Pred
                      ? Literal::Of(s.type(), s.type() == PrimitiveType::Pred ? n % 2 : n % 7)
                      : Literal::Of(s.type(), (n - 7) / 4.0);
    out.Set(k, one.Get(0));
  }
  return out;
}

void ExpectSame(const Literal& a, const Literal& b, bool exact) {
  if (a.shape().IsTuple()) {
    ASSERT_EQ(a.elements().size(), b.elements().size());
    for (size_t k = 0; k < a.elements().size(); ++k) ExpectSame(a.elements()[k], b.elements()[k], exact);
    return;
  }
  if (!a.shape().IsArray()) return;
  ASSERT_EQ(a.size(), b.size());
  if (exact || !(IsFloat(a.type()) || IsComplex(a.type()))) {
    EXPECT_EQ(a, b) << a.ToString() << " became " << b.ToString();
    return;
  }
  const double tolerance = 1e-5 + 4 * std::ldexp(1.0, -InfoOf(ComponentType(a.type())).mantissa_bits);
  for (int64_t k = 0; k < a.size(); ++k) {
    const Element x = a.Get(k), y = b.Get(k);
    const auto close = [&](double p, double q) {
      return p == q || (std::isnan(p) && std::isnan(q)) || std::abs(p - q) <= tolerance * (1 + std::abs(p));
    };
    EXPECT_TRUE(close(x.re, y.re) && (!IsComplex(a.type()) || close(x.im, y.im)))
        << k << ": " << x.re << " became " << y.re;
  }
}

// As if every product and convolution had been measured: "TARGET ALGORITHM MICROSECONDS SCRATCH" or, of what must not
// be used, "TARGET ALGORITHM denied".
TuningResults Tuned(const Module& m, const std::vector<std::string>& lines) {
  TuningResults out;
  for (const std::string& line : lines) {
    std::istringstream words(line);
    std::string target, microseconds;
    TunedAlgorithm found;
    words >> target >> found.algorithm >> microseconds >> found.scratch_bytes;
    for (const auto& c : m.computations())
      for (const auto& i : c->instructions()) {
        if (!IsTunableProduct(i.get()) && !IsTunableConvolution(i.get())) continue;
        if (microseconds == "denied") {
          out.Deny(target, TuningKey(i.get()), found.algorithm);
        } else {
          found.microseconds = std::stod(microseconds);
          out.Add(target, TuningKey(i.get()), found);
        }
      }
  }
  return out;
}

class Golden : public testing::TestWithParam<Case> {};

// Of every device; the same where the module says that they are.
std::vector<std::vector<Literal>> ArgumentsOf(const Module& m) {
  std::mt19937 rng(7);
  std::vector<std::vector<Literal>> out(static_cast<size_t>(m.replica_count * m.partition_count));
  for (const Instruction* p : m.entry()->parameters()) {
    const bool alike = p->attrs().parameter_replication || p->attrs().sharding;
    for (size_t d = 0; d < out.size(); ++d)
      out[d].push_back(d > 0 && alike ? out[0].back() : Argument(p->shape(), rng));
  }
  return out;
}

absl::StatusOr<std::vector<Literal>> EvaluateAll(const Module& m, const std::vector<std::vector<Literal>>& arguments) {
  World world(m.replica_count, m.partition_count);
  return EvaluateOnDevices(std::vector<const Module*>(arguments.size(), &m), arguments, &world);
}

bool SameParameters(const Module& a, const Module& b) {
  const auto &x = a.entry()->parameters(), &y = b.entry()->parameters();
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [](const Instruction* p, const Instruction* q) { return p->shape().Compatible(q->shape()); });
}

TEST_P(Golden, FiresOrRefusesTruthfully) {
  const Case& c = GetParam();
  auto m = ParseHlo(c.text, c.pass + ".hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  ASSERT_TRUE(VerifyModule(**m).ok()) << VerifyModule(**m);
  const std::string before = ToText(**m);
  const auto original = (*m)->Clone();
  const PassInfo* pass = FindPass(c.pass);
  ASSERT_NE(pass, nullptr);
  PassContext ctx;
  TuningResults tuning = Tuned(**m, c.tuned);
  if (!c.tuned.empty()) ctx.tuning = &tuning;
  auto changed = pass->run(**m, ctx);
  if (!c.error.empty()) {
    ASSERT_FALSE(changed.ok());
    EXPECT_NE(std::string(changed.status().message()).find(c.error), std::string::npos) << changed.status();
    return;
  }
  ASSERT_TRUE(changed.ok()) << changed.status();
  const std::string after = ToText(**m);
  EXPECT_EQ(*changed, c.fires) << after;
  if (Bless::Asked()) Bless::Results()[c.pass][c.line] = c.fires ? after : "";
  if (c.fires && !Bless::Asked()) EXPECT_EQ(after, c.result) << "./dev golden writes it anew";
  EXPECT_EQ(before != after, c.fires) << after;
  EXPECT_TRUE(VerifyModule(**m).ok()) << VerifyModule(**m) << after;
  for (const std::string& text : c.notes)
    EXPECT_NE(std::find(ctx.notes.begin(), ctx.notes.end(), text), ctx.notes.end()) << text;
  EXPECT_EQ(c.notes.empty(), ctx.notes.empty());
  for (const std::string& text : c.has) EXPECT_NE(after.find(text), std::string::npos) << text << "\n" << after;
  for (const std::string& text : c.lacks) EXPECT_EQ(after.find(text), std::string::npos) << text << "\n" << after;
  // Without fuel nothing may change, and nothing may be said to have; a few passes make a form that others need, and
  // always run whole.
  static const auto* whole = new std::vector<std::string>{
      "dce",           "layout-assignment", "reshape-decomposer", "flatten-call-graph", "optimization-barrier-expander",
      "fusion-wrapper"};
  if (c.fires && std::find(whole->begin(), whole->end(), c.pass) == whole->end()) {
    auto again = ParseHlo(c.text, "t.hlo");
    PassContext empty;
    empty.fuel = 0;
    auto none = pass->run(**again, empty);
    ASSERT_TRUE(none.ok());
    EXPECT_FALSE(*none);
  }
  if (!c.fires || !c.compared) return;
  const std::vector<std::vector<Literal>> arguments = ArgumentsOf(*original);
  auto want = EvaluateAll(*original, arguments);
  if (!want.ok() || !SameParameters(*original, **m)) return;  // functions of the user; another program for each device
  auto got = EvaluateAll(**m, arguments);
  ASSERT_TRUE(got.ok()) << got.status() << after;
  for (size_t d = 0; d < arguments.size(); ++d) {
    SCOPED_TRACE(testing::Message() << "device " << d << "\n" << after);
    ExpectSame((*want)[d], (*got)[d], c.exact);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Golden, testing::ValuesIn(Cases()), [](const auto& i) {
  std::string n = i.param.pass;
  std::replace(n.begin(), n.end(), '-', '_');
  return n + "_line_" + std::to_string(i.param.line);
});

TEST(Files, EveryPassHasACaseThatFiresAndOneThatRefuses) {
  for (const PassInfo& p : AllPasses()) {
    int fires = 0, refuses = 0;
    for (const Case& c : Cases())
      if (c.pass == p.name) ++(c.fires || !c.error.empty() || !c.notes.empty() ? fires : refuses);
    EXPECT_GE(fires, 1) << p.name;
    EXPECT_GE(refuses, 1) << p.name;
  }
}

}  // namespace
}  // namespace kiln
