// Names of arguments and results, and origins of operations, come from every form of a program.
#include "compiler/base/text.h"
#include "compiler/hlo/interface_names.h"
#include "compiler/hlo/printer.h"
#include "compiler/import/import.h"
#include "compiler/import/origin.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

using Names = std::vector<std::string>;

constexpr char kNested[] = R"(
#loc1 = loc("params['w']")
#loc5 = loc("model.py":4:8 to :18)
#loc6 = loc("layer"(#loc5))
#loc7 = loc(callsite(#loc6 at "model.py":9:1))
#loc8 = loc("jit(f)/layer/add"(#loc7))
module @jit_f {
  func.func public @main(%arg0: tensor<4xf32> loc("params['w']"), %arg1: tensor<4xf32> {jax.arg_info = "x"})
      -> (tensor<4xf32> {jax.result_info = "result['a']"}, tensor<4xf32> {jax.result_info = "result['b'].c"}) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<4xf32> loc(#loc8)
    %1 = stablehlo.abs %0 : tensor<4xf32> loc(fused<"m">["model.py":11:2, "tail"])
    return %0, %1 : tensor<4xf32>, tensor<4xf32> loc(#loc9)
  } loc(unknown)
} loc(#loc10)
#loc9 = loc(#loc9)
)";

std::unique_ptr<Module> Import(const std::string& bytes, const std::string& file) {
  auto m = ImportModule(bytes, file);
  EXPECT_TRUE(m.ok()) << m.status();
  return m.ok() ? *std::move(m) : nullptr;
}

std::string MetadataOf(const Module& m, Opcode opcode) {
  for (const auto& i : m.entry()->instructions())
    if (i->opcode() == opcode && i->attrs().metadata) return i->attrs().metadata->text;
  return "";
}

TEST(Names, OfStableHloText) {
  const auto m = Import(kNested, "f.mlir");
  ASSERT_TRUE(m);
  EXPECT_EQ(m->argument_names, (Names{"params['w']", "x"}));
  EXPECT_EQ(ResultNames(*m), (Names{"result['a']", "result['b'].c"}));
  EXPECT_EQ(MetadataOf(*m, Opcode::Add), R"({op_name="jit(f)/layer/add" source_file="model.py" source_line=4})");
  EXPECT_EQ(MetadataOf(*m, Opcode::Abs), R"({op_name="tail" source_file="model.py" source_line=11})");
}

// As jax.export writes a function with a symbolic dimension.
constexpr char kWrapped[] = R"(
module @jit_f {
  func.func public @main(%arg0: tensor<4xf32> loc(unknown), %arg1: tensor<?x4xf32> loc(unknown)) -> (tensor<?x4xf32>) {
    %0 = stablehlo.get_dimension_size %arg1, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
    %1 = call @inner(%0, %arg0, %arg1) : (tensor<i32>, tensor<4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    return %1 : tensor<?x4xf32>
  }
  func.func private @inner(%arg0: tensor<i32> loc(unknown), %arg1: tensor<4xf32> loc("params['w']"), %arg2: tensor<?x4xf32> loc("x")) -> (tensor<?x4xf32>) {
    return %arg2 : tensor<?x4xf32>
  }
}
)";

TEST(Names, OfAFunctionInsideAnother) {
  ImportOptions options;
  options.dim = 8;
  const auto m = ImportModule(kWrapped, "f.mlir", options);
  ASSERT_TRUE(m.ok()) << m.status();
  EXPECT_EQ((*m)->argument_names, (Names{"params['w']", "x"}));
}

TEST(Names, HloTextKeepsThem) {
  auto m = Import(kNested, "f.mlir");
  ASSERT_TRUE(m);
  m->entry()->parameter(1)->mutable_attrs().metadata = attr::Raw("{op_name=\"x\"}");
  const auto again = Import(ToText(*m), "f.hlo");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->argument_names, (Names{"params['w']", "x"}));
  EXPECT_EQ(ResultNames(*again), ResultNames(*m));
}

// Where functions inside take the names first, the entry's parameters have others in HLO text.
TEST(Names, HloTextKeepsThoseThatMlirGave) {
  const auto m = Import(R"(
module @m {
  func.func public @main(%arg0: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = call @inner(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.add %0, %x : tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func private @inner(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.abs %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
})",
                        "f.mlir");
  ASSERT_TRUE(m);
  EXPECT_NE(m->entry()->parameter(0)->name(), "arg0");
  const auto again = Import(ToText(*m), "f.hlo");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->argument_names, (Names{"arg0", "x"}));
}

TEST(Names, ParametersThatShareAnOriginKeepTheirOwn) {
  const auto m = Import(R"(HloModule m
ENTRY e {
  a = f32[] parameter(0), metadata={op_name="XLA_Args"}
  b = f32[] parameter(1), metadata={op_name="XLA_Args"}
  ROOT c = f32[] add(a, b)
})",
                        "f.hlo");
  ASSERT_TRUE(m);
  EXPECT_TRUE(m->argument_names.empty());
}

TEST(Names, OfBytecode) {
  const auto bytes = ReadFile("tests/fuzz/seeds/bytecode/names.mlirbc");
  ASSERT_TRUE(bytes.ok());
  const auto m = Import(*bytes, "f");
  ASSERT_TRUE(m);
  EXPECT_EQ(m->argument_names, (Names{"params['head']", "params['layers'][0]['w']", "x"}));
  EXPECT_EQ(ResultNames(*m), (Names{"result['hidden']", "result['logits']"}));
  EXPECT_EQ(MetadataOf(*m, Opcode::Tanh), R"({op_name="jit(f)/tanh" source_file="model.py" source_line=4})");
}

TEST(Origins, WhatIsNoLocationSaysNothing) {
  const absl::flat_hash_map<std::string, std::string> aliases = {
      {"#a", "loc(callsite(#b at #a))"}, {"#b", "loc(callsite(#a at #b))"}, {"#c", "loc(\"n\"(#a))"}};
  Origins origins(aliases);
  for (const char* text : {"", "?", "unknown", "#a", "#d", "fused[", "callsite(", "\"f\":x", "(((", "fused<[\"a\"]"})
    EXPECT_TRUE(origins.Of(text).empty()) << text;
  EXPECT_EQ(origins.Of("#c").ToString(), "\"n\"");
  std::string deep;
  for (int k = 0; k < 100000; ++k) deep += "\"n\"(";
  EXPECT_EQ(origins.Of(deep).name, "n");
}

}  // namespace
}  // namespace kiln
