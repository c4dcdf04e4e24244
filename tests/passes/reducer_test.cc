// Functions whose reductions may be made of those of parts, and look-alikes that may not.
#include "compiler/sharding/reducer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/hlo/parser.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

struct Case {
  const char* name;
  const char* types;  // of results
  const char* init;   // constants; "?" is an argument
  const char* body;   // of a0, a1, ... and b0, b1, ..., with results r0, r1, ...
  bool in_order, in_any_order;
  const char* counts = "";  // results whose elements are 1
};

std::string Text(const Case& c, bool rows) {
  const std::vector<std::string> types = absl::StrSplit(c.types, ' '), init = absl::StrSplit(c.init, ' ');
  const std::string dims = rows ? "[8,4]" : "[8]";
  std::string function, entry, values, inits, results, shapes, whole;
  const size_t n = types.size();
  for (size_t k = 0; k < n; ++k) {
    absl::StrAppend(&function, "  a", k, " = ", types[k], "[] parameter(", k, ")\n  b", k, " = ", types[k],
                    "[] parameter(", n + k, ")\n");
    const bool counts = std::string(c.counts).find(absl::StrCat(k)) != std::string::npos;
    const std::string one = absl::StrCat("  o", k, " = ", types[k], "[] constant(1)\n  x", k, " = ", types[k], dims,
                                         " broadcast(o", k, "), dimensions={}\n");
    absl::StrAppend(&entry, counts ? one : absl::StrCat("  x", k, " = ", types[k], dims, " parameter(", k, ")\n"));
    absl::StrAppend(&entry, "  i", k, " = ", types[k], "[] ",
                    init[k] == "?" ? absl::StrCat("parameter(", n + k, ")") : absl::StrCat("constant(", init[k], ")"),
                    "\n");
    absl::StrAppend(&values, k ? ", " : "", "x", k);
    absl::StrAppend(&inits, ", i", k);
    absl::StrAppend(&results, k ? ", " : "", "r", k);
    absl::StrAppend(&shapes, k ? ", " : "", types[k], "[]");
  }
  const std::string shape = n > 1 ? absl::StrCat("(", shapes, ")") : shapes;
  const std::string root = absl::StrCat("  ROOT r = ", shape, n > 1 ? " tuple(" : " copy(", results, ")\n");
  return absl::StrCat("HloModule m\n\nf {\n", function, c.body, root, "}\n\nENTRY e {\n", entry, "  ROOT r = ", shape,
                      " reduce(", values, inits, "), dimensions={", rows ? "0,1" : "0", "}, to_apply=f\n}\n");
}

bool IsOfParts(const Case& c, bool rows) {
  const std::string text = Text(c, rows);
  auto m = ParseHlo(text, c.name);
  EXPECT_TRUE(m.ok()) << m.status() << text;
  return m.ok() && IsReducedByParts(*(*m)->entry()->root());
}

constexpr char kExponentials[] = R"(
  m = f32[] maximum(a0, b0)
  da = f32[] subtract(a0, m)
  db = f32[] subtract(b0, m)
  ea = f32[] exponential(da)
  eb = f32[] exponential(db)
  sa = f32[] multiply(a1, ea)
  sb = f32[] multiply(b1, eb)
  r0 = f32[] copy(m)
  r1 = f32[] add(sa, sb)
)";

constexpr char kLogAddExp[] = R"(
  m = f32[] maximum(a0, b0)
  d = f32[] subtract(a0, b0)
  odd = pred[] compare(d, d), direction=NE
  sum = f32[] add(a0, b0)
  size = f32[] abs(d)
  n = f32[] negate(size)
  e = f32[] exponential(n)
  l = f32[] log-plus-one(e)
  s = f32[] add(m, l)
  r0 = f32[] select(odd, sum, s)
)";

constexpr char kMoments[] = R"(
  n = f32[] add(a2, b2)
  zero = f32[] constant(0)
  none = pred[] compare(n, zero), direction=EQ
  q = f32[] divide(b2, n)
  part = f32[] select(none, zero, q)
  d = f32[] subtract(b0, a0)
  dp = f32[] multiply(d, part)
  r0 = f32[] add(a0, dp)
  squares = f32[] add(a1, b1)
  dd = f32[] multiply(d, dp)
  more = f32[] multiply(dd, a2)
  r1 = f32[] add(squares, more)
  r2 = f32[] copy(n)
)";

constexpr char kGreatest[] = R"(
  gt = pred[] compare(a0, b0), direction=GT
  eq = pred[] compare(a0, b0), direction=EQ
  first = pred[] compare(a1, b1), direction=LT
  tie = pred[] and(eq, first)
  take = pred[] or(gt, tie)
  r0 = f32[] select(take, a0, b0)
  r1 = s32[] select(take, a1, b1)
)";

// As JAX writes it of predicates that it converts.
constexpr char kGreatestByNumbers[] = R"(
  gt = pred[] compare(a0, b0), direction=GT
  eq = pred[] compare(a0, b0), direction=EQ
  first = pred[] compare(a1, b1), direction=LT
  tie = pred[] and(eq, first)
  take = pred[] or(gt, tie)
  zero = pred[] constant(false)
  no = pred[] broadcast(zero), dimensions={}
  yes = pred[] compare(take, no), direction=NE
  r0 = f32[] select(yes, a0, b0)
  r1 = s32[] select(yes, a1, b1)
)";

// Of equal ones either may come first.
constexpr char kAnyGreatest[] = R"(
  ge = pred[] compare(a0, b0), direction=GE
  r0 = f32[] select(ge, a0, b0)
  r1 = s32[] select(ge, a1, b1)
)";

constexpr char kComplex[] = R"(
  x = f32[] multiply(a0, b0)
  y = f32[] multiply(a1, b1)
  r0 = f32[] subtract(x, y)
  z = f32[] multiply(a0, b1)
  w = f32[] multiply(a1, b0)
  r1 = f32[] add(z, w)
)";

constexpr char kRecurrence[] = R"(
  r0 = f32[] multiply(a0, b0)
  x = f32[] multiply(a1, b0)
  r1 = f32[] add(x, b1)
)";

// Sums from the last element that a flag starts anew.
constexpr char kSegments[] = R"(
  r0 = pred[] or(a0, b0)
  s = f32[] add(a1, b1)
  r1 = f32[] select(b0, b1, s)
)";

constexpr char kLargest[] = R"(
  x = f32[] abs(a0)
  y = f32[] abs(b0)
  gt = pred[] compare(x, y), direction=GT
  r0 = f32[] select(gt, a0, b0)
)";

constexpr char kHalf[] = R"(
  h = f32[] constant(0.5)
  x = f32[] multiply(b0, h)
  r0 = f32[] add(a0, x)
)";

constexpr char kMean[] = R"(
  s = f32[] add(a0, b0)
  h = f32[] constant(0.5)
  r0 = f32[] multiply(s, h)
)";

// All but where a sum is 4.
constexpr char kAllButFour[] = R"(
  s = s32[] add(a0, b0)
  four = s32[] constant(4)
  is = pred[] compare(s, four), direction=EQ
  r0 = s32[] select(is, four, s)
)";

constexpr char kTieAdds[] = R"(
  gt = pred[] compare(a0, b0), direction=GT
  eq = pred[] compare(a0, b0), direction=EQ
  m = f32[] select(gt, a0, b0)
  s = f32[] add(a0, b0)
  r0 = f32[] select(eq, s, m)
)";

constexpr char kClippedSum[] = R"(
  s = f32[] add(a0, b0)
  one = f32[] constant(1)
  r0 = f32[] minimum(s, one)
)";

constexpr char kQuotients[] = "  r0 = s32[] divide(a0, b0)\n";
constexpr char kDifference[] = "  r0 = f32[] subtract(a0, b0)\n";
constexpr char kSum[] = "  r0 = f32[] add(a0, b0)\n";
constexpr char kSmallest[] = "  r0 = f32[] minimum(a0, b0)\n";
constexpr char kLast[] = "  r0 = f32[] copy(b0)\n";

TEST(Reducer, FunctionsThatMayBeAppliedInAnotherOrder) {
  const Case cases[] = {
      {"exponentials", "f32 f32", "-inf 0", kExponentials, true, true},
      {"exponentials from a number", "f32 f32", "-1e30 0", kExponentials, true, true},
      {"exponentials and one more", "f32 f32", "-1e30 1", kExponentials, false, false},
      {"exponentials from arguments", "f32 f32", "? ?", kExponentials, false, false},
      {"logaddexp", "f32", "-inf", kLogAddExp, true, true},
      {"logaddexp from 0", "f32", "0", kLogAddExp, false, false},
      {"moments", "f32 f32 f32", "0 0 0", kMoments, true, true, "2"},
      {"moments of weights", "f32 f32 f32", "0 0 0", kMoments, false, false},
      {"greatest", "f32 s32", "-inf 0", kGreatest, true, true},
      {"greatest by numbers", "f32 s32", "-inf 0", kGreatestByNumbers, true, true},
      {"greatest from arguments", "f32 s32", "? ?", kGreatest, true, true},
      {"any greatest", "f32 s32", "-inf 0", kAnyGreatest, true, false},
      {"complex", "f32 f32", "1 0", kComplex, true, true},
      {"complex from 2", "f32 f32", "2 0", kComplex, false, false},
      {"recurrence", "f32 f32", "1 0", kRecurrence, true, false},
      {"segments", "pred f32", "false 0", kSegments, true, false},
      {"largest", "f32", "0", kLargest, true, false},
      {"half", "f32", "0", kHalf, false, false},
      {"mean", "f32", "0", kMean, false, false},
      {"all but four", "s32", "0", kAllButFour, false, false},
      {"ties are added", "f32", "0", kTieAdds, false, false},
      {"clipped sum", "f32", "0", kClippedSum, false, false},
      {"quotients", "s32", "1", kQuotients, false, false},
      {"difference", "f32", "0", kDifference, false, false},
      {"sum", "f32", "0", kSum, true, true},
      {"sum from an argument", "f32", "?", kSum, false, false},
      {"smallest from an argument", "f32", "?", kSmallest, true, true},
      {"last", "f32", "0", kLast, true, false},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(IsOfParts(c, false), c.in_order) << c.name;
    EXPECT_EQ(IsOfParts(c, true), c.in_any_order) << c.name;
  }
}

TEST(Reducer, InitialValuesThatMayFillUpAPart) {
  const Case cases[] = {
      {"exponentials", "f32 f32", "-inf 0", kExponentials, false, false},
      {"exponentials from a number", "f32 f32", "-1e30 0", kExponentials, true, true},
      {"moments", "f32 f32 f32", "0 0 0", kMoments, true, true, "2"},
      {"greatest", "f32 s32", "-inf 0", kGreatest, true, true},
      {"recurrence", "f32 f32", "1 0", kRecurrence, true, true},
      {"largest", "f32", "0", kLargest, true, true},
      {"segments from a flag", "pred f32", "true 0", kSegments, false, false},
      {"last", "f32", "0", kLast, false, false},
  };
  for (const Case& c : cases) {
    auto m = ParseHlo(Text(c, false), c.name);
    ASSERT_TRUE(m.ok()) << m.status();
    EXPECT_EQ(MayBePadded(*(*m)->entry()->root()), c.in_order) << c.name;
  }
}

}  // namespace
}  // namespace kiln
