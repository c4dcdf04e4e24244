// Operations that move, window, contract and reduce: each of shape_ops.def on every type that takes it, in every layout
// and on several CPU levels, one thread and many, against the reference evaluator. Values are small integers, so that
// every order of summation gives the same bits.
#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "aot/tools/runner.h"
#include "compiler/eval/evaluator.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/verify.h"
#include "gtest/gtest.h"
#include "tests/op_matrix/backend.h"

namespace kiln {
namespace {

enum class Taking { Any, Number, Ordered, Integer, Bits, Real };
struct Row {
  Taking taking;
  const char* text;
};
const Row kRows[] = {
#define ROW(taking, text) {Taking::taking, text},
#include "tests/op_matrix/shape_ops.def"
};

enum class Order { kRowMajor, kColumnMajor, kRotated };

bool Takes(PrimitiveType t, Taking what) {
  const bool exponent_only = InfoOf(t).flavour == FloatFlavour::Exponent;
  switch (what) {
    case Taking::Any:
      return true;
    case Taking::Number:
      return t != PrimitiveType::Pred && !exponent_only;
    case Taking::Ordered:
      return t != PrimitiveType::Pred && !IsComplex(t) && !exponent_only;
    case Taking::Integer:
      return IsIntegral(t);
    case Taking::Bits:
      return IsIntegral(t) || t == PrimitiveType::Pred;
    case Taking::Real:
      return IsFloat(t) && InfoOf(t).bits >= 8 && !exponent_only;
  }
  return false;
}

std::string ShapeIn(const std::string& type, const std::string& dims, Order order) {
  const std::vector<std::string> parts = absl::StrSplit(dims, ',', absl::SkipEmpty());
  const int rank = static_cast<int>(parts.size());
  std::vector<int> layout;
  for (int k = rank - 1; k >= 0; --k) layout.push_back(k);
  if (order == Order::kColumnMajor) std::reverse(layout.begin(), layout.end());
  if (order == Order::kRotated && rank > 1) std::rotate(layout.begin(), layout.begin() + 1, layout.end());
  return absl::StrCat(type, "[", dims, "]", rank ? absl::StrCat("{", absl::StrJoin(layout, ","), "}") : "");
}

// `$type(dims)` becomes a shape in the layout; `$(dims)` one of type `t`.
std::string Fill(absl::string_view text, const std::string& t, Order order) {
  std::string out;
  for (size_t p = 0; p < text.size();) {
    if (text[p] != '$') {
      out += text[p++];
      continue;
    }
    const size_t open = text.find('(', p), close = text.find(')', open);
    const std::string type(text.substr(p + 1, open - p - 1));
    out += ShapeIn(type.empty() ? t : type, std::string(text.substr(open + 1, close - open - 1)), order);
    p = close + 1;
  }
  return out;
}

std::string Program(PrimitiveType type, Order order, std::vector<std::string>* names) {
  const std::string t(TextOf(type));
  const bool pred = type == PrimitiveType::Pred, complex = IsComplex(type);
  const std::string zero = pred                                             ? "false"
                           : complex                                        ? "(0,0)"
                           : InfoOf(type).flavour == FloatFlavour::Exponent ? "1"
                                                                            : "0";
  const std::string one = pred ? "true" : complex ? "(1,0)" : type == PrimitiveType::S1 ? "-1" : "1";
  std::string text = "HloModule matrix\n";
  const auto function = [&](const char* name, const char* op, bool wanted) {
    if (wanted)
      absl::StrAppend(&text, name, " {\n a = ", t, "[] parameter(0)\n b = ", t, "[] parameter(1)\n ROOT r = ", op,
                      "\n}\n");
  };
  const std::string arithmetic = t + "[] ";
  function("second", absl::StrCat(arithmetic, "copy(b)").c_str(), true);
  function("sum", absl::StrCat(arithmetic, "add(a, b)").c_str(), Takes(type, Taking::Number));
  function("product", absl::StrCat(arithmetic, "multiply(a, b)").c_str(), Takes(type, Taking::Number));
  function("largest", absl::StrCat(arithmetic, "maximum(a, b)").c_str(), Takes(type, Taking::Ordered));
  function("smallest", absl::StrCat(arithmetic, "minimum(a, b)").c_str(), Takes(type, Taking::Ordered));
  function("either", absl::StrCat(arithmetic, "or(a, b)").c_str(), Takes(type, Taking::Bits));
  function("less", "pred[] compare(a, b), direction=LT", Takes(type, Taking::Ordered));
  function("greater", "pred[] compare(a, b), direction=GE", Takes(type, Taking::Ordered));
  text += Fill("same {\n ROOT a = $(4,6,5) parameter(0)\n}\n", t, order);
  text += Fill(
      "pick {\n a = $(4,6,5) parameter(0)\n b = $(4,6,5) parameter(1)\n ROOT r = $(4,6,5) reverse(b), "
      "dimensions={1}\n}\n",
      t, order);
  text += Fill(R"(ENTRY main {
 x = $(4,6,5) parameter(0)
 y = $(4,6,5) parameter(1)
 v = $(5) parameter(2)
 p = $pred(4,6,5) parameter(3)
 i = s32[] parameter(4)
 j = s32[] parameter(5)
 ids = $s32(3,1) parameter(6)
 kernel = $(3,5,2) parameter(7)
 flag = pred[] parameter(8)
 part = $(2,3,2) slice(y), slice={[0:2], [0:3], [0:2]}
 upd = $(3,6,5) slice(y), slice={[0:3], [0:6], [0:5]}
 small = $(4,3,5) slice(y), slice={[0:4], [0:3], [0:5]}
)",
               t, order);
  absl::StrAppend(&text, " z = ", t, "[] constant(", zero, ")\n one = ", t, "[] constant(", one, ")\n");
  if (complex)
    text +=
        Fill(absl::StrCat(" one_of = $", type == PrimitiveType::C64 ? "f32" : "f64", "(4,6,5) real(x)\n"), t, order);
  std::vector<std::string> results;
  for (size_t k = 0; k < std::size(kRows); ++k) {
    if (!Takes(type, kRows[k].taking)) continue;
    std::string row = Fill(kRows[k].text, t, order);
    if (!complex) row = absl::StrReplaceAll(row, {{"one_of", "x"}});
    absl::StrAppend(&text, " r", k, " = ", row, "\n");
    results.push_back(absl::StrCat("r", k));
    names->push_back(std::move(row));
  }
  std::vector<std::string> shapes;
  for (const std::string& n : *names) shapes.push_back(n.substr(0, n.find(' ')));
  absl::StrAppend(&text, " ROOT all = (", absl::StrJoin(shapes, ", "), ") tuple(", absl::StrJoin(results, ", "),
                  ")\n}\n");
  return text;
}

// Few enough elements differ from zero that every sum is exact in the type.
Literal Values(PrimitiveType t, const Ints& dims, int seed) {
  Literal l(Shape::Array(t, dims));
  const int bits = InfoOf(t).bits;
  const int64_t every = bits >= 16 || IsIntegral(t) ? 1 : bits == 8 ? 17 : 43;
  for (int64_t k = 0; k < l.size(); ++k) {
    Element e;
    const int64_t q = (k + seed) % every == 0 ? (k * 7 + seed) % 4 - 1 : 0;
    e.i = t == PrimitiveType::Pred ? (k * 5 + seed) % 3 == 0 : q;
    e.re = static_cast<double>(every == 1 ? q : q != 0);
    if (InfoOf(t).flavour == FloatFlavour::Exponent) e.re = static_cast<double>(1 << ((k + seed) % 5));
    e.im = static_cast<double>((k + seed) % 2);
    l.Set(k, e);
  }
  return l;
}

class ShapeMatrix : public testing::TestWithParam<std::tuple<PrimitiveType, Order>> {};

TEST_P(ShapeMatrix, CompiledEqualsReference) {
  const auto [t, order] = GetParam();
  std::vector<std::string> names;
  const std::string text = Program(t, order, &names);
  auto m = ParseHlo(text, "matrix");
  ASSERT_TRUE(m.ok()) << m.status() << "\n" << text;
  ASSERT_TRUE(VerifyModule(**m).ok()) << VerifyModule(**m);
  const std::vector<Literal> args = {Values(t, {4, 6, 5}, 1),
                                     Values(t, {4, 6, 5}, 2),
                                     Values(t, {5}, 3),
                                     Values(PrimitiveType::Pred, {4, 6, 5}, 4),
                                     Literal::Int(PrimitiveType::S32, 1),
                                     Literal::Int(PrimitiveType::S32, 3),
                                     Values(PrimitiveType::S32, {3, 1}, 5),
                                     Values(t, {3, 5, 2}, 6),
                                     Literal::Int(PrimitiveType::Pred, 0)};
  auto want = Evaluate(**m, args);
  ASSERT_TRUE(want.ok()) << want.status();
  int64_t compared = 0;
  std::vector<std::pair<std::string, int>> backends = {{"native", 2}};
  if (order == Order::kRowMajor) backends = {{"v2", 1}, {"native", 1}};
  if (TestedBackend().backend != "cpu") backends = {{"native", 1}};
  for (const auto& [level, threads] : backends) {
    CompileOptions o;
    o.cpu.levels = {level};
    o.cpu.flush_subnormals = false;
    o.debug.bounds_check = level == "v2";
    RunOptions r = TestedBackend();
    r.threads = threads;
    auto got = RunModule(*ParseHlo(text, "matrix"), args, o, r);
    ASSERT_TRUE(got.ok()) << got.status();
    for (size_t k = 0; k < names.size(); ++k, ++compared)
      EXPECT_TRUE(got->results[k] == want->elements()[k])
          << level << ", " << threads << " threads: " << names[k] << "\ngot  " << got->results[k].ToString()
          << "\nwant " << want->elements()[k].ToString();
  }
  static int64_t total = 0;
  total += compared;
  std::cout << total << " combinations of operation, type, layout and backend compared\n";
}

std::vector<PrimitiveType> ArrayTypes() {
  std::vector<PrimitiveType> out;
  for (int k = 0; k < 64; ++k)
    if (auto t = TypeFromProto(k); t && IsArrayType(*t)) out.push_back(*t);
  return out;
}

std::string NameOf(const testing::TestParamInfo<ShapeMatrix::ParamType>& info) {
  static const char* const kNames[] = {"row_major", "column_major", "rotated"};
  return absl::StrCat(TextOf(std::get<0>(info.param)), "_", kNames[static_cast<int>(std::get<1>(info.param))]);
}

INSTANTIATE_TEST_SUITE_P(Types, ShapeMatrix,
                         testing::Combine(testing::ValuesIn(ArrayTypes()),
                                          testing::Values(Order::kRowMajor, Order::kColumnMajor, Order::kRotated)),
                         NameOf);

}  // namespace
}  // namespace kiln
