// Steps against gradients of a few rows, which become updates of those rows: rows that come several times, rows outside
// of the table at both ends, places of several types, tables that are the caller's and tables that are not. Against the
// evaluator, bit for bit.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"
#include "tests/op_matrix/against_evaluator.h"

namespace kiln {
namespace {

struct Case {
  const char *type, *places, *step;
  bool donated;
};
constexpr Case kCases[] = {
    {"f32", "s32", "multiply(g, cs)\n ROOT r = $ subtract(x, s)", true},
    {"f32", "s64", "multiply(cs, g)\n ROOT r = $ subtract(x, s)", false},
    {"f64", "u32", "multiply(g, ns)\n ROOT r = $ add(x, s)", true},
    {"f32", "s8", "multiply(g, ns)\n ROOT r = $ add(s, x)", true},
    {"bf16", "u8", "copy(g)\n ROOT r = $ subtract(x, g)", true},
};

TEST(SparseUpdates, AreThoseOfTheWholeTable) {
  for (const Case& c : kCases) {
    const std::string t = c.type, table = absl::StrCat(t, "[4100,128]");
    std::string step = c.step;
    step.replace(step.find('$'), 1, table);
    const std::string text = absl::StrCat(
        "HloModule m", c.donated ? ", input_output_alias={ {}: (0, {}, may-alias) }" : "", "\nadd {\n a = ", t,
        "[] parameter(0)\n b = ", t, "[] parameter(1)\n ROOT r = ", t, "[] add(a, b)\n}\nENTRY e {\n x = ", table,
        " parameter(0)\n i = ", c.places, "[4,15] parameter(1)\n u = ", t, "[4,15,128] parameter(2)\n z = ", t,
        "[] constant(0)\n zs = ", table, " broadcast(z), dimensions={}\n p = ", t, "[] constant(0.37)\n cs = ", table,
        " broadcast(p), dimensions={}\n n = ", t, "[] constant(-0.37)\n ns = ", table,
        " broadcast(n), dimensions={}\n g = ", table,
        " scatter(zs, i, u), update_window_dims={2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
        "index_vector_dim=2, to_apply=add\n s = ",
        table, " ", step, "\n}\n");
    auto module = ParseHlo(text, "t.hlo");
    ASSERT_TRUE(module.ok()) << module.status() << text;
    std::vector<Values> arguments = {SeededValues(**module, 5)};
    Literal &x = arguments[0][0], &places = arguments[0][1];
    const auto set = [](Literal& a, int64_t at, double value) { a.Set(at, Literal::Of(a.type(), value).Get(0)); };
    const bool narrow = InfoOf(places.type()).bits == 8;
    for (int64_t k = 0; k < places.size(); ++k)
      set(places, k, static_cast<double>(k % 3 ? k * k % 50 : k * (narrow ? 2 : 70)));
    set(places, 7, narrow ? 101 : 4100);
    if (IsSigned(places.type())) set(places, 8, -1);
    set(x, 0, -0.0);
    set(x, 129, std::nan(""));
    ExpectAsEvaluator(**module, arguments, "native", 2, {0, 0}, text);
  }
}

}  // namespace
}  // namespace kiln
