// Modules and functions of StableHLO text: both forms, which function is meant, and what contradicts itself.
#include "absl/strings/match.h"
#include "compiler/hlo/printer.h"
#include "compiler/import/import.h"
#include "compiler/import/public_functions.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

std::string Import(const std::string& text, const std::string& entry = "") {
  ImportOptions options;
  options.entry = entry;
  auto m = ImportModule(text, "f", options);
  return m.ok() ? ToText(**m) : std::string(m.status().message());
}

constexpr char kPretty[] = R"(module @m attributes {mhlo.num_replicas = 2 : i32} {
  func.func public @main(%x: tensor<8xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<8xf32> {jax.result_info = "r"}) {
    %0 = call @"twice\22"(%x) : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  func.func private @"twice\22"(%y: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.add %y, %y : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
})";
// The same, as MLIR prints it with --mlir-print-op-generic.
constexpr char kGeneric[] = R"("builtin.module"() <{sym_name = "m"}> ({
  "func.func"() <{arg_attrs = [{tf.aliasing_output = 0 : i32}], function_type = (tensor<8xf32>) -> tensor<8xf32>, res_attrs = [{jax.result_info = "r"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%x: tensor<8xf32>):
    %0 = "func.call"(%x) <{callee = @"twice\22"}> : (tensor<8xf32>) -> tensor<8xf32>
    "func.return"(%0) : (tensor<8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<8xf32>) -> tensor<8xf32>, sym_name = "twice\22", sym_visibility = "private"}> ({
  ^bb0(%y: tensor<8xf32>):
    %0 = "stablehlo.add"(%y, %y) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    "func.return"(%0) : (tensor<8xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_replicas = 2 : i32} : () -> ())";

TEST(Program, TheGenericFormIsTheSameProgram) {
  EXPECT_TRUE(absl::StartsWith(Import(kPretty), "HloModule m")) << Import(kPretty);
  EXPECT_EQ(Import(kPretty), Import(kGeneric));
}

// An argument that is the size of a bounded dimension differs from run to run: --dim states extents alone.
TEST(Program, ASizeIsNoExtent) {
  ImportOptions options;
  options.dim = 5;
  const auto sized = ImportModule(R"(func.func @main(%x: tensor<8xf32>, %n: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<8xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<8>>
    %1 = stablehlo.get_dimension_size %0, dim = 0 : (tensor<?xf32, #stablehlo.bounds<8>>) -> tensor<i32>
    return %1 : tensor<i32>
  })",
                                  "f", options);
  ASSERT_TRUE(sized.ok()) << sized.status();
  EXPECT_TRUE((*sized)->dimension_arguments.empty());
  const auto extent = ImportModule(R"(func.func @main(%n: tensor<1xi32>, %m: tensor<i32>) -> tensor<?xi32> {
    %0 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.dynamic_iota %0, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
    return %1 : tensor<?xi32>
  })",
                                   "f", options);
  ASSERT_TRUE(extent.ok()) << extent.status();
  EXPECT_EQ((*extent)->dimension_arguments.size(), 1u);
}

TEST(Program, FormsMix) {
  EXPECT_TRUE(absl::StartsWith(Import(R"("builtin.module"() ({
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }
}) : () -> ())"),
                               "HloModule"));
}

// One function of tensor<4xf32> with this body.
std::string Body(const std::string& ops, const std::string& result = "tensor<4xf32>") {
  return Import(absl::StrCat("func.func @main(%x: tensor<4xf32>) -> ", result, " {\n", ops, "\n}\n"));
}

TEST(Program, ContradictionsAreRefusedWithTheirPlace) {
  EXPECT_TRUE(
      absl::StartsWith(Body("%0 = stablehlo.add %x, %x : tensor<4xf32>\nreturn %0 : tensor<4xf32>"), "HloModule"));
  const std::pair<const char*, const char*> kWrong[] = {
      {"%0 = stablehlo.add %x, %x : tensor<5xf32>\nreturn %0 : tensor<5xf32>", "f:2:6: error"},
      {"%0 = \"stablehlo.add\"(%x, %x) : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>", "f:2:6: error"},
      {"%0 = \"stablehlo.add\"(%x, %x) : () -> tensor<4xf32>\nreturn %0 : tensor<4xf32>", "f:2:6: error"},
      {"%0 = stablehlo.add %x, %y : tensor<4xf32>\nreturn %0 : tensor<4xf32>", "f:2:6: error"},
      {"%0:2 = stablehlo.custom_call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0#0 : tensor<4xf32>",
       "f:2:8: error"},
      {"%0 = stablehlo.add %x, %x : tensor<4xf32>\n%0 = stablehlo.add %x, %x : tensor<4xf32>\nreturn %0 : "
       "tensor<4xf32>",
       "f:3:6: error"},
      {"return %x : tensor<5xf32>", "f:2:1: error"},
      {"return %x, %x : tensor<4xf32>, tensor<4xf32>", "f:2:1: error"},
      {"return %x : tensor<4xf32>\n%0 = stablehlo.add %x, %x : tensor<4xf32>", "f:2:1: error"},
      {"%0 = stablehlo.add %x, %x : tensor<4xf32>", "f:1:"},
      {"%0 = call @main(%x) : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>", "f:2:6: error"},
      {"%0 = call @nobody(%x) : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>", "f:2:6: error"},
      {"%0 = stablehlo.constant dense<[[1.0, 2.0, 3.0, 4.0]]> : tensor<4xf32>\nreturn %0 : tensor<4xf32>",
       "f:2:6: error"},
      {"%0 = stablehlo.constant dense<[1.0, [2.0], 3.0, 4.0]> : tensor<4xf32>\nreturn %0 : tensor<4xf32>",
       "f:2:6: error"},
      {"%0 = stablehlo.while(%i = %x) : tensor<4xf32> cond {\n%t = stablehlo.constant dense<true> : tensor<i1>\n"
       "stablehlo.return %t : tensor<i1>\n} do {\n}\nreturn %0 : tensor<4xf32>",
       "f:2:6: error"},
      {"%0 = stablehlo.add(%x, %x : tensor<4xf32>\nreturn %0 : tensor<4xf32>", "f:2:"},
  };
  for (const auto& [ops, place] : kWrong) EXPECT_TRUE(absl::StartsWith(Body(ops), place)) << ops << "\n" << Body(ops);
  EXPECT_TRUE(absl::StartsWith(Body("return %x : tensor<4xf32>", "tensor<5xf32>"), "f:2:1: error"));
  const std::string splat = absl::StrCat("%0 = stablehlo.constant dense<", std::string(100000, '['), "1.0",
                                         std::string(100000, ']'), "> : tensor<1xf32>\nreturn %x : tensor<4xf32>");
  EXPECT_TRUE(absl::StartsWith(Body(splat), "f:2:6: error"));
}

TEST(Program, MeshesAreRead) {
  const auto with = [](const std::string& mesh) {
    return Import(absl::StrCat("module {\nsdy.mesh ", mesh, "\nfunc.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n",
                               "return %x : tensor<4xf32>\n}\n}\n"));
  };
  for (const char* mesh : {"@m = <[\"a\"=2, \"b\"=2]>", "@m = <[]>", "@m = <[\"a\"=2], device_ids=[1, 0]>"})
    EXPECT_TRUE(absl::StartsWith(with(mesh), "HloModule")) << with(mesh);
  for (const char* mesh : {R"(@m = <["a"=2ounds<4, ?>, "b"=2]>)", R"(@m = <[a=2]>)", R"(@"m}" = <["a"=2]>)"})
    EXPECT_TRUE(absl::StartsWith(with(mesh), "f:2:1: error")) << with(mesh);
  EXPECT_TRUE(absl::StrContains(with("@m = <[\f\"a\"=2,\n\"b\"=2]>"), "{m = #sdy.mesh<[\"a\"=2, \"b\"=2]>}"));
  // An attribute of the module is no mesh, whatever it is called.
  const std::string named = Import(
      "module attributes {sdy.mesh.m = false} {\nfunc.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
      "return %x : tensor<4xf32>\n}\n}\n");
  EXPECT_TRUE(absl::StartsWith(named, "HloModule") && !absl::StrContains(named, "sdy")) << named;
}

TEST(Program, CallsTakeAndReturnWhatTheFunctionSays) {
  const auto call = [](const std::string& types) {
    return Import(absl::StrCat("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n%0 = call @g(%x) : ", types,
                               "\nreturn %x : tensor<4xf32>\n}\nfunc.func private @g(%y: tensor<4xf32>) -> "
                               "tensor<4xi32> {\n%0 = stablehlo.convert %y : (tensor<4xf32>) -> tensor<4xi32>\n"
                               "return %0 : tensor<4xi32>\n}\n"));
  };
  EXPECT_TRUE(absl::StartsWith(call("(tensor<4xf32>) -> tensor<4xi32>"), "HloModule"));
  EXPECT_TRUE(absl::StartsWith(call("(tensor<4xf32>) -> tensor<4xf32>"), "f:2:6: error"));
}

std::string Functions(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& n : names)
    absl::StrAppend(&out, "func.func ", n, "(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }\n");
  return out;
}

std::vector<std::string> Offered(const std::string& text) {
  const auto functions = PublicFunctions(text, "f");
  return functions.ok() ? *functions : std::vector<std::string>{std::string(functions.status().message())};
}

TEST(Program, OffersWhatIsPublicAndReachedByNoOther) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(Offered(Functions({"public @b", "private @c", "public @a"})), Names({"b", "a"}));
  EXPECT_EQ(Offered(Functions({"private @main", "public @a"})), Names({"main", "a"}));
  EXPECT_EQ(Offered("func.func public @f(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }\n"
                    "func.func public @g(%x: tensor<f32>) -> tensor<f32> {\n"
                    "%0 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>\nreturn %0 : tensor<f32>\n}\n"),
            Names({"g"}));
  EXPECT_EQ(Offered("HloModule m\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}\n"), Names());
  EXPECT_TRUE(absl::StartsWith(Offered("func.func public @f(")[0], "f:1:"));
}

TEST(Program, SeveralPublicFunctionsNeedAChoice) {
  const std::string two = Functions({"public @main", "public @decode"});
  EXPECT_EQ(
      Import(two),
      "f:2:1: error: several functions are public and called by no other: @main, @decode; --entry NAME says which "
      "one is meant");
  EXPECT_TRUE(absl::StrContains(Import(two, "decode"), "ENTRY %decode"));
  EXPECT_TRUE(absl::StrContains(Import(two, "main"), "ENTRY %main"));
  EXPECT_TRUE(absl::StrContains(Import(two, "nobody"), "there are @main, @decode"));
  EXPECT_TRUE(absl::StrContains(Import(Functions({"private @f", "public @main"})), "ENTRY %main"));
  EXPECT_TRUE(absl::StrContains(Import(Functions({"private @f", "public @g"})), "ENTRY %g"));
  EXPECT_TRUE(
      absl::StrContains(Import("HloModule h\nENTRY e { ROOT p = f32[2] parameter(0) }", "main"), "one entry, 'e'"));
}

TEST(Program, CallsCostNoMoreThanTheirText) {
  // A function that calls the next twice, forty deep; then a chain of 20,000 calls.
  for (const auto& [depth, calls] : {std::pair{40, 2}, {20000, 1}}) {
    std::string text =
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n%0 = call @f0(%x) : (tensor<4xf32>) -> "
        "tensor<4xf32>\nreturn %0 : tensor<4xf32>\n}\n";
    for (int k = 0; k < depth; ++k) {
      absl::StrAppend(&text, "func.func private @f", k, "(%x: tensor<4xf32>) -> tensor<4xf32> {\n");
      for (int c = 0; k + 1 < depth && c < calls; ++c)
        absl::StrAppend(&text, "%", c, " = call @f", k + 1, "(%x) : (tensor<4xf32>) -> tensor<4xf32>\n");
      absl::StrAppend(&text, "return %", k + 1 < depth ? "0" : "x", " : tensor<4xf32>\n}\n");
    }
    EXPECT_TRUE(absl::StartsWith(Import(text), "HloModule"));
  }
}

// JAX of 2022 wrote a serialized OpSharding, or nothing, where today's text stands.
TEST(Program, ShardingsOfOldPrograms) {
  const auto sharded = [](absl::string_view sharding) {
    return Import(absl::StrCat("func.func @main(%x: tensor<4xf32> {mhlo.sharding = \"", sharding,
                               "\"}) -> tensor<4xf32> {\nreturn %x : tensor<4xf32>\n}\n"));
  };
  EXPECT_TRUE(absl::StrContains(sharded("\\08\\03\\1A\\01\\02\\22\\02\\00\\01"), "sharding={devices=[2]0,1}"))
      << sharded("\\08\\03\\1A\\01\\02\\22\\02\\00\\01");
  EXPECT_FALSE(absl::StrContains(sharded(""), "sharding")) << sharded("");
}

TEST(Program, ResultsHaveTheShardingThatTheyState) {
  const std::string text = Import(
      "func.func @main(%x: tensor<4xf32> {mhlo.sharding = \"{devices=[2]<=[2]}\"}) -> "
      "(tensor<4xf32> {jax.result_info = \"r\", mhlo.sharding = \"{replicated}\"}) {\nreturn %x : tensor<4xf32>\n}\n");
  EXPECT_TRUE(absl::StrContains(text, "parameter(0), sharding={devices=[2]<=[2]}")) << text;
  EXPECT_TRUE(absl::StrContains(text, "custom_call_target=\"Sharding\", sharding={replicated}")) << text;
}

TEST(Program, DynamicWindowsHaveAValueForEachDimension) {
  const auto window = [](absl::string_view strides) {
    return Import(absl::StrCat(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%o = stablehlo.constant dense<1> : tensor<1xi32>\n%s = stablehlo.constant ",
        strides,
        "\n%p = stablehlo.constant dense<0> : tensor<1x2xi32>\n%0 = stablehlo.custom_call "
        "@stablehlo.dynamic_reduce_window(%x, %z, %o, %s, %o, %o, %p) {called_computations = [@add]} : "
        "(tensor<4xf32>, tensor<f32>, tensor<1xi32>, ",
        strides.substr(strides.find("tensor")),
        ", tensor<1xi32>, tensor<1xi32>, tensor<1x2xi32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>\n}\n"
        "func.func private @add(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {\n"
        "%0 = stablehlo.add %a, %b : tensor<f32>\nreturn %0 : tensor<f32>\n}\n"));
  };
  EXPECT_TRUE(absl::StrContains(window("dense<1> : tensor<1xi32>"), "reduce-window("));
  EXPECT_TRUE(absl::StrContains(window("dense<1> : tensor<2xi32>"), "window_strides has 2 entries, not 1"));
  EXPECT_TRUE(absl::StrContains(window("dense<> : tensor<0xi32>"), "window_strides has 0 entries, not 1"));
}

TEST(Program, InliningHasALimit) {
  std::string text =
      "func.func @main(%x: tensor<4xf32>) -> tensor<?xf32> {\n%0 = stablehlo.convert %x : "
      "(tensor<4xf32>) -> tensor<?xf32>\n%1 = call @f0(%0) : (tensor<?xf32>) -> tensor<?xf32>\n"
      "return %1 : tensor<?xf32>\n}\n";
  for (int k = 0; k < 40; ++k)
    absl::StrAppend(&text, "func.func private @f", k, "(%x: tensor<?xf32>) -> tensor<?xf32> {\n%0 = call @f", k + 1,
                    "(%x) : (tensor<?xf32>) -> tensor<?xf32>\n%1 = call @f", k + 1,
                    "(%0) : (tensor<?xf32>) -> tensor<?xf32>\nreturn %1 : tensor<?xf32>\n}\n");
  absl::StrAppend(&text,
                  "func.func private @f40(%x: tensor<?xf32>) -> tensor<?xf32> {\n%0 = stablehlo.add %x, %x : "
                  "tensor<?xf32>\nreturn %0 : tensor<?xf32>\n}\n");
  EXPECT_TRUE(absl::StrContains(Import(text), "come to more than")) << Import(text).substr(0, 300);
}

TEST(Program, ProtosNestToALimit) {
  std::string text = "name: \"m\"\n";
  for (int k = 0; k < 20000; ++k) absl::StrAppend(&text, "computations { ");
  EXPECT_TRUE(absl::StrContains(Import(text), "f:2:")) << Import(text).substr(0, 300);
}

TEST(Program, AttributesAreSeparated) {
  EXPECT_TRUE(absl::StrContains(
      Body("%0 = stablehlo.custom_call @f(%x) {api_version = 4 : i32, backend_config = {a = 1 : i64}\n"
           "backend_config = {a = 2 : i64}} : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>"),
      "expected ','"));
  EXPECT_TRUE(absl::StrContains(
      Body("%0 = stablehlo.custom_call @f(%x) {api_version = 4 : i32, backend_config = {a = 1 : i64} : "
           "tensor<4xf32>} : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>"),
      "is not a dictionary"));
}

TEST(Program, OtherFilesAreNamed) {
  EXPECT_TRUE(absl::StrContains(Import("import jax\nimport jax.numpy as jnp\n"), "looks like Python"));
  EXPECT_TRUE(absl::StrContains(Import("#include <stdio.h>\nint main() {}\n"), "looks like C"));
  EXPECT_TRUE(absl::StrContains(Import("\x93NUMPY\x01"), "an .npy array"));
  EXPECT_TRUE(absl::StrContains(Import("hello"), "f:1:1: error: this is neither HLO text"));
}

}  // namespace
}  // namespace kiln
