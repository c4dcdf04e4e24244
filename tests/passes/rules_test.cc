// Each rule of the algebraic simplifier, held to its row: it fires on one example and leaves the other, at every
// element type that it admits, and the evaluator gives the same for both sides on extreme and on random values.
#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "compiler/eval/evaluator.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/verify.h"
#include "compiler/pass/rewriter.h"
#include "compiler/passes/simplify/rules/rule.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

constexpr std::pair<unsigned, const char*> kTypes[] = {
    {kInts, "s8"},    {kInts, "u8"},     {kInts, "s32"},      {kInts, "u64"},  {kFloats, "f32"},  {kFloats, "f64"},
    {kFloats, "f16"}, {kFloats, "bf16"}, {kFloats, "f8e5m2"}, {kPred, "pred"}, {kComplex, "c64"}, {kTuples, "s32"},
};

// The greatest number with its first place.
constexpr const char* kArgMax = R"(argmax { a = f32[] parameter(0)
 i = s32[] parameter(1)
 b = f32[] parameter(2)
 j = s32[] parameter(3)
 greater = pred[] compare(a, b), direction=GT
 nan = pred[] compare(a, a), direction=NE
 first = pred[] or(greater, nan)
 value = f32[] select(first, a, b)
 equal = pred[] compare(a, b), direction=EQ
 before = pred[] compare(i, j), direction=LT
 tie = pred[] and(equal, before)
 either = pred[] or(first, tie)
 place = s32[] select(either, i, j)
 ROOT t = (f32[], s32[]) tuple(value, place) }
)";

absl::StatusOr<std::unique_ptr<Module>> Example(const char* body, const char* type) {
  std::string entry = body;
  if (!absl::StrContains(entry, "ENTRY"))
    entry = absl::StrCat("ENTRY e { p = $T[4,6] parameter(0)\n q = $T[4,6] parameter(1)\n s = $T[] parameter(2)\n",
                         " k = pred[4,6] parameter(3)\n ", body, " }\n");
  if (absl::StrContains(entry, "=argmax")) entry = absl::StrCat(kArgMax, entry);
  const std::string text = absl::StrReplaceAll(
      absl::StrCat("HloModule r\nsum { a = $T[] parameter(0)\n b = $T[] parameter(1)\n ROOT c = $T[] ",
                   std::string(type) == "pred" ? "or" : "add", "(a, b) }\n", entry),
      {{"$T", type}});
  auto m = ParseHlo(text, "rule.hlo");
  if (m.ok())
    if (absl::Status s = VerifyModule(**m); !s.ok()) return s;
  return m;
}

absl::StatusOr<bool> Apply(const Rule& rule, Module* m) {
  PassContext ctx;
  Rewriter rewriter(ctx);
  for (Instruction* i : m->entry()->PostOrder())
    if (std::find(rule.opcodes.begin(), rule.opcodes.end(), i->opcode()) != rule.opcodes.end() &&
        (rule.types & TypeSetOf(i->shape())))
      RETURN_IF_ERROR(rewriter.Replace(i, rule.rewrite).status());
  return rewriter.changed();
}

// Classes that speak of real numbers are held to moderate ones.
bool OfRealNumbers(Numerics n) { return n == Numerics::Range || n == Numerics::Finite; }

// Few and small numbers, so that sums are exact in every order and every type.
Element SmallValue(PrimitiveType t, std::mt19937_64& rng) {
  Element e;
  const bool some = rng() % 3 == 0;
  e.i = some ? 1 : 0;
  e.re = some ? (rng() % 2 ? 1 : -1) : 0;
  if (IsComplex(t)) e.im = rng() % 4 == 0 ? 1 : 0;
  return e;
}

Element Value(PrimitiveType t, Numerics numerics, std::mt19937_64& rng) {
  if (numerics == Numerics::Order) return SmallValue(t, rng);
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kExtreme[] = {0, -0.0, 1, -1, kInf, -kInf, NAN, 1e-40, -1e-310, 3.4e38, -1.7e308, 0.1, -2.5};
  const auto real = [&] {
    if (OfRealNumbers(numerics)) return static_cast<double>(4 + rng() % 28) / 8;
    return rng() % 2 ? kExtreme[rng() % std::size(kExtreme)] : std::ldexp(static_cast<double>(rng() % 2048), -7) - 8;
  };
  Element e;
  if (IsFloat(t) || IsComplex(t)) {
    e.re = real();
    if (IsComplex(t)) e.im = real();
  } else {
    e.i = t == PrimitiveType::Pred ? static_cast<int64_t>(rng() % 2) : static_cast<int64_t>(rng());
  }
  return e;
}

bool Agree(double a, double b, Numerics numerics, PrimitiveType t) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return numerics != Numerics::Exact || std::signbit(a) == std::signbit(b);
  const double roundings = OfRealNumbers(numerics) ? 64 : 2;  // errors of an exponent grow with it
  const double unit = std::ldexp(1.0, -InfoOf(t).mantissa_bits);
  return numerics >= Numerics::Rounding &&
         (std::abs(a - b) <= roundings * unit * std::max(std::abs(a), std::abs(b)) || std::isinf(a) || std::isinf(b));
}

void ExpectAgree(const Literal& before, const Literal& after, Numerics numerics, const std::string& what) {
  ASSERT_EQ(before.shape().dims(), after.shape().dims()) << what;
  const PrimitiveType t = IsComplex(before.type()) ? ComponentType(before.type()) : before.type();
  for (int64_t k = 0; k < before.size(); ++k) {
    const Element a = before.Get(k), b = after.Get(k);
    const bool same = IsFloat(t) ? Agree(a.re, b.re, numerics, t) && Agree(a.im, b.im, numerics, t) : a.i == b.i;
    ASSERT_TRUE(same) << what << "\nelement " << k << ": " << a.re << "/" << a.i << " became " << b.re << "/" << b.i;
  }
}

class EachRule : public testing::TestWithParam<const Rule*> {};

TEST_P(EachRule, FiresWhereItSaysAndChangesNoMore) {
  const Rule& rule = *GetParam();
  int types = 0;
  std::mt19937_64 rng(5);
  for (const auto& [set, type] : kTypes) {
    if (!(rule.types & set)) continue;
    auto before = Example(rule.fires, type), left = Example(rule.refuses, type);
    ASSERT_TRUE(before.ok()) << type << ": " << before.status();
    ASSERT_TRUE(left.ok()) << type << ": " << left.status();
    const auto after = (*before)->Clone();
    const auto fired = Apply(rule, after.get()), refused = Apply(rule, left->get());
    ASSERT_TRUE(fired.ok() && refused.ok());
    EXPECT_TRUE(*fired) << ToText(**before);
    EXPECT_FALSE(*refused) << ToText(**left);
    ASSERT_TRUE(VerifyModule(*after).ok()) << VerifyModule(*after);
    for (int round = 0; round < 8; ++round) {
      std::vector<Literal> arguments;
      for (const Instruction* p : (*before)->entry()->parameters()) {
        Literal l(p->shape());
        for (int64_t k = 0; k < l.size(); ++k) l.Set(k, Value(p->shape().type(), rule.numerics, rng));
        arguments.push_back(std::move(l));
      }
      const auto want = Evaluate(**before, arguments), got = Evaluate(*after, arguments);
      ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
      ExpectAgree(*want, *got, rule.numerics, absl::StrCat(type, "\n", ToText(**before), "became\n", ToText(*after)));
      if (HasFailure()) return;
    }
    ++types;
  }
  EXPECT_GT(types, 0);
}

INSTANTIATE_TEST_SUITE_P(Rules, EachRule, testing::ValuesIn(AllRules()), [](const auto& i) {
  return absl::StrReplaceAll(i.param->name, {{"-", "_"}});
});

TEST(Rewriter, RefusedReplacementsLeaveNothing) {
  // The layout of the broadcast was asked for, and a reshape cannot give it.
  auto m = ParseHlo(R"(HloModule m, entry_computation_layout={(f32[4,3]{0,1})->f32[4,3,1]{0,1,2}}
ENTRY e { n = f32[4,3]{0,1} parameter(0)
 ROOT b = f32[4,3,1]{0,1,2} broadcast(n), dimensions={0,1} })",
                    "t.hlo");
  ASSERT_TRUE(m.ok());
  const std::string before = ToText(**m);
  PassContext ctx;
  ctx.fuel = 1;
  for (const Rule* rule : RulesFor(Opcode::Broadcast)) {
    Rewriter rewriter(ctx);
    const auto replaced = rewriter.Replace((*m)->entry()->root(), rule->rewrite);
    ASSERT_TRUE(replaced.ok());
    EXPECT_FALSE(*replaced || rewriter.changed()) << rule->name;
  }
  EXPECT_EQ(ctx.fuel, 1);
  EXPECT_EQ(ToText(**m), before);
}

TEST(Rewriter, MovesWhatBelongsToThePlace) {
  auto m = ParseHlo(R"(HloModule m
ENTRY e { p = f32[4] parameter(0)
 a = f32[4] negate(p)
 b = f32[4] exponential(p), sharding={replicated}, metadata={op_name="exp"}, control-predecessors={a}
 ROOT t = (f32[4], f32[4]) tuple(a, b) })",
                    "t.hlo");
  ASSERT_TRUE(m.ok());
  Computation* c = (*m)->entry();
  Instruction *p = c->parameter(0), *a = c->root()->operand(0), *b = c->root()->operand(1);
  PassContext ctx;
  Rewriter rewriter(ctx);
  // A value that was there before would lose the edge and the sharding.
  EXPECT_FALSE(*rewriter.Replace(b, [&](Instruction*) { return p; }));
  EXPECT_TRUE(*rewriter.Replace(b, [&](Instruction* i) { return c->Add(Opcode::Cosine, i->shape(), {p}); }));
  const Instruction* n = c->root()->operand(1);
  EXPECT_TRUE(n->Is(Opcode::Cosine) && n->attrs().sharding && n->attrs().metadata);
  EXPECT_EQ(n->control_predecessors(), std::vector<Instruction*>{a});
}

}  // namespace
}  // namespace kiln
