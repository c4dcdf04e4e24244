// The conventions of stablehlo.custom_call: what XLA's own conversion makes of each (jaxlib 0.10.2 printed the HLO).
#include "compiler/hlo/custom_call.h"

#include "compiler/base/text.h"
#include "compiler/hlo/printer.h"
#include "compiler/import/import.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

// JAX writes a typed call as version 1 with a dictionary of its own.
constexpr char kFromXla[] = R"(HloModule typed_call
ENTRY main {
  x = f32[2,4]{1,0} parameter(0)
  a = f32[2,4]{1,0} custom-call(x), custom_call_target="my_rms", api_version=API_VERSION_TYPED_FFI, backend_config={eps = 9.99999974E-6 : f32, flag = true, inf = 0x7F800000 : f32, list = dense<[1.500000e+00, -2.500000e+00]> : tensor<2xf32>, matrix = dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>, n = 3 : i64, text = "q\22x\\y\0A", u = 200 : ui8}
  b = (f32[2,4]{1,0}, s32[3]{0}) custom-call(a), custom_call_target="empty", custom_call_has_side_effect=true, api_version=API_VERSION_TYPED_FFI, backend_config={}
  c = f32[2,4]{1,0} get-tuple-element(b), index=0
  d = f32[2,4]{1,0} custom-call(c), custom_call_target="older", api_version=API_VERSION_STATUS_RETURNING_UNIFIED, backend_config="op\"aque\\"
  e = s32[3]{0} get-tuple-element(b), index=1
  ROOT r = (f32[2,4]{1,0}, s32[3]{0}) tuple(d, e)
}
)";

std::vector<CustomCallSignature> Signatures(const std::string& bytes) {
  std::vector<CustomCallSignature> out;
  auto m = ImportModule(bytes, "f");
  EXPECT_TRUE(m.ok()) << m.status();
  if (!m.ok()) return out;
  for (const auto& i : (*m)->entry()->instructions()) {
    if (!i->Is(Opcode::CustomCall)) continue;
    auto s = SignatureOf(i.get());
    EXPECT_TRUE(s.ok()) << s.status();
    if (s.ok()) out.push_back(*s);
  }
  return out;
}

void ExpectSame(const std::string& file) {
  auto bytes = ReadFile(file);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto want = Signatures(kFromXla), got = Signatures(*bytes);
  ASSERT_EQ(want.size(), 3u);
  ASSERT_EQ(got.size(), 3u);
  for (size_t k = 0; k < 3; ++k) {
    EXPECT_TRUE(SamePrototype(want[k], got[k])) << want[k].target;
    EXPECT_EQ(want[k].opaque, got[k].opaque);
    for (size_t a = 0; a < want[k].attributes.size(); ++a) {
      const CallAttributeValue &w = want[k].attributes[a], &g = got[k].attributes[a];
      EXPECT_EQ(w.string, g.string) << w.name;
      ASSERT_EQ(w.values.size(), g.values.size()) << w.name;
      for (size_t v = 0; v < w.values.size(); ++v) {
        EXPECT_EQ(w.values[v].i, g.values[v].i) << w.name;
        EXPECT_EQ(static_cast<float>(w.values[v].re), static_cast<float>(g.values[v].re)) << w.name;
      }
    }
  }
  EXPECT_EQ(want[0].attributes[6].string, "q\"x\\y\n");
  EXPECT_EQ(want[2].opaque, "op\"aque\\");
}

TEST(CustomCall, TextIsWhatXlaConvertsItTo) { ExpectSame("tests/import/typed_call.mlir"); }
TEST(CustomCall, BytecodeIsWhatXlaConvertsItTo) { ExpectSame("tests/fuzz/seeds/bytecode/typed_call.mlirbc"); }

std::string ErrorOf(const std::string& attributes) {
  auto m =
      ImportModule(absl::StrCat("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = "
                                "stablehlo.custom_call @f(%x) {",
                                attributes, "} : (tensor<2xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n"),
                   "f");
  if (!m.ok()) return std::string(m.status().message());
  auto s = SignatureOf((*m)->entry()->root());
  return s.ok() ? "" : std::string(s.status().message());
}

TEST(CustomCall, ContradictionsAreRefused) {
  EXPECT_EQ(ErrorOf("mhlo.backend_config = {a = 1 : i32}"), "");
  EXPECT_EQ(ErrorOf("api_version = 4 : i32, backend_config = {a = 1 : i32}"), "");
  for (const char* attributes : {
           "api_version = 0 : i32",
           "api_version = 5 : i32",
           "api_version = 4 : i32, mhlo.backend_config = {a = 1 : i32}",
           "api_version = 2 : i32, mhlo.backend_config = {}",
           "backend_config = \"x\", mhlo.backend_config = {}",
           "mhlo.backend_config = \"x\"",
           "api_version = 4 : i32, backend_config = \"{a = 1 : i32}\"",
           "backend_config = {a = 1 : i32}",
           "called_computations = [@main]",
       })
    EXPECT_EQ(ErrorOf(attributes).substr(0, 12), "f:2:8: error") << attributes << ": " << ErrorOf(attributes);
}

TEST(CustomCall, PythonIsRefused) {
  auto m = ImportModule(
      "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
      "  stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) {api_version = 4 : i32, backend_config = {index = 0 : "
      "ui64}, has_side_effect = true} : (tensor<2xf32>) -> ()\n  return %x : tensor<2xf32>\n}\n",
      "f");
  ASSERT_TRUE(m.ok()) << m.status();
  int found = 0;
  for (const auto& i : (*m)->entry()->instructions())
    if (i->Is(Opcode::CustomCall)) {
      ++found;
      EXPECT_NE(SignatureOf(i.get()).status().message().find("f:2:3: error: custom-call: calls 'xla_ffi_python_cpu_"),
                std::string::npos)
          << SignatureOf(i.get()).status();
    }
  EXPECT_EQ(found, 1);
}

// PyTorch/XLA writes operations that StableHLO lacks so.
TEST(CustomCall, EncodedOperationsAreOperations) {
  auto text = [](absl::string_view target, absl::string_view attributes) {
    return absl::StrCat("func.func @main(%x: tensor<2x5xf32>) -> tensor<2x5xf32> {\n  %0 = stablehlo.custom_call @",
                        target, "(%x) {", attributes,
                        "} : (tensor<2x5xf32>) -> tensor<2x5xf32>\n  return %0 : tensor<2x5xf32>\n}\n");
  };
  auto root = [&](absl::string_view target, absl::string_view attributes) {
    auto m = ImportModule(text(target, attributes), "f");
    return m.ok() ? std::string(TextOf((*m)->entry()->root()->opcode())) : std::string(m.status().message());
  };
  for (absl::string_view name : {"mhlo.erf", "chlo.erf"})
    EXPECT_EQ(root(name, "mhlo.attributes = {}, mhlo.version = 1 : i64"), "erf") << name;
  EXPECT_EQ(root("mhlo.acosh", "mhlo.attributes = {}"), "acosh");
  EXPECT_EQ(root("mhlo.erf", "mhlo.version = 1 : i64"), "custom-call");
  EXPECT_EQ(root("mhlo.domain", "mhlo.attributes = {}"), "f:2:8: error: mhlo.domain: this operation is not supported");
  EXPECT_EQ(root("mhlo.erf", "mhlo.attributes = 3"),
            "f:2:8: error: stablehlo.custom_call: mhlo.attributes is not a dictionary");
}

TEST(CustomCall, EncodedTopKHasItsAttributes) {
  for (absl::string_view name : {"mhlo.topk", "chlo.top_k"})
    for (absl::string_view largest : {"true", "false"}) {
      auto m =
          ImportModule(absl::StrCat("func.func @main(%x: tensor<2x5xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>) {\n"
                                    "  %0:2 = stablehlo.custom_call @",
                                    name, "(%x) {mhlo.attributes = {k = 3 : i64, largest = ", largest,
                                    "}} : (tensor<2x5xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>)\n"
                                    "  return %0#0, %0#1 : tensor<2x3xf32>, tensor<2x3xi32>\n}\n"),
                       "f");
      ASSERT_TRUE(m.ok()) << m.status();
      EXPECT_NE(ToText(**m).find(absl::StrCat("topk(%x), k=3, largest=", largest)), std::string::npos) << ToText(**m);
    }
}

TEST(CustomCall, ValuesMustFitTheirTypes) {
  EXPECT_EQ(ErrorOf("mhlo.backend_config = {a = 255 : i8, b = -1 : i8, c = 18446744073709551615 : ui64}"), "");
  for (const char* value : {"256 : i8", "-129 : i8", "-1 : ui8", "1.5 : i32", "true : f32", "2 : i1"})
    EXPECT_NE(ErrorOf(absl::StrCat("mhlo.backend_config = {a = ", value, "}")).find("cannot hold"), std::string::npos)
        << value;
}

}  // namespace
}  // namespace kiln
