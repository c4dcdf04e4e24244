// Elementary functions at every CPU level that this machine has: ordinary arguments, some that only a few lanes have
// and that take another way, and complex ones. op_matrix_test has every operation and type, at one level.
#include <bit>
#include <cmath>
#include <complex>
#include <random>

#include "aot/tools/difference.h"
#include "aot/tools/runner.h"
#include "compiler/eval/evaluator.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

constexpr Opcode kReal[] = {
#define UNARY(opcode, ...) Opcode::opcode,
#define BINARY UNARY
#define ROOT(...)
#include "compiler/hlo/functions.def"
};
constexpr Opcode kComplex[] = {
    Opcode::Exponential, Opcode::ExponentialMinusOne,
    Opcode::Log,         Opcode::LogPlusOne,
    Opcode::Sqrt,        Opcode::Rsqrt,
    Opcode::Sine,        Opcode::Cosine,
    Opcode::Tan,         Opcode::Tanh,
    Opcode::Sign,        Opcode::Divide,
    Opcode::Logistic,    Opcode::Power,
};
constexpr int64_t kCount = 1003;  // no multiple of any vector

std::vector<std::string> Levels() {
  std::vector<std::string> levels = {"v2"};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) levels.push_back("v3");
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) levels.push_back("v4");
  return levels;
}

template <size_t N>
std::unique_ptr<Module> Program(PrimitiveType t, const Opcode (&ops)[N]) {
  auto m = std::make_unique<Module>("functions");
  Computation* c = m->AddComputation("main");
  m->set_entry(c);
  const Shape s = Shape::Array(t, {kCount});
  Instruction* x = c->AddParameter(0, s, "x");
  Instruction* y = c->AddParameter(1, s, "y");
  std::vector<Instruction*> results;
  for (Opcode op : ops)
    results.push_back(
        c->Add(op, s, InfoOf(op).arity == 2 ? std::vector<Instruction*>{x, y} : std::vector<Instruction*>{x}));
  c->set_root(c->Add(Opcode::Tuple, Shape::Tuple(std::vector<Shape>(N, s)), results));
  return m;
}

// Ordinary numbers, and now and then one at an end of the range.
double Value(int64_t k, std::mt19937_64& random) {
  static const double kRare[] = {0.0,  -0.0, 1e300,    -1e300,    1e-300,       5e-324,   1e22, -3e9,
                                 1e30, 1.0,  INFINITY, -INFINITY, std::nan(""), 0x1p1023, -1.0, 0x1p-1022};
  if (k % 11 == 3) return kRare[random() % std::size(kRare)];
  return std::ldexp(static_cast<double>(static_cast<int64_t>(random())), -61 + static_cast<int>(random() % 6));
}

TEST(Functions, EveryLevelEqualsTheReference) {
  for (PrimitiveType t : {PrimitiveType::F32, PrimitiveType::F64}) {
    std::mt19937_64 random(5);
    Literal x(Shape::Array(t, {kCount})), y(x.shape());
    for (int64_t k = 0; k < kCount; ++k) {
      x.Set(k, Element{.re = Value(k, random)});
      y.Set(k, Element{.re = Value(k + 1, random)});
    }
    auto want = Evaluate(*Program(t, kReal), {x, y});
    ASSERT_TRUE(want.ok()) << want.status();
    for (const std::string& level : Levels()) {
      CompileOptions o;
      o.cpu.levels = {level};
      o.cpu.flush_subnormals = false;
      auto got = RunModule(Program(t, kReal), {x, y}, o, {});
      ASSERT_TRUE(got.ok()) << got.status();
      for (size_t r = 0; r < std::size(kReal); ++r) {
        const Literal &have = got->results[r], &wanted = want->elements()[r];
        const WorstElement e = CompareArrays(have, wanted).ulps;
        EXPECT_LE(e.value, t == PrimitiveType::F64 ? 4 : 8)
            << TextOf(kReal[r]) << " of " << TextOf(t) << " at " << level << ", x = " << x.Get(e.element).re
            << ", y = " << y.Get(e.element).re << ": got " << ElementText(have, e.element) << ", want "
            << ElementText(wanted, e.element);
      }
    }
  }
}

// The rational function of other levels would be up to six units off where nothing fuses products and sums.
TEST(Functions, TanhIsNearTheReferenceWithoutFusedMultiplyAdds) {
  const auto program = [] {
    const Opcode tanh[] = {Opcode::Tanh};
    return Program(PrimitiveType::F32, tanh);
  };
  Literal x(Shape::Array(PrimitiveType::F32, {kCount}));
  for (int64_t k = 0; k < kCount; ++k) x.Set(k, Element{.re = std::ldexp(static_cast<double>(k - kCount / 2), -6)});
  auto want = Evaluate(*program(), {x, x});
  ASSERT_TRUE(want.ok()) << want.status();
  CompileOptions o;
  o.cpu.levels = {"v2"};
  auto got = RunModule(program(), {x, x}, o, {});
  ASSERT_TRUE(got.ok()) << got.status();
  const WorstElement e = CompareArrays(got->results[0], want->elements()[0]).ulps;
  EXPECT_LE(e.value, 3) << "x = " << x.Get(e.element).re;
}

// The error of both parts together, by the modulus: a part near zero may be off by more than its own last place.
TEST(Functions, ComplexOnesAtEveryLevelAreNearTheReference) {
  for (PrimitiveType t : {PrimitiveType::C64, PrimitiveType::C128}) {
    std::mt19937_64 random(6);
    Literal x(Shape::Array(t, {kCount})), y(x.shape());
    const auto part = [&] { return std::ldexp(static_cast<double>(static_cast<int64_t>(random())), -61); };
    for (int64_t k = 0; k < kCount; ++k) {
      x.Set(k, Element{.re = k % 7 ? part() : 0.0, .im = k % 5 ? part() : 0.0});
      y.Set(k, Element{.re = part(), .im = part()});
    }
    auto want = Evaluate(*Program(t, kComplex), {x, y});
    ASSERT_TRUE(want.ok()) << want.status();
    for (const std::string& level : Levels()) {
      CompileOptions o;
      o.cpu.levels = {level};
      auto got = RunModule(Program(t, kComplex), {x, y}, o, {});
      ASSERT_TRUE(got.ok()) << got.status();
      const double unit = t == PrimitiveType::C64 ? 0x1p-23 : 0x1p-52;
      for (size_t r = 0; r < std::size(kComplex); ++r)
        for (int64_t k = 0; k < kCount; ++k) {
          const Element a = got->results[r].Get(k), b = want->elements()[r].Get(k);
          const std::complex<double> g(a.re, a.im), w(b.re, b.im);
          if (!std::isfinite(std::abs(w))) {
            EXPECT_FALSE(std::isfinite(std::abs(g))) << TextOf(kComplex[r]);
            continue;
          }
          // Both are rounded, and a power multiplies the error of the logarithm.
          EXPECT_LE(std::abs(g - w), (kComplex[r] == Opcode::Power ? 64 : 6) * unit * std::abs(w) + unit * unit)
              << TextOf(kComplex[r]) << " of " << TextOf(t) << " at " << level << ", x = (" << x.Get(k).re << ", "
              << x.Get(k).im << "): got " << g << ", want " << w;
        }
    }
  }
}

// Any bits, and pairs of like size, whose quotients are small.
double AnyNumber(PrimitiveType t, bool like, std::mt19937_64& random) {
  if (like)
    return std::ldexp(static_cast<double>(static_cast<int32_t>(random())), -24 + static_cast<int>(random() % 8));
  const uint64_t bits = random();
  if (t == PrimitiveType::F64) return std::bit_cast<double>(bits);
  return std::bit_cast<float>(static_cast<uint32_t>(bits));
}

TEST(Functions, RemaindersAreExactAtEveryLevel) {
  constexpr Opcode kRemainder[] = {Opcode::Remainder};
  for (PrimitiveType t : {PrimitiveType::F32, PrimitiveType::F64}) {
    std::mt19937_64 random(8);
    Literal x(Shape::Array(t, {kCount})), y(x.shape());
    for (int64_t k = 0; k < kCount; ++k) {
      x.Set(k, Element{.re = k % 3 ? AnyNumber(t, k % 2, random) : Value(k, random)});
      y.Set(k, Element{.re = k % 3 ? AnyNumber(t, k % 2, random) : Value(k + 1, random)});
    }
    for (int k = 0; k < 2 * static_cast<int>(Levels().size()); ++k) {
      const std::string level = Levels()[static_cast<size_t>(k / 2)];
      CompileOptions o;
      o.cpu.levels = {level};
      // Those of floats are exact though subnormal numbers are taken for zeros elsewhere.
      o.cpu.flush_subnormals = t == PrimitiveType::F32 && k % 2 == 0;
      auto got = RunModule(Program(t, kRemainder), {x, y}, o, {});
      ASSERT_TRUE(got.ok()) << got.status();
      for (int64_t e = 0; e < kCount; ++e) {
        const double want = std::fmod(x.Get(e).re, y.Get(e).re), have = got->results[0].Get(e).re;
        EXPECT_TRUE(std::isnan(want) ? std::isnan(have) : have == want && std::signbit(have) == std::signbit(want))
            << TextOf(t) << " at " << level << ": " << x.Get(e).re << " by " << y.Get(e).re << " leaves " << have
            << ", want " << want;
      }
    }
  }
}

TEST(Functions, ModuliOfFloatsAreRounded) {
  auto m = std::make_unique<Module>("moduli");
  Computation* c = m->AddComputation("main");
  m->set_entry(c);
  Instruction* x = c->AddParameter(0, Shape::Array(PrimitiveType::C64, {kCount}), "x");
  c->set_root(c->Add(Opcode::Abs, Shape::Array(PrimitiveType::F32, {kCount}), {x}));
  std::mt19937_64 random(9);
  Literal in(x->shape());
  for (int64_t k = 0; k < kCount; ++k)
    in.Set(k, k % 3 ? Element{.re = AnyNumber(PrimitiveType::F32, k % 2, random),
                              .im = AnyNumber(PrimitiveType::F32, k % 2, random)}
                    : Element{.re = Value(k, random), .im = Value(k + 1, random)});
  for (const std::string& level : Levels()) {
    CompileOptions o;
    o.cpu.levels = {level};
    o.cpu.flush_subnormals = false;
    auto got = RunModule(m->Clone(), {in}, o, {});
    ASSERT_TRUE(got.ok()) << got.status();
    for (int64_t k = 0; k < kCount; ++k) {
      const double want = std::hypot(in.Get(k).re, in.Get(k).im), have = got->results[0].Get(k).re;
      const double unit = std::ldexp(1.0, std::max(std::ilogb(std::max(want, 0x1p-149)), -126) - 23);
      if (std::isnan(want))
        EXPECT_TRUE(std::isnan(have));
      else if (want >= 0x1.ffffffp127)
        EXPECT_TRUE(std::isinf(have));
      else
        EXPECT_LE(std::abs(have - want), 0.501 * unit) << level << ": " << in.Get(k).re << ", " << in.Get(k).im;
    }
  }
}

// A branch to what few arguments need is taken for all lanes at once: the variant for a vector is there, and no loop
// calls the C library for each element.
TEST(Functions, LoopsWithRareCallsRunInVectors) {
  CompileOptions o;
  o.cpu.levels = {"v3", "v4"};
  constexpr Opcode kRare[] = {Opcode::Sine,  Opcode::Cosine, Opcode::Tan,
                              Opcode::Power, Opcode::Atan2,  Opcode::Remainder};
  auto compiled = Compile(Program(PrimitiveType::F64, kRare), o);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  for (const char* function : {"sin", "cos", "tan", "pow", "atan2", "fmod"})
    for (const char* lanes : {"4", "8"}) {
      const std::string name = std::string("kiln_rare_") + function + "_" + lanes + "_each";
      EXPECT_NE(compiled->code.archive.find(name), std::string::npos) << name;
    }
}

}  // namespace
}  // namespace kiln
