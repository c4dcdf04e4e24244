// Plans of dots, convolutions and matrix products on the CPU: which algorithm a shape gets, and how its work is cut.
#include "absl/strings/str_cat.h"
#include "codegen/cpu/convolution_plan.h"
#include "codegen/cpu/dot_plan.h"
#include "codegen/cpu/strip_plan.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/hlo/parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::cpu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// As FindCpuLevel gives them, in what plans read.
CpuLevel Avx2() { return {"v3", "", "", 32, 16, true, true, false, false, false}; }
CpuLevel Avx512() { return {"v4", "", "", 64, 32, true, true, false, false, false}; }
CpuLevel Avx512Fp16() { return {"v4fp16", "", "", 64, 32, true, true, true, false, false, true}; }
CpuLevel Avx512Dot() { return {"v4bf16", "", "", 64, 32, true, true, true, true, false, false, 1}; }
CpuLevel Amx() { return {"amx", "", "", 64, 32, true, true, true, true, true}; }

std::unique_ptr<Module> Parse(const std::string& parameters_and_root) {
  auto m = ParseHlo(absl::StrCat("HloModule m\nENTRY e {\n", parameters_and_root, "\n}\n"), "t.hlo");
  EXPECT_TRUE(m.ok()) << m.status();
  return m.ok() ? *std::move(m) : nullptr;
}

absl::StatusOr<DotPlan> DotOf(const CpuLevel& level, const std::string& l, const std::string& r, const std::string& o,
                              int lhs = 2, int rhs = 1, const std::string& more = "") {
  const auto m = Parse(absl::StrCat("  x = ", l, " parameter(0)\n  y = ", r, " parameter(1)\n  ROOT d = ", o,
                                    " dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={", lhs,
                                    "}, rhs_contracting_dims={", rhs, "}", more.empty() ? "" : ", ", more));
  return PlanDot(level, m->entry()->root());
}

absl::StatusOr<ConvolutionPlan> ConvolutionOf(const CpuLevel& level, const std::string& x, const std::string& k,
                                              const std::string& o, const std::string& window, int groups = 1,
                                              const std::string& labels = "b01f_01io->b01f") {
  const auto m = Parse(absl::StrCat("  x = ", x, " parameter(0)\n  k = ", k, " parameter(1)\n  ROOT c = ", o,
                                    " convolution(x, k), window={", window, "}, dim_labels=", labels,
                                    ", feature_group_count=", groups));
  return PlanConvolution(level, m->entry()->root());
}

MATCHER_P3(Cut, size, count, tail, "") { return arg.size == size && arg.count == count && arg.tail == tail; }
MATCHER_P2(Walks, count, stride, "") { return arg.count == count && arg.a_stride == stride; }

std::unique_ptr<Module> WithChoice(const std::string& text, const std::string& choice) {
  auto m = Parse(text);
  if (m) SetAlgorithm(m->entry()->root(), choice);
  return m;
}

// Weights of [features in, features out] by a few rows.
TEST(MatmulPlan, LargeWeightsAreReadByLines) {
  const auto applies = [](int64_t rows, const std::string& n, const std::string& k) {
    const auto plan = DotOf(Avx512(), absl::StrCat("f32[1,", rows, ",", k, "]"), absl::StrCat("f32[1,", k, ",", n, "]"),
                            absl::StrCat("f32[1,", rows, ",", n, "]"));
    EXPECT_TRUE(plan.ok()) << plan.status();
    return FewLinesApply(Avx512(), plan->blocked.product, rows);
  };
  EXPECT_TRUE(applies(12, "1024", "1024"));
  EXPECT_TRUE(applies(8, "1024", "1024"));
  EXPECT_TRUE(applies(2, "4096", "1024"));
  EXPECT_FALSE(applies(4, "1024", "1024"));   // tiles of many columns
  EXPECT_FALSE(applies(13, "1024", "1024"));  // two tiles, which fetch
  EXPECT_FALSE(applies(12, "128", "1024"));   // at hand
}

// Attention over `n` positions of 64 features: 4 batches of `m` rows.
absl::StatusOr<StripPlan> StripsOf(const CpuLevel& level, const std::string& type, int64_t m, int64_t n) {
  const std::string scores = absl::StrCat(type, "[4,", m, ",", n, "]"), other = absl::StrCat(type, "[4,", n, ",64]"),
                    rows = absl::StrCat(type, "[4,", m, ",64]");
  const auto module = ParseHlo(
      absl::StrCat("HloModule m\nrows {\n ROOT s = ", scores, " parameter(0)\n}\nENTRY e {\n q = ", rows,
                   " parameter(0)\n k = ", other, " parameter(1)\n v = ", other, " parameter(2)\n s = ", scores,
                   " dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
                   "rhs_contracting_dims={2}\n p = ",
                   scores, " fusion(s), kind=kCustom, calls=rows\n ROOT o = ", rows,
                   " dot(p, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
                   "rhs_contracting_dims={1}\n}\n"),
      "t.hlo");
  EXPECT_TRUE(module.ok()) << module.status();
  return PlanStrips(level, *(*module)->entry());
}

TEST(StripPlan, StripsStayInTheSecondCache) {
  const auto v3 = StripsOf(Avx2(), "f32", 1024, 1024), v4 = StripsOf(Avx512(), "f32", 1024, 1024),
             amx = StripsOf(Amx(), "bf16", 1024, 1024);
  ASSERT_TRUE(v3.ok() && v4.ok() && amx.ok()) << v3.status() << v4.status() << amx.status();
  EXPECT_THAT(v3->strips, Cut(64, 16, 0));
  EXPECT_THAT(v4->strips, Cut(128, 8, 0));
  EXPECT_EQ(v3->units, 64);
  // Both products and what is between them work on the same rows.
  for (const auto* plan : {&*v3, &*v4, &*amx}) {
    EXPECT_EQ(plan->first.units, plan->units);
    EXPECT_EQ(plan->second.units, plan->units);
    EXPECT_EQ(plan->first.blocked.rows.size, plan->strips.size);
    EXPECT_EQ(plan->second.blocked.rows.size, plan->strips.size);
    EXPECT_TRUE(plan->one_buffer);
  }
}

// More long rows are held than fit half of the cache: panels of the other operands have to pay.
TEST(StripPlan, LongRowsAreNotHeldOneByOne) {
  const auto long_rows = StripsOf(Avx2(), "f32", 512, 4096), longest = StripsOf(Avx2(), "f32", 512, 16384);
  ASSERT_TRUE(long_rows.ok() && longest.ok()) << long_rows.status() << longest.status();
  EXPECT_THAT(long_rows->strips, Cut(48, 11, 32));
  EXPECT_THAT(longest->strips, Cut(16, 32, 0));
}

// Three products of one A have units enough where one must cut its columns for several threads.
TEST(DotPlan, ProductsBesideEachOtherAreCutLess) {
  const auto m = Parse(
      "  x = f32[1,128,768] parameter(0)\n  y = f32[1,768,768] parameter(1)\n  ROOT d = f32[1,128,768] dot(x, y), "
      "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}");
  const auto one = PlanDot(Avx512(), m->entry()->root()), three = PlanDot(Avx512(), m->entry()->root(), {}, 3);
  ASSERT_TRUE(one.ok() && three.ok());
  EXPECT_LT(three->units, one->units);
  EXPECT_GE(3 * three->units, kEnoughUnits);
}

TEST(ChoicePlan, PlansTakeWhatWasMeasured) {
  const std::string dot =
      "  x = f32[1,2000,600] parameter(0)\n  y = f32[1,600,128] parameter(1)\n  ROOT d = f32[1,2000,128] dot(x, y), "
      "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}";
  const auto plan = [&](const CpuLevel& level, const std::string& choice) {
    const auto m = WithChoice(dot, choice);
    const BlockedDotPlan p = PlanDot(level, m->entry()->root())->blocked;
    return PlanMatmul(level, p.product, p.rows.size, 1);
  };
  EXPECT_EQ(plan(Avx512(), "v4=0").tile_columns, 4 * 16);
  EXPECT_EQ(plan(Avx512(), "v4=2").tile_columns, 2 * 16);
  EXPECT_EQ(plan(Avx512(), "v4=2").tile_rows, 12);
  EXPECT_EQ(plan(Avx512(), "v3=2").tile_columns, 4 * 16);  // of another level
  EXPECT_FALSE(plan(Avx512(), "v4=0").direct);
  EXPECT_TRUE(plan(Avx512(), "v4=7").direct);
  EXPECT_EQ(plan(Avx512(), "v4=8").panel_rows, 256);
  EXPECT_EQ(plan(Avx2(), "v3=5").tile_columns, 4 * 8);       // as wide as its registers allow
  EXPECT_EQ(plan(Avx512(), "v4=999").tile_columns, 4 * 16);  // unknown numbers decide nothing
}

TEST(ChoicePlan, ConvolutionsMayTakeLoops) {
  const std::string convolution =
      "  x = f32[1,16,16,16] parameter(0)\n  k = f32[3,3,16,16] parameter(1)\n  ROOT c = f32[1,16,16,16] "
      "convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f";
  EXPECT_EQ(PlanConvolution(Avx2(), WithChoice(convolution, "v3=0")->entry()->root())->algorithm,
            ConvolutionAlgorithm::kProducts);
  EXPECT_EQ(PlanConvolution(Avx2(), WithChoice(convolution, "v3=24")->entry()->root())->algorithm,
            ConvolutionAlgorithm::kDirect);
}

TEST(DotPlan, MultiplesOfLinesAreShared) {
  const auto units = [](int64_t k, int64_t n) {
    return DotOf(Avx512(), absl::StrCat("f32[1,1,", k, "]"), absl::StrCat("f32[1,", k, ",", n, "]"),
                 absl::StrCat("f32[1,1,", n, "]"))
        ->units;
  };
  EXPECT_EQ(units(256, 1024), 2);   // each part in a second cache
  EXPECT_EQ(units(64, 1024), 1);    // too little work
  EXPECT_EQ(units(4096, 4096), 2);  // as long as strips are
  EXPECT_EQ(units(3072, 768), 2);
  EXPECT_EQ(units(768, 5000), 4);  // not 2048, 2048 and 904
}

TEST(ConvolutionPlan, LargeKernelsAreReadByFewSlabs) {
  // 16 x 16 x 512 of f32 are 512 KiB: one slab for a kernel of 9 MiB.
  const auto p = ConvolutionOf(Avx512(), "f32[1,14,14,512]", "f32[3,3,512,512]", "f32[1,7,7,512]",
                               "size=3x3 stride=2x2 pad=1_1x1_1");
  EXPECT_EQ(p->pieces.count, 1);
}

TEST(DotPlan, LargeResultsOfShortSumsGoPastTheCaches) {
  const auto past = [](const CpuLevel& level, int64_t k, int64_t n) {
    return DotOf(level, absl::StrCat("f32[1,1024,", k, "]"), absl::StrCat("f32[1,", k, ",", n, "]"),
                 absl::StrCat("f32[1,1024,", n, "]"))
        ->blocked.past_caches;
  };
  EXPECT_TRUE(past(Avx512(), 16, 4096));
  EXPECT_FALSE(past(Avx512(), 64, 4096));
  EXPECT_FALSE(past(Avx512(), 16, 1024));  // which caches keep
  EXPECT_FALSE(past(Avx512(), 16, 4100));  // rows begin within lines
  EXPECT_FALSE(past(Avx2(), 16, 4096));
}

TEST(DotPlan, MixedFloatsTakePlainLoops) {
  const auto p = DotOf(Avx2(), "f64[3,8,8]", "f32[3,8,8]", "f32[3,8,8]");
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_EQ(p->algorithm, DotAlgorithm::kPlainLoops);
  EXPECT_EQ(p->sum, PrimitiveType::F32);
  EXPECT_EQ(p->units, 3);
}

TEST(DotPlan, IntegersAreSummedInWords) {
  EXPECT_EQ(DotOf(Avx2(), "s32[3,8,8]", "s32[3,8,8]", "s32[3,8,8]")->sum, PrimitiveType::S32);
  EXPECT_EQ(DotOf(Avx2(), "u64[3,8,8]", "u64[3,8,8]", "u64[3,8,8]")->sum, PrimitiveType::U64);
  const auto narrow = DotOf(Avx2(), "u8[3,8,8]", "s8[3,8,8]", "u8[3,8,8]");
  EXPECT_EQ(narrow->sum, PrimitiveType::F32);  // exact in blocks of k, which are added up in words
  EXPECT_EQ(narrow->blocked.tile_type, PrimitiveType::S32);
  EXPECT_TRUE(narrow->blocked.via_tile);
}

TEST(DotPlan, ComplexNumbersAreAProductOfTheirParts) {
  const auto p = DotOf(Avx2(), "c64[1,40,30]", "c64[1,30,20]", "c64[1,40,20]")->blocked;
  EXPECT_TRUE(p.product.complex_b);
  EXPECT_EQ(p.product.compute, PrimitiveType::F32);
  EXPECT_EQ(p.product.n, 2 * 20);
  EXPECT_EQ(p.product.run, 2 * 30);
  EXPECT_EQ(p.product.a_stride, 2 * 30);
  EXPECT_FALSE(p.pack_a);
  EXPECT_EQ(DotOf(Avx2(), "c64[1,4,3]", "c64[1,3,6]", "c64[1,4,6]")->algorithm, DotAlgorithm::kPlainLoops);
}

TEST(DotPlan, AnEmptySumIsAPlainLoop) {
  EXPECT_EQ(DotOf(Avx2(), "f32[1,4,0]", "f32[1,0,4]", "f32[1,4,4]")->algorithm, DotAlgorithm::kPlainLoops);
}

TEST(DotPlan, VectorsTakeTheContiguousDimensionOfTheMatrix) {
  const auto lines = DotOf(Avx2(), "f32[2,1001,64]", "f32[2,64,1]", "f32[2,1001,1]");
  EXPECT_EQ(lines->algorithm, DotAlgorithm::kDotsWithVector);
  EXPECT_TRUE(lines->vector.matrix_is_a);
  EXPECT_THAT(lines->vector.pieces, Cut(4, 251, 1));
  EXPECT_EQ(lines->units, 2 * 251);
  const auto strips = DotOf(Avx2(), "f32[1,1,64]", "f32[1,64,5000]", "f32[1,1,5000]");
  EXPECT_EQ(strips->algorithm, DotAlgorithm::kMultiplesOfLines);
  EXPECT_FALSE(strips->vector.matrix_is_a);
  EXPECT_THAT(strips->vector.pieces, Cut(1728, 3, 1544));
  EXPECT_EQ(DotOf(Avx2(), "f32[1,1,64]", "f32[1,64,100]", "f32[1,1,100]")->vector.pieces.size, 100);
}

TEST(DotPlan, SumsOfAVectorAreConvertedAtTheEnd) {
  const auto lines = DotOf(Avx512(), "bf16[1,1,768]", "bf16[1,768,32000]", "bf16[1,1,32000]", 2, 1);
  EXPECT_EQ(lines->algorithm, DotAlgorithm::kMultiplesOfLines);
  EXPECT_EQ(lines->sum, PrimitiveType::F32);
  EXPECT_EQ(DotOf(Avx2(), "f16[1,40,768]", "f16[1,768,1]", "f16[1,40,1]")->algorithm, DotAlgorithm::kDotsWithVector);
  // Integers are summed in blocks that f32 holds exactly.
  EXPECT_EQ(DotOf(Avx2(), "s8[1,40,768]", "s8[1,768,1]", "s32[1,40,1]")->algorithm, DotAlgorithm::kProducts);
}

TEST(DotPlan, LongSumsAreCut) {
  const auto whole = DotOf(Avx2(), "f32[1,8,1024]", "f32[1,1024,8]", "f32[1,8,8]")->blocked;
  EXPECT_THAT(whole.depth, Cut(1024, 1, 0));
  EXPECT_FALSE(whole.pack_a);
  const auto cut = DotOf(Avx2(), "f32[1,8,1100]", "f32[1,1100,8]", "f32[1,8,8]")->blocked;
  EXPECT_THAT(cut.depth, Cut(512, 2, 76));
}

TEST(DotPlan, AIsCopiedWhereItsRowsDoNotServe) {
  EXPECT_TRUE(DotOf(Avx2(), "f32[1,1024,64]", "f32[1,1024,64]", "f32[1,64,64]", 1, 1)->blocked.pack_a);
  EXPECT_TRUE(DotOf(Avx2(), "bf16[1,64,32]", "bf16[1,32,64]", "f32[1,64,64]")->blocked.pack_a);
  EXPECT_FALSE(DotOf(Avx2(), "f32[1,64,512]", "f32[1,512,64]", "f32[1,64,64]")->blocked.pack_a);
}

TEST(DotPlan, BlocksOfRowsFitTheSlab) {
  const auto p = DotOf(Avx2(), "f16[1,1000,512]", "f16[1,512,64]", "f32[1,1000,64]");
  EXPECT_TRUE(p->blocked.pack_a);
  EXPECT_LE(p->blocked.rows.size * p->blocked.slab_stride * 4, kSlabBytes);
  EXPECT_EQ(p->units, p->blocked.rows.count);
  EXPECT_EQ((p->units - 1) * p->blocked.rows.size + p->blocked.rows.tail, 1000);
}

TEST(DotPlan, ConvertedResultsGoThroughATile) {
  const auto p = DotOf(Avx2(), "bf16[1,32,64]", "bf16[1,64,48]", "bf16[1,32,48]");
  EXPECT_TRUE(p->blocked.via_tile);
  EXPECT_EQ(p->blocked.product.c_type, PrimitiveType::F32);
  EXPECT_THAT(p->blocked.columns, Cut(48, 1, 0));
  const auto wide = DotOf(Avx2(), "bf16[1,32,1]", "bf16[1,1,30000]", "bf16[1,32,30000]");
  EXPECT_THAT(wide->blocked.columns, Cut(2048, 14, 1328));
  EXPECT_EQ(wide->blocked.product.c_stride, 2048);
}

TEST(DotPlan, FewRowsAreSplitByColumns) {
  const auto p = DotOf(Avx512(), "f32[1,128,768]", "f32[1,768,2304]", "f32[1,128,2304]");
  EXPECT_EQ(p->blocked.rows.count, 1);
  EXPECT_THAT(p->blocked.parts, Cut(320, 8, 64));
  EXPECT_EQ(p->units, 8);
  // Two columns are no part of their own, and a small product is none for several threads.
  EXPECT_THAT(DotOf(Avx512(), "f32[1,64,4096]", "f32[1,4096,130]", "f32[1,64,130]")->blocked.parts, Cut(130, 1, 0));
  EXPECT_THAT(DotOf(Avx512(), "f32[1,64,32]", "f32[1,32,512]", "f32[1,64,512]")->blocked.parts, Cut(512, 1, 0));
}

TEST(DotPlan, FewColumnsAreSplitByRows) {
  const auto p = DotOf(Avx512(), "f32[1,512,768]", "f32[1,768,32]", "f32[1,512,32]");
  EXPECT_EQ(p->blocked.parts.count, 1);
  EXPECT_GE(p->units, 8);
  EXPECT_GE(p->blocked.rows.size, 48);
}

TEST(DotPlan, ResultsWaitForAnEpilogueInTheSecondCache) {
  using P = PrimitiveType;
  const auto m = Parse(
      "  x = f32[1,1000,64] parameter(0)\n  y = f32[1,64,1000] parameter(1)\n  ROOT d = f32[1,1000,1000] dot(x, y), "
      "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}");
  const Instruction* dot = m->entry()->root();
  const auto plain = PlanDot(Avx512(), dot)->blocked;
  EXPECT_THAT(plain.columns, Cut(plain.parts.size, 1, 0));
  const auto in_place = PlanDot(Avx512(), dot, P::S32)->blocked;
  EXPECT_FALSE(in_place.via_tile);
  EXPECT_LE(in_place.rows.size * in_place.columns.size * 4, kSlabBytes);
  EXPECT_EQ(in_place.product.c_stride, 1000);
  const auto narrower = PlanDot(Avx512(), dot, P::BF16)->blocked;
  EXPECT_TRUE(narrower.via_tile);
  EXPECT_EQ(narrower.product.c_stride, narrower.columns.size);
}

TEST(DotPlan, TileProductsTakeWhatTheirTypesAllow) {
  const auto plain = DotOf(Amx(), "s8[1,4100,1024]", "s8[1,1024,64]", "s32[1,4100,64]")->blocked;
  EXPECT_TRUE(plain.product.tiles);
  EXPECT_EQ(plain.held, PrimitiveType::S8);
  EXPECT_FALSE(plain.pack_a);
  EXPECT_EQ(DotOf(Avx512(), "s8[1,4100,1024]", "s8[1,1024,64]", "s32[1,4100,64]")->blocked.held, PrimitiveType::F32);
  // Words of four bytes are what tiles are made of, and one row of a tile is the least.
  EXPECT_TRUE(DotOf(Amx(), "bf16[1,40,34]", "bf16[1,34,40]", "f32[1,40,40]")->blocked.product.tiles);
  EXPECT_FALSE(DotOf(Amx(), "bf16[1,40,35]", "bf16[1,35,40]", "f32[1,40,40]")->blocked.product.tiles);
  EXPECT_FALSE(DotOf(Amx(), "bf16[1,40,30]", "bf16[1,30,40]", "f32[1,40,40]")->blocked.product.tiles);
  EXPECT_FALSE(DotOf(Amx(), "bf16[1,40,64]", "bf16[1,64,8]", "f32[1,40,8]")->blocked.product.tiles);
}

TEST(DotPlan, TilesMultiplyThePartsOfF16) {
  const auto p = DotOf(Amx(), "f16[1,600,1100]", "f16[1,1100,300]", "f16[1,600,300]")->blocked;
  EXPECT_TRUE(p.parts_of_f16);
  EXPECT_TRUE(p.via_tile);
  EXPECT_EQ(p.held, PrimitiveType::BF16);
  EXPECT_THAT(p.depth, Cut(512, 2, 76));
  EXPECT_GE(p.slab_stride, 2 * 512);
  EXPECT_FALSE(DotOf(Avx512Dot(), "f16[1,600,1100]", "f16[1,1100,300]", "f16[1,600,300]")->blocked.parts_of_f16);
  EXPECT_FALSE(DotOf(Amx(), "f16[1,60,1100]", "f16[1,1100,300]", "f16[1,60,300]")->blocked.parts_of_f16);
  EXPECT_FALSE(DotOf(Amx(), "f16[1,600,1101]", "f16[1,1101,300]", "f16[1,600,300]")->blocked.parts_of_f16);
  EXPECT_FALSE(DotOf(Amx(), "f32[1,600,1100]", "f16[1,1100,300]", "f32[1,600,300]")->blocked.parts_of_f16);
}

TEST(DotPlan, ShortSumsOfF16AreF16) {
  const char *a = "f16[1,600,1100]", *b = "f16[1,1100,300]", *c = "f16[1,600,300]";
  const auto p = DotOf(Avx512Fp16(), a, b, c)->blocked;
  EXPECT_TRUE(p.pairs_of_f16);
  EXPECT_TRUE(p.pack_a);
  EXPECT_TRUE(p.via_tile);
  EXPECT_EQ(p.tile_type, PrimitiveType::F32);
  EXPECT_EQ(p.product.compute, PrimitiveType::F16);
  EXPECT_EQ(p.product.c_type, PrimitiveType::F32);
  EXPECT_EQ(PlanMatmul(Avx512Fp16(), p.product, p.rows.size, 1).lanes, 32);
  EXPECT_FALSE(DotOf(Avx512(), a, b, c)->blocked.pairs_of_f16);
  EXPECT_FALSE(DotOf(Avx512Fp16(), a, b, "f32[1,600,300]")->blocked.pairs_of_f16);
  EXPECT_FALSE(DotOf(Avx512Fp16(), "f32[1,600,1100]", b, c)->blocked.pairs_of_f16);
  EXPECT_FALSE(DotOf(Avx512Fp16(), "f16[1,600,63]", "f16[1,63,300]", c)->blocked.pairs_of_f16);
  EXPECT_FALSE(DotOf(Avx512Fp16(), "f16[1,15,1100]", b, "f16[1,15,300]")->blocked.pairs_of_f16);
  for (const char* more : {"operand_precision={highest,highest}", "operand_precision={high,default}",
                           "algorithm=dot_f16_f16_f32", "algorithm=dot_any_f8_any_f8_f32"})
    EXPECT_FALSE(DotOf(Avx512Fp16(), a, b, c, 2, 1, more)->blocked.pairs_of_f16) << more;
  EXPECT_TRUE(DotOf(Avx512Fp16(), a, b, c, 2, 1, "algorithm=dot_f16_f16_f16")->blocked.pairs_of_f16);
}

TEST(MatmulPlan, TilesSumWhatFillsNoRowOfATileApart) {
  const auto plan = [](const char* a, const char* b, const char* c) {
    const auto p = DotOf(Amx(), a, b, c)->blocked;
    return PlanMatmul(Amx(), p.product, p.rows.size, 1);
  };
  const MatmulPlan odd = plan("bf16[1,40,1202]", "bf16[1,1202,40]", "f32[1,40,40]");
  ASSERT_EQ(odd.blocks.size(), 3);
  EXPECT_EQ(odd.blocks[0].run, 512);
  EXPECT_EQ(odd.blocks[0].pieces, 2);
  EXPECT_EQ(odd.blocks[1].run, 160);
  EXPECT_EQ(odd.blocks[2].run, 18);
  EXPECT_EQ(odd.blocks[2].start, 1184);
  // Panels for many columns lie in the second cache.
  const MatmulPlan wide = plan("s8[1,64,1024]", "s8[1,1024,8192]", "s32[1,64,8192]");
  EXPECT_EQ(wide.blocks.size(), 1);
  EXPECT_EQ(wide.span, 512);
}

TEST(MatmulPlan, PanelsOfAFarBAreMadeTogether) {
  const auto plan = [](const char* a, const char* b, const char* c, int rhs = 1) {
    const auto p = DotOf(Avx512(), a, b, c, 2, rhs)->blocked;
    return PlanMatmul(Avx512(), p.product, p.rows.size, 1);
  };
  // All rows share them, and threads share the columns.
  const auto rows = [](const char* a, const char* b, const char* c) {
    return DotOf(Avx512(), a, b, c, 2, 1)->blocked.rows.size;
  };
  EXPECT_EQ(rows("f32[1,1024,1024]", "f32[1,1024,1024]", "f32[1,1024,1024]"), 1024);
  EXPECT_LT(rows("f32[1,2048,2048]", "f32[1,2048,192]", "f32[1,2048,192]"), 768);
  EXPECT_LE(rows("f32[1,2048,256]", "f32[1,256,256]", "f32[1,2048,256]"), 768);
  const MatmulPlan far = plan("f32[1,1024,1024]", "f32[1,1024,1024]", "f32[1,1024,1024]");
  EXPECT_EQ(far.tile_columns, 64);
  EXPECT_EQ(far.span, 2 * 64);
  // No more than fit into a part of the second cache, and into the part of B.
  EXPECT_EQ(plan("f64[1,1024,1024]", "f64[1,1024,1024]", "f64[1,1024,1024]").span, 4 * 32);
  EXPECT_EQ(plan("f32[1,2048,2048]", "f32[1,2048,192]", "f32[1,2048,192]").span, 2 * 64);
  // A near B, few rows, and columns that lie apart.
  EXPECT_EQ(plan("f32[1,2048,256]", "f32[1,256,256]", "f32[1,2048,256]").span, 64);
  EXPECT_EQ(plan("f32[1,96,1024]", "f32[1,1024,1024]", "f32[1,96,1024]").span, 64);
  EXPECT_EQ(plan("f32[1,1024,1024]", "f32[1,1024,1024]", "f32[1,1024,1024]", 2).span, 64);
}

TEST(DotPlan, OtherFormsAreABug) {
  const auto m = Parse(
      "  x = f32[4,4] parameter(0)\n  ROOT d = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  EXPECT_EQ(PlanDot(Avx2(), m->entry()->root()).status().code(), absl::StatusCode::kInternal);
}

TEST(ConvolutionPlan, DepthwiseIsDirect) {
  const auto p = ConvolutionOf(Avx2(), "f32[2,16,16,8]", "f32[3,3,1,8]", "f32[2,14,14,8]", "size=3x3", 8);
  EXPECT_EQ(p->algorithm, ConvolutionAlgorithm::kDirect);
  EXPECT_EQ(p->units, 2 * 14 * 14);
}

TEST(ConvolutionPlan, AWindowReversedInOneDimensionIsDirect) {
  const auto mixed = ConvolutionOf(Avx2(), "f32[1,8,8,4]", "f32[3,3,4,4]", "f32[1,6,6,4]", "size=3x3 rhs_reversal=1x0");
  EXPECT_EQ(mixed->algorithm, ConvolutionAlgorithm::kDirect);
  const auto both = ConvolutionOf(Avx2(), "f32[1,8,8,4]", "f32[3,3,4,4]", "f32[1,6,6,4]", "size=3x3 rhs_reversal=1x1");
  EXPECT_EQ(both->algorithm, ConvolutionAlgorithm::kProducts);
  EXPECT_TRUE(both->product.reverse_b);
  EXPECT_EQ(both->product.run, 4);  // taps are not merged
  EXPECT_THAT(both->product.segments, ElementsAre(Walks(3, 8 * 4), Walks(3, 4)));
}

TEST(ConvolutionPlan, TooManyFeaturesAreRefused) {
  const auto p = ConvolutionOf(Avx2(), "c64[1,2,2,1]", "c64[1,1,1,70000]", "c64[1,2,2,70000]", "size=1x1");
  EXPECT_EQ(p.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(p.status().message(), HasSubstr("70000 output features"));
}

TEST(ConvolutionPlan, OneElementWindowsAreAProductOfPixels) {
  const auto p = ConvolutionOf(Avx2(), "f32[2,16,16,64]", "f32[1,1,64,32]", "f32[2,16,16,32]", "size=1x1");
  EXPECT_EQ(p->algorithm, ConvolutionAlgorithm::kPointwise);
  EXPECT_EQ(p->product.run, 64);
  EXPECT_THAT(p->pieces, Cut(512, 1, 0));
  const auto strided =
      ConvolutionOf(Avx2(), "f32[2,16,16,64]", "f32[1,1,64,32]", "f32[2,8,8,32]", "size=1x1 stride=2x2");
  EXPECT_EQ(strided->algorithm, ConvolutionAlgorithm::kProducts);
  EXPECT_FALSE(strided->slab.pack);
}

TEST(ConvolutionPlan, TapsAreSegmentsAndTheLastDimensionMerges) {
  const auto p = ConvolutionOf(Avx2(), "f32[1,16,16,8]", "f32[3,3,8,4]", "f32[1,14,14,4]", "size=3x3");
  EXPECT_FALSE(p->slab.pack);
  EXPECT_EQ(p->product.run, 3 * 8);
  EXPECT_THAT(p->product.segments, ElementsAre(Walks(3, 16 * 8)));
  EXPECT_THAT(p->pieces, Cut(14, 1, 0));
  const auto apart =
      ConvolutionOf(Avx2(), "f32[1,16,16,8]", "f32[3,3,8,4]", "f32[1,12,12,4]", "size=3x3 rhs_dilate=2x2");
  EXPECT_EQ(apart->product.run, 8);
  EXPECT_THAT(apart->product.segments, ElementsAre(Walks(3, 2 * 16 * 8), Walks(3, 2 * 8)));
}

TEST(ConvolutionPlan, PaddingAndDilationAreCopiedIntoSlabs) {
  const auto p = ConvolutionOf(Avx2(), "f32[1,64,64,64]", "f32[3,3,64,4]", "f32[1,64,64,4]", "size=3x3 pad=1_1x1_1");
  EXPECT_TRUE(p->slab.pack);
  EXPECT_THAT(p->slab.extent, ElementsAre(66, 66));
  EXPECT_EQ(p->slab.stride[0], 66 * 64);
  // Halved until the lines that they read take no more than a slab.
  EXPECT_LE((p->pieces.size + 2) * 66 * 64 * 4, kSlabBytes);
  EXPECT_EQ(p->units, p->pieces.count);
  EXPECT_FALSE(p->slab.in_arena);
}

TEST(ConvolutionPlan, InputsInAnotherOrderAreCopiedIntoSlabs) {
  const auto p =
      ConvolutionOf(Avx2(), "f32[2,8,16,24]", "f32[3,3,8,4]", "f32[2,14,22,4]", "size=3x3", 1, "bf01_01io->b01f");
  EXPECT_TRUE(p->slab.pack);
  EXPECT_THAT(p->shape.in, ElementsAre(16, 24));
  EXPECT_THAT(p->shape.position_stride, ElementsAre(24, 1));
  EXPECT_EQ(p->shape.feature_stride, 16 * 24);
  EXPECT_EQ(p->slab.stride[0], 24 * 8);
  const auto pixels =
      ConvolutionOf(Avx2(), "f32[2,64,16,16]", "f32[1,1,64,32]", "f32[2,16,16,32]", "size=1x1", 1, "bf01_01io->b01f");
  EXPECT_EQ(pixels->algorithm, ConvolutionAlgorithm::kProducts);
  EXPECT_TRUE(pixels->slab.pack);
  EXPECT_THAT(pixels->shape.in, ElementsAre(1, 256));  // lines are joined
}

TEST(ConvolutionPlan, ImagesOfFewPositionsShareASlab) {
  const std::string window = "size=3x3 pad=1_1x1_1";
  const auto p = ConvolutionOf(Avx2(), "f32[8,4,4,128]", "f32[3,3,128,128]", "f32[8,4,4,128]", window);
  EXPECT_EQ(p->shape.batch, 1);
  EXPECT_THAT(p->shape.in, ElementsAre(8, 4, 4));
  EXPECT_THAT(p->slab.extent, ElementsAre(8, 6, 6));
  EXPECT_EQ(p->slab.window_lines, 1);
  EXPECT_THAT(p->pieces, Cut(8, 1, 0));  // in images
  const auto many = ConvolutionOf(Avx2(), "f32[8,16,16,16]", "f32[3,3,16,16]", "f32[8,16,16,16]", window);
  EXPECT_EQ(many->shape.batch, 8);
  const auto small = ConvolutionOf(Avx2(), "f32[8,4,4,128]", "f32[3,3,128,2]", "f32[8,4,4,2]", window);
  EXPECT_EQ(small->shape.batch, 8);  // of its kernel
}

TEST(ConvolutionPlan, SlabsThatNoStackHoldsAreInTheArena) {
  const char *x = "f32[2,8,4096,64]", *k = "f32[3,3,64,4]", *o = "f32[2,8,4096,4]", *w = "size=3x3 pad=1_1x1_1";
  const auto p = ConvolutionOf(Avx2(), x, k, o, w);
  EXPECT_TRUE(p->slab.in_arena);
  EXPECT_THAT(p->pieces, Cut(4, 2, 0));  // at most twice the lines of one window
  EXPECT_EQ(p->units, 1);
  const auto m = Parse(absl::StrCat("  x = ", x, " parameter(0)\n  k = ", k, " parameter(1)\n  ROOT c = ", o,
                                    " convolution(x, k), window={", w, "}, dim_labels=b01f_01io->b01f"));
  EXPECT_EQ(ConvolutionScratchBytes(m->entry()->root()), 6 * 4098 * 64 * 4);
  EXPECT_EQ(p->slab.elements * 4, 6 * 4098 * 64 * 4);
}

MatmulShape ProductOf(PrimitiveType b, PrimitiveType c, int64_t n, int64_t run, std::vector<Segment> segments = {}) {
  MatmulShape s{};
  s.compute = PrimitiveType::F32;
  s.b_type = b;
  s.c_type = c;
  s.n = n;
  s.run = run;
  s.segments = std::move(segments);
  s.b_k_stride = n;
  s.b_n_stride = 1;
  return s;
}

TEST(MatmulPlan, TilesFillTheRegisters) {
  const auto f = PrimitiveType::F32;
  const MatmulPlan v3 = PlanMatmul(Avx2(), ProductOf(f, f, 64, 100), 48, 1);
  EXPECT_EQ(v3.lanes, 8);
  EXPECT_EQ(v3.tile_columns, 16);
  EXPECT_EQ(v3.tile_rows, 6);
  const MatmulPlan v4 = PlanMatmul(Avx512(), ProductOf(f, f, 64, 100), 100, 1);
  EXPECT_EQ(v4.tile_columns, 64);
  EXPECT_EQ(v4.tile_rows, 6);
  EXPECT_EQ(PlanMatmul(Avx512(), ProductOf(f, f, 144, 100), 100, 1).tile_columns, 48);  // 9 vectors are 3 times 3
  const MatmulPlan few = PlanMatmul(Avx512(), ProductOf(f, f, 64, 100), 16, 1);
  EXPECT_EQ(few.tile_columns, 32);
  EXPECT_EQ(few.tile_rows, 8);                                                            // two of 8, not 12 and 4
  EXPECT_EQ(PlanMatmul(Avx512(), ProductOf(f, f, 200, 100), 4, 1).tile_columns, 5 * 16);  // 5, 5, 3, not 6, 6, 1
}

TEST(MatmulPlan, LongSumsAreBlocks) {
  const auto f = PrimitiveType::F32;
  const MatmulPlan one = PlanMatmul(Avx2(), ProductOf(f, f, 64, 512), 64, 1);
  ASSERT_EQ(one.blocks.size(), 1u);
  EXPECT_EQ(one.panel_rows, 512);
  const MatmulPlan cut = PlanMatmul(Avx2(), ProductOf(f, f, 64, 1100), 64, 1);
  ASSERT_EQ(cut.blocks.size(), 2u);
  EXPECT_EQ(cut.blocks[0].pieces, 2);
  EXPECT_EQ(cut.blocks[1].run, 1100 - 1024);
  EXPECT_EQ(cut.blocks[1].start, 1024);
  const MatmulPlan peeled = PlanMatmul(Avx2(), ProductOf(f, f, 64, 192, {{3, 1000}, {2, 100}}), 64, 1);
  EXPECT_THAT(peeled.outer, ElementsAre(Walks(3, 1000)));
  EXPECT_EQ(peeled.period, 384);
  EXPECT_EQ(peeled.repeat, 3);
  EXPECT_THAT(peeled.blocks[0].segments, ElementsAre(Walks(2, 100)));
}

TEST(MatmulPlan, PanelsStayInTheFirstCacheWhereResultsStayInTheSecond) {
  const auto f = PrimitiveType::F32;
  const auto rows_of_panel = [&](int64_t n, int64_t k, int64_t rows, const CpuLevel& level = Avx512()) {
    MatmulShape s = ProductOf(f, f, n, k);
    s.c_stride = n;
    s.a_stride = k;
    return PlanMatmul(level, s, rows, 1).panel_rows;
  };
  EXPECT_EQ(rows_of_panel(3072, 768, 256), 128);
  EXPECT_EQ(rows_of_panel(3072, 768, 512), 768);  // rows that lie 12 KiB apart share places
  EXPECT_EQ(rows_of_panel(1088, 768, 512), 128);
  EXPECT_EQ(rows_of_panel(1088, 1024, 512), 1024);  // A is too large
  EXPECT_EQ(rows_of_panel(1088, 1100, 512), 512);   // and a tile's rows beyond the first cache
  EXPECT_EQ(rows_of_panel(1088, 512, 256), 512);    // one sum
  EXPECT_EQ(rows_of_panel(1088, 576, 256), 128);
  EXPECT_EQ(rows_of_panel(1088, 576, 256, Avx512Dot()), 576);  // half the products in a cycle
  EXPECT_EQ(rows_of_panel(1088, 704, 256, Avx512Dot()), 128);
}

TEST(MatmulPlan, BlocksOfBytesStayExactAndConvertedSumsWhole) {
  using P = PrimitiveType;
  EXPECT_EQ(PlanMatmul(Avx2(), ProductOf(P::U8, P::S32, 64, 5000), 64, 1).panel_rows, 256);
  EXPECT_EQ(PlanMatmul(Avx2(), ProductOf(P::S8, P::S32, 64, 5000), 64, 1).panel_rows, 1024);
  MatmulShape mixed = ProductOf(P::S8, P::S32, 64, 5000);
  mixed.a_type = P::U8;
  EXPECT_EQ(PlanMatmul(Avx2(), mixed, 64, 1).panel_rows, 256);
  const MatmulPlan whole = PlanMatmul(Avx2(), ProductOf(P::BF16, P::BF16, 64, 2000), 64, 1);
  EXPECT_EQ(whole.panel_rows, 2000);
  EXPECT_THAT(whole.outer, IsEmpty());
}

TEST(MatmulPlan, DotInstructionsTakeGroupsOfK) {
  using P = PrimitiveType;
  EXPECT_EQ(HeldInGroups(Avx512Dot(), P::BF16, P::F8E4M3FN, P::F32), P::BF16);
  EXPECT_EQ(HeldInGroups(Avx512Dot(), P::S4, P::U8, P::S32), P::S8);
  EXPECT_EQ(HeldInGroups(Avx512Dot(), P::U8, P::S8, P::S32), P::U8);
  EXPECT_EQ(HeldInGroups(Avx512Dot(), P::F16, P::F16, P::F32), std::nullopt);
  EXPECT_EQ(HeldInGroups(Avx512Dot(), P::BF16, P::F8E8M0FNU, P::F32), std::nullopt);
  EXPECT_EQ(HeldInGroups(Avx512(), P::BF16, P::BF16, P::F32), std::nullopt);
  MatmulShape bytes = ProductOf(P::S8, P::S32, 64, 5001);
  bytes.compute = P::S8;
  const MatmulPlan p = PlanMatmul(Avx512Dot(), bytes, 64, 1);
  EXPECT_EQ(p.lanes, 16);
  EXPECT_EQ(p.panel_rows, 128);
  EXPECT_EQ(p.blocks[0].run, 512);
  EXPECT_FALSE(p.direct);
  EXPECT_EQ(OffsetOfB(bytes), -128);
  bytes.b_type = P::U8;
  EXPECT_EQ(OffsetOfB(bytes), 0);
}

TEST(MatmulPlan, BIsReadInPlaceForFewRows) {
  const auto f = PrimitiveType::F32;
  EXPECT_TRUE(PlanMatmul(Avx2(), ProductOf(f, f, 64, 100), 6, 2).direct);
  EXPECT_FALSE(PlanMatmul(Avx2(), ProductOf(f, f, 64, 100), 6, 100).direct);
  EXPECT_FALSE(PlanMatmul(Avx2(), ProductOf(f, f, 64, 100), 6, std::nullopt).direct);
  EXPECT_FALSE(PlanMatmul(Avx2(), ProductOf(f, f, 60, 100), 6, 2).direct);
  EXPECT_FALSE(PlanMatmul(Avx2(), ProductOf(PrimitiveType::BF16, f, 64, 100), 6, 2).direct);
}

// Down the columns of a large B each step is in another page.
TEST(MatmulPlan, ALargeBIsCopiedForMoreThanTwelveRows) {
  const auto f = PrimitiveType::F32;
  EXPECT_TRUE(PlanMatmul(Avx512(), ProductOf(f, f, 1024, 1024), 12, 1).direct);
  const MatmulPlan p = PlanMatmul(Avx512(), ProductOf(f, f, 1024, 1024), 13, 1);
  EXPECT_FALSE(p.direct);
  EXPECT_EQ(p.tile_columns, 64);
  EXPECT_TRUE(PlanMatmul(Avx512(), ProductOf(f, f, 256, 1024), 56, 1).direct);
  EXPECT_FALSE(PlanMatmul(Avx512(), ProductOf(f, f, 256, 1024), 57, 1).direct);
}

// Rows that are as long as those of a panel are one.
TEST(MatmulPlan, BThatIsAPanelIsReadInPlace) {
  const auto f = PrimitiveType::F32;
  EXPECT_TRUE(PlanMatmul(Avx512(), ProductOf(f, f, 64, 100), 100, 100).direct);
  EXPECT_TRUE(PlanMatmul(Avx512(), ProductOf(f, f, 96, 100), 100, 100).direct);
  EXPECT_FALSE(PlanMatmul(Avx512(), ProductOf(f, f, 128, 100), 100, 100).direct);
  EXPECT_FALSE(PlanMatmul(Avx512(), ProductOf(PrimitiveType::BF16, f, 64, 100), 100, 100).direct);
}

}  // namespace
}  // namespace kiln::cpu
