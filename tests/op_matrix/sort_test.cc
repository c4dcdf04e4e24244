// Sorts of every type of key, with and without other arrays, along both dimensions, with equal keys, zeros of both
// signs and NaNs, in rows below and above the length from which digits are sorted, on CPUs and GPUs. Against the
// evaluator, bit for bit: equal keys keep their order. And what comparators are an order of keys.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "aot/tools/program.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/sort_key.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

std::string Comparator(const std::string& name, const std::string& type, const std::string& compare, bool alone) {
  const std::string other = alone ? "" : " v = s32[] parameter(2)\n w = s32[] parameter(3)\n";
  return absl::StrCat(name, " {\n a = ", type, "[] parameter(0)\n b = ", type, "[] parameter(1)\n", other,
                      " ROOT c = pred[] compare(a, b), direction=", compare, "\n}\n");
}

void ExpectAsReference(const std::string& text, const std::string& what) {
  auto module = ParseHlo(text, "t.hlo");
  ASSERT_TRUE(module.ok()) << module.status() << text;
  const std::vector<Values> arguments = {SeededValues(**module, 11)};
  CompileOptions compile;
  compile.cpu.levels = {"native"};
  RunOptions run;
  run.threads = 2;
  run.check_accesses = true;
  const auto got = RunProgram(**module, arguments, compile, run);
  run.backend = "gpu-emulated";
  const auto on_gpu = RunProgram(**module, arguments, compile, run);
  run.backend = "reference";
  const auto want = RunProgram(**module, arguments, compile, run);
  ASSERT_TRUE(got.ok() && on_gpu.ok() && want.ok()) << text << got.status() << on_gpu.status() << want.status();
  for (const auto* values : {&*got, &*on_gpu}) {
    const absl::Status same = SameValues((*values)[0], (*want)[0], {0, 0});
    EXPECT_TRUE(same.ok()) << what << (values == &*got ? ": " : " on GPUs: ") << same;
  }
}

// Keys of `type` in rows of `n`, and their order by `compare`.
struct Case {
  std::string type, compare;
  bool nans;
};

void ExpectSorted(const Case& c, int64_t n, bool turned) {
  const bool is_float = c.type[0] == 'f' || c.type[0] == 'b';
  const std::string dims = turned ? absl::StrCat("[", n, ",3]") : absl::StrCat("[3,", n, "]");
  const std::string scale = is_float ? "3" : "70";
  const auto array = [&](const std::string& type) { return type + dims; };
  const std::string bits = absl::StrCat("u", c.type == "bf16" ? "16" : c.type.substr(1));
  std::string text = absl::StrCat(
      "HloModule m\n", Comparator("one", c.type, c.compare, true), Comparator("two", c.type, c.compare, false),
      "ENTRY e {\n x = ", array("f32"), " parameter(0)\n s = f32[] constant(", scale, ")\n m = ", array("f32"),
      " broadcast(s), dimensions={}\n y = ", array("f32"), " multiply(x, m)\n z = ", array("f32"),
      " round-nearest-even(y)\n big = ", array("pred"), " compare(z, m), direction=GT\n q = f32[] constant(",
      c.nans ? "nan" : "1", ")\n nan = ", array("f32"), " broadcast(q), dimensions={}\n f = ", array("f32"),
      " select(big, nan, z)\n k = ", array(c.type), " convert(", is_float ? "f" : "z", ")\n i = ", array("s32"),
      " iota(), iota_dimension=", turned ? 0 : 1, "\n");
  const std::string along = absl::StrCat("dimensions={", turned ? 0 : 1, "}, is_stable=true, to_apply=");
  absl::StrAppend(&text, " r = ", array(c.type), " sort(k), ", along, "one\n p = (", array(c.type), ", ", array("s32"),
                  ") sort(k, i), ", along, "two\n p0 = ", array(c.type),
                  " get-tuple-element(p), index=0\n p1 = ", array("s32"), " get-tuple-element(p), index=1\n");
  if (is_float)
    absl::StrAppend(&text, " rb = ", array(bits), " bitcast-convert(r)\n pb = ", array(bits),
                    " bitcast-convert(p0)\n ROOT t = (", array(bits), ", ", array(bits), ", ", array("s32"),
                    ") tuple(rb, pb, p1)\n}\n");
  else
    absl::StrAppend(&text, " ROOT t = (", array(c.type), ", ", array(c.type), ", ", array("s32"),
                    ") tuple(r, p0, p1)\n}\n");
  ExpectAsReference(text, absl::StrCat(c.type, " ", c.compare, " ", dims));
}

TEST(Sort, KeysOfEveryType) {
  int count = 0;
  for (const Case& c :
       {Case{"f32", "LT, type=TOTALORDER", true}, Case{"f32", "GT, type=TOTALORDER", true}, Case{"f32", "LT", false},
        Case{"f32", "GT", false}, Case{"f64", "GT, type=TOTALORDER", true}, Case{"f64", "LT", false},
        Case{"f16", "LT, type=TOTALORDER", true}, Case{"bf16", "GT, type=TOTALORDER", true}, Case{"s8", "LT", false},
        Case{"u8", "GT", false}, Case{"s16", "GT", false}, Case{"u32", "LT", false}, Case{"s32", "GT", false},
        Case{"s64", "LT", false}, Case{"u64", "GT", false}})
    for (const int64_t n : {2, 63, 64, 300}) ExpectSorted(c, n, ++count % 2 == 0);
}

// Rows by a key of type `a`, equal ones by one of type `b`, and equal ones of that by the sign of their place.
void ExpectSortedBySeveral(const std::string& a, const std::string& b, int64_t n, bool turned) {
  const std::string dims = turned ? absl::StrCat("[", n, ",3]") : absl::StrCat("[3,", n, "]");
  const auto array = [&](const std::string& type) { return type + dims; };
  const auto test = [&](const std::string& name, const std::string& type, int side, const std::string& order) {
    const std::string total = type[0] == 'f' ? ", type=TOTALORDER" : "";
    return absl::StrCat(" ", name, " = pred[] compare(p", side, ", p", side + 1, "), direction=", order, total, "\n");
  };
  std::string text = "HloModule m\nless {\n";
  const std::string types[] = {a, b, "s32"};
  for (size_t k = 0; k < 6; ++k) absl::StrAppend(&text, " p", k, " = ", types[k / 2], "[] parameter(", k, ")\n");
  absl::StrAppend(
      &text, test("fa", a, 0, "LT"), test("ea", a, 0, "EQ"), test("fb", b, 2, "GT"), test("eb", b, 2, "EQ"),
      " sp = s32[] sign(p4)\n sq = s32[] sign(p5)\n fs = pred[] compare(sp, sq), direction=LT\n",
      " ab = pred[] and(eb, fs)\n ob = pred[] or(fb, ab)\n aa = pred[] and(ea, ob)\n",
      " ROOT r = pred[] or(fa, aa)\n}\nENTRY e {\n x = ", array("f32"), " parameter(0)\n y = ", array("f32"),
      " parameter(1)\n two = f32[] constant(2)\n s = ", array("f32"),
      " broadcast(two), dimensions={}\n xs = ", array("f32"), " multiply(x, s)\n ys = ", array("f32"),
      " multiply(y, s)\n xr = ", array("f32"), " round-nearest-even(xs)\n yr = ", array("f32"),
      " round-nearest-even(ys)\n a = ", array(a), " convert(xr)\n b = ", array(b), " convert(yr)\n at = ", array("s32"),
      " iota(), iota_dimension=", turned ? 0 : 1, "\n half = s32[] constant(", n / 2, ")\n h = ", array("s32"),
      " broadcast(half), dimensions={}\n c = ", array("s32"), " subtract(h, at)\n ROOT t = (", array(a), ", ", array(b),
      ", ", array("s32"), ") sort(a, b, c), dimensions={", turned ? 0 : 1, "}, is_stable=true, to_apply=less\n}\n");
  ExpectAsReference(text, absl::StrCat(a, " ", b, " ", dims));
}

TEST(Sort, SeveralKeys) {
  int count = 0;
  for (const auto& [a, b] : {std::pair<const char*, const char*>{"s8", "f32"},
                             {"f32", "u16"},
                             {"f64", "s32"},
                             {"s32", "s64"},
                             {"u64", "f64"},
                             {"bf16", "s8"}})
    for (const int64_t n : {63, 64, 300}) ExpectSortedBySeveral(a, b, n, ++count % 2 == 0);
}

std::vector<SortKey> KeysOf(const std::string& body) {
  static std::vector<std::unique_ptr<Module>> modules;
  auto m = ParseHlo(absl::StrCat("HloModule m\nc {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n v = s32[] "
                                 "parameter(2)\n w = s32[] parameter(3)\n",
                                 body,
                                 "\n}\nENTRY e {\n x = f32[9] parameter(0)\n y = s32[9] parameter(1)\n ROOT s = "
                                 "(f32[9], s32[9]) sort(x, y), dimensions={0}, to_apply=c\n}\n"),
                    "t.hlo");
  EXPECT_TRUE(m.ok()) << m.status();
  modules.push_back(std::move(*m));
  return KeysOfSort(modules.back()->entry()->root());
}

// Sorts of one form: the first is given places, as random permutations are made, and the others what it gives.
TEST(Sort, OfWhatASortOfPlacesGives) {
  for (const char* n : {"16", "300", "3000"})
    ExpectAsReference(
        absl::StrReplaceAll("HloModule m\nless {\n a = u32[] parameter(0)\n b = u32[] parameter(1)\n v = "
                            "s32[] parameter(2)\n w = s32[] parameter(3)\n ROOT c = pred[] compare(a, b), "
                            "direction=LT\n}\nENTRY e {\n k = u32[N] parameter(0)\n l = u32[N] parameter(1)\n "
                            "i = s32[N] iota(), iota_dimension=0\n s = (u32[N], s32[N]) sort(k, i), "
                            "dimensions={0}, is_stable=true, to_apply=less\n p = s32[N] get-tuple-element(s), "
                            "index=1\n t = (u32[N], s32[N]) sort(l, p), dimensions={0}, is_stable=true, "
                            "to_apply=less\n q = s32[N] get-tuple-element(t), index=1\n m = s32[N] negate(q)\n "
                            "u = (u32[N], s32[N]) sort(k, m), dimensions={0}, is_stable=true, to_apply=less\n "
                            "o = s32[N] get-tuple-element(u), index=1\n ROOT r = (s32[N], s32[N], s32[N]) "
                            "tuple(p, q, o)\n}\n",
                            {{"[N]", absl::StrCat("[", n, "]")}}),
        absl::StrCat("sorts of ", n));
}

TEST(SortKey, OneOperandsOrder) {
  const auto second = KeysOf(" ROOT r = pred[] compare(w, v), direction=LT");
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].operand, 1);
  EXPECT_TRUE(second[0].descending);
  const auto made =
      KeysOf(" na = f32[] abs(a)\n nb = f32[] abs(b)\n ROOT r = pred[] compare(na, nb), direction=LT, type=TOTALORDER");
  ASSERT_EQ(made.size(), 1U);
  EXPECT_TRUE(made[0].total);
  EXPECT_FALSE(made[0].descending);
}

// A comparator of a, b (f32) and v, w (s32): `first` decides, `equal` says where it does not.
std::string Among(const std::string& first, const std::string& equal, const std::string& second, bool turned = false) {
  return absl::StrCat(" f = pred[] compare(", first, "\n e = pred[] compare(", equal, "\n s = pred[] compare(", second,
                      turned ? "\n t = pred[] and(s, e)\n ROOT r = pred[] or(t, f)"
                             : "\n t = pred[] and(e, s)\n ROOT r = pred[] or(f, t)");
}

TEST(SortKey, OrderAmongEquals) {
  const std::string total = ", type=TOTALORDER";
  const auto keys = KeysOf(Among("a, b), direction=GT" + total, "b, a), direction=EQ" + total, "v, w), direction=LT"));
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0].operand, 0);
  EXPECT_TRUE(keys[0].descending);
  EXPECT_EQ(keys[1].operand, 1);
  EXPECT_FALSE(keys[1].descending);
  EXPECT_EQ(KeysOf(Among("v, w), direction=LT", "v, w), direction=EQ", "a, b), direction=LT" + total, true)).size(),
            2U);
  // Floats without places for all; equals of something else; no equals.
  EXPECT_TRUE(KeysOf(Among("v, w), direction=LT", "v, w), direction=EQ", "a, b), direction=LT")).empty());
  EXPECT_TRUE(KeysOf(Among("a, b), direction=LT", "a, b), direction=EQ", "v, w), direction=LT")).empty());
  EXPECT_TRUE(KeysOf(Among("a, b), direction=LT" + total, "a, b), direction=EQ", "v, w), direction=LT")).empty());
  EXPECT_TRUE(KeysOf(Among("v, w), direction=LT", "a, b), direction=EQ" + total, "v, w), direction=LT")).empty());
  EXPECT_TRUE(KeysOf(Among("v, w), direction=LT", "v, w), direction=NE", "a, b), direction=LT" + total)).empty());
}

TEST(SortKey, NoOrderOfOneOperand) {
  EXPECT_TRUE(KeysOf(" ROOT r = pred[] compare(a, b), direction=LE").empty());
  EXPECT_TRUE(KeysOf(" na = f32[] abs(a)\n ROOT r = pred[] compare(na, b), direction=LT").empty());
  EXPECT_TRUE(
      KeysOf(" na = f32[] abs(a)\n nb = f32[] sine(b)\n ROOT r = pred[] compare(na, nb), direction=LT").empty());
  EXPECT_TRUE(KeysOf(" f = f32[] convert(v)\n ROOT r = pred[] compare(a, f), direction=LT").empty());
  EXPECT_TRUE(KeysOf(" e = pred[] compare(a, b), direction=EQ\n l = pred[] compare(a, b), direction=LT\n t = pred[] "
                     "compare(v, w), direction=LT\n ROOT r = pred[] select(e, t, l)")
                  .empty());
}

}  // namespace
}  // namespace kiln
