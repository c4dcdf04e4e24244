// Portable bytecode of several versions of StableHLO gives the program that its text gives.
#include <regex>

#include "compiler/base/text.h"
#include "compiler/eval/evaluator.h"
#include "compiler/hlo/printer.h"
#include "compiler/import/import.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

constexpr char kSeeds[] = "tests/fuzz/seeds/bytecode/";

// HLO text without the names of values, which bytecode does not carry, and without metadata, which these texts do not.
std::string Anonymous(const std::string& bytes, const std::string& file) {
  auto m = ImportModule(bytes, file);
  if (!m.ok()) return std::string(m.status().message());
  std::string text = ToText(**m);
  text = text.substr(text.find('\n'));
  text = std::regex_replace(text, std::regex(", metadata=\\{[^}]*\\}"), "");
  return std::regex_replace(text, std::regex("%[A-Za-z0-9_.-]+|[a-z0-9_.]+: "), "%");
}

void ExpectSame(const std::string& text, const std::string& bytecode) {
  auto a = ReadFile("tests/import/" + text), b = ReadFile(kSeeds + bytecode);
  ASSERT_TRUE(a.ok()) << a.status();
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ(Anonymous(*a, text), Anonymous(*b, bytecode));
}

TEST(Bytecode, CurrentVersion) { ExpectSame("kinds.mlir", "kinds_v1_17.mlirbc"); }
TEST(Bytecode, QuantizedBoundedAndTupleTypes) { ExpectSame("quantized.mlir", "quantized.mlirbc"); }
// 1.0 has properties and orders of uses, 0.14 neither properties nor tokens of today, 0.9 bytecode version 0.
TEST(Bytecode, OlderVersions) {
  for (const char* v : {"kinds_v1_0.mlirbc", "kinds_v0_14.mlirbc", "kinds_v0_9.mlirbc"})
    ExpectSame("kinds_old.mlir", v);
}

TEST(Bytecode, CalledComputations) { ExpectSame("calls.mlir", "calls.mlirbc"); }
TEST(Bytecode, Shardings) { ExpectSame("sharded.mlir", "sharded.mlirbc"); }

// What jax.export writes for jax.scipy.linalg.lu_factor: a custom call with an attribute of Shardy's.
TEST(Bytecode, ShardingRulesAreLeftOut) {
  auto all = ReadFile(std::string(kSeeds) + "sharding_rule.mlirbc");
  ASSERT_TRUE(all.ok());
  auto m = ImportModule(*all, "f");
  ASSERT_TRUE(m.ok()) << m.status();
  EXPECT_NE(ToText(**m).find("lapack_sgetrf_ffi"), std::string::npos);
}

// Exported.serialize of x + 1 on CPUs, x * 10 with CUDA, and x - 5 on TPUs: the envelope says that CPUs have number 1.
TEST(Bytecode, OfSeveralPlatformsIsTheCpus) {
  auto all = ReadFile(std::string(kSeeds) + "platforms.jaxexport");
  ASSERT_TRUE(all.ok());
  auto m = ImportModule(*all, "f");
  ASSERT_TRUE(m.ok()) << m.status();
  EXPECT_EQ((*m)->argument_names, std::vector<std::string>{"x"});
  auto result = Evaluate(**m, {Literal(Shape::Array(PrimitiveType::F32, {4}))});
  ASSERT_TRUE(result.ok()) << result.status();
  for (int64_t k = 0; k < 4; ++k) EXPECT_EQ(result->Get(k).re, 1);
}

// The module alone does not say which number is whose.
TEST(Bytecode, APlatformThatNothingSaysIsAnArgument) {
  auto m = ImportModule(
      "func.func public @main(%arg0: tensor<i32> {jax.global_constant = \"_platform_index\"}) -> tensor<i32> {\n"
      "  return %arg0 : tensor<i32>\n}\n",
      "f");
  ASSERT_TRUE(m.ok()) << m.status();
  EXPECT_EQ((*m)->argument_names, std::vector<std::string>{"_platform_index"});
}

TEST(Bytecode, EveryPrefixIsRefusedWithAByte) {
  auto all = ReadFile(std::string(kSeeds) + "kinds_v1_17.mlirbc");
  ASSERT_TRUE(all.ok());
  for (size_t n = 4; n < all->size(); ++n) {
    auto m = ImportModule(absl::string_view(*all).substr(0, n), "f");
    ASSERT_FALSE(m.ok()) << n;
    EXPECT_EQ(m.status().message().substr(0, 4), "f:1:") << m.status();
  }
}

TEST(Bytecode, OtherDialectsAreNamed) {
  auto all = ReadFile(std::string(kSeeds) + "kinds_v1_17.mlirbc");
  ASSERT_TRUE(all.ok());
  std::string other = *all;
  for (size_t at = 0; (at = other.find("vhlo", at)) != std::string::npos; ++at) other.replace(at, 4, "abcd");
  auto m = ImportModule(other, "f");
  ASSERT_FALSE(m.ok());
  EXPECT_NE(m.status().message().find("abcd"), std::string::npos) << m.status();
}

}  // namespace
}  // namespace kiln
