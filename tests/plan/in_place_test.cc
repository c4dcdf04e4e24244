// Updates in place whose other operands are the updated array, or made of it: as if those were read first. On the CPU
// and on the emulated GPU, against the evaluator, which copies.
#include <cmath>

#include "absl/strings/str_replace.h"
#include "aot/tools/runner.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

constexpr char kHead[] = R"(HloModule m$ALIAS
set { a = f32[] parameter(0)
 ROOT b = f32[] parameter(1) }
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT s = f32[] add(a, b) }
swap { a = f32[] parameter(0)
 b = f32[] parameter(1)
 c = f32[] parameter(2)
 d = f32[] parameter(3)
 ROOT t = (f32[], f32[]) tuple(c, d) }
less { t = (s32[], f32[12]) parameter(0)
 k = s32[] get-tuple-element(t), index=0
 n = s32[] constant(3)
 ROOT l = pred[] compare(k, n), direction=LT }
step { t = (s32[], f32[12]) parameter(0)
 k = s32[] get-tuple-element(t), index=0
 one = s32[] constant(1)
 next = s32[] add(k, one)
 u = f32[12] get-tuple-element(t), index=1
 count = s32[12] iota(), iota_dimension=0
 back = s32[12] reverse(count), dimensions={0}
 v = f32[12] scatter(u, back, u), $ONE, to_apply=add
 ROOT r = (s32[], f32[12]) tuple(next, v) }
ENTRY e { x = f32[12] parameter(0)
 count = s32[12] iota(), iota_dimension=0
 back = s32[12] reverse(count), dimensions={0}
)";
constexpr char kOne[] =
    "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1";
constexpr char kAlias[] = ", input_output_alias={ {}: (0, {}, may-alias) }";

struct Program {
  const char* name;
  bool donated;
  const char* body;
};
void PrintTo(const Program& p, std::ostream* os) { *os << p.name; }

const Program kPrograms[] = {
    {"SetsAnArgumentByItself", false, " ROOT r = f32[12] scatter(x, back, x), $ONE, to_apply=set }"},
    {"AddsADonatedArgumentToItself", true, " ROOT r = f32[12] scatter(x, back, x), $ONE, to_apply=add }"},
    {"SetsATemporaryByItself", false,
     " y = f32[12] sine(x)\n ROOT r = f32[12] scatter(y, back, y), $ONE, to_apply=set }"},
    {"SetsByWhatIsMadeOfIt", true,
     " y = f32[12] reverse(x), dimensions={0}\n ROOT r = f32[12] scatter(x, count, y), $ONE, to_apply=set }"},
    {"IndicesAreMadeOfIt", true,
     " i = s32[12] convert(x)\n o = f32[] constant(1)\n ones = f32[12] broadcast(o), dimensions={}\n"
     " ROOT r = f32[12] scatter(x, i, ones), $ONE, to_apply=add }"},
    {"SetsRowsByThemselves", false,
     " m = f32[3,4] reshape(x)\n i = s32[3] iota(), iota_dimension=0\n j = s32[3] reverse(i), dimensions={0}\n"
     " ROOT r = f32[3,4] scatter(m, j, m), update_window_dims={1}, inserted_window_dims={0},"
     " scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=set }"},
    {"TwoArraysSetByEachOther", false,
     " y = f32[12] cosine(x)\n ROOT r = (f32[12], f32[12]) scatter(x, y, back, y, x), $ONE, to_apply=swap }"},
    {"OneArrayTwice", false, " ROOT r = (f32[12], f32[12]) scatter(x, x, back, x, x), $ONE, to_apply=swap }"},
    {"StateOfALoop", false,
     " z = s32[] constant(0)\n t = (s32[], f32[12]) tuple(z, x)\n"
     " ROOT w = (s32[], f32[12]) while(t), condition=less, body=step }"},
    {"UpdatesASliceByAnotherOfItself", true,
     " i = s32[] constant(2)\n u = f32[6] slice(x), slice={[0:6]}\n"
     " ROOT r = f32[12] dynamic-update-slice(x, u, i) }"},
    {"UpdatesItselfByItself", true,
     " i = s32[] constant(0)\n y = f32[12] reverse(x), dimensions={0}\n"
     " ROOT r = f32[12] dynamic-update-slice(x, y, i) }"},
    {"TheOldArrayIsAResultToo", false,
     " i = s32[] constant(3)\n u = f32[2] slice(x), slice={[7:9]}\n y = f32[12] sine(x)\n"
     " v = f32[12] dynamic-update-slice(y, u, i)\n ROOT r = (f32[12], f32[12]) tuple(v, y) }"},
    {"AnOrderedValueIsWhereItsOperandIs", false,
     " token = token[] after-all()\n y = f32[12] sine(x)\n d = f32[12] add-dependency(y, token)\n"
     " ROOT r = f32[12] reverse(d), dimensions={0} }"},
    {"AnOrderedArgumentIsAResult", false, " token = token[] after-all()\n ROOT d = f32[12] add-dependency(x, token) }"},
};

class InPlace : public testing::TestWithParam<Program> {};

TEST_P(InPlace, ComputesWhatTheEvaluatorComputes) {
  const std::string text = absl::StrReplaceAll(absl::StrCat(kHead, GetParam().body),
                                               {{"$ALIAS", GetParam().donated ? kAlias : ""}, {"$ONE", kOne}});
  auto m = ParseHlo(text, "t.hlo");
  ASSERT_TRUE(m.ok()) << m.status() << text;
  Literal x(Shape::Array(PrimitiveType::F32, {12}));
  for (int64_t k = 0; k < 12; ++k) x.Set(k, Literal::Of(PrimitiveType::F32, static_cast<double>((k * 7) % 12)).Get(0));
  CompileOptions options;
  options.cpu.levels = {"native"};
  RunOptions run;
  run.backend = "reference";
  auto want = RunModule((*m)->Clone(), {x}, options, run);
  ASSERT_TRUE(want.ok()) << want.status();
  for (const char* backend : {"cpu", "gpu-emulated"}) {
    run.backend = backend;
    auto got = RunModule((*m)->Clone(), {x}, options, run);
    ASSERT_TRUE(got.ok()) << backend << ": " << got.status() << text;
    ASSERT_EQ(got->results.size(), want->results.size());
    for (size_t r = 0; r < want->results.size(); ++r)
      for (int64_t k = 0; k < want->results[r].size(); ++k) {
        const Element g = got->results[r].Get(k), w = want->results[r].Get(k);
        EXPECT_TRUE(g.i == w.i && std::fabs(g.re - w.re) < 1e-5)
            << backend << ", result " << r << " element " << k << ": " << g.re << ", expected " << w.re << "\n"
            << text;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, InPlace, testing::ValuesIn(kPrograms),
                         [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace kiln
