// Several products as one kernel, on emulated GPUs and on CPUs, with every access watched, against the evaluator.
// Arguments are small integers, so that sums are exact in every order.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/gpu/both_backends.h"

namespace kiln {
namespace {

// Products of x[m,k] by weights [k,n], or [n,k] if `turned`; `tail` says what is made of product $ of n columns.
struct Group {
  std::string type = "f32";
  int64_t m = 1, k = 1;
  std::vector<int64_t> widths;
  bool turned = false;
  std::string tail = "r$ = $t[$m,$n] negate(d$)";
};

std::string Program(const Group& g) {
  std::string text = "HloModule m\nENTRY e {\n", roots, types;
  absl::StrAppend(&text, "  x = ", g.type, "[", g.m, ",", g.k, "] parameter(0)\n");
  for (size_t j = 0; j < g.widths.size(); ++j) {
    const int64_t n = g.widths[j];
    std::string part = absl::StrCat("  w$ = $t[", g.turned ? absl::StrCat(n, ",", g.k) : absl::StrCat(g.k, ",", n),
                                    "] parameter(", 2 * j + 1, ")\n  b$ = $t[$n] parameter(", 2 * j + 2,
                                    ")\n  bs$ = $t[$m,$n] broadcast(b$), dimensions={1}\n",
                                    "  d$ = $t[$m,$n] dot(x, w$), lhs_contracting_dims={1}, rhs_contracting_dims={",
                                    g.turned ? 1 : 0, "}\n  ", g.tail, "\n");
    absl::StrAppend(
        &text, absl::StrReplaceAll(
                   part, {{"$t", g.type}, {"$m", absl::StrCat(g.m)}, {"$n", absl::StrCat(n)}, {"$", absl::StrCat(j)}}));
    absl::StrAppend(&roots, j ? ", r" : "r", j);
    absl::StrAppend(&types, j ? ", " : "", g.type, "[", g.m, ",", n, "]");
  }
  return absl::StrCat(text, "  ROOT t = (", types, ") tuple(", roots, ")\n}\n");
}

std::vector<Literal> Arguments(const std::string& program) {
  auto m = ParseHlo(program, "m.hlo");
  EXPECT_TRUE(m.ok()) << m.status() << program;
  std::vector<Literal> out;
  for (const Instruction* p : (*m)->entry()->parameters()) {
    out.emplace_back(p->shape());
    for (int64_t k = 0; k < out.back().size(); ++k) {
      Element e;
      e.i = (k * 7 + static_cast<int64_t>(out.size())) % 5 - 2;
      e.re = static_cast<double>(e.i);
      out.back().Set(k, e);
    }
  }
  return out;
}

void Compare(const std::string& program) {
  for (const char* backend : {"gpu-emulated", "cpu"}) {
    // A kernel's units are shared by three threads, so that parts of it begin in the middle of a product.
    const auto results = RunOnBoth(program, Arguments(program), backend, 3);
    ASSERT_FALSE(results[1].empty());
    for (size_t k = 0; k < results[0].size(); ++k)
      EXPECT_TRUE(results[0][k] == results[1][k]) << backend << " result " << k << "\n" << program;
  }
}

const std::string kBias = "r$ = $t[$m,$n] add(d$, bs$)";

TEST(ProductGroup, WidthsAndTypes) {
  for (const std::string type : {"f32", "bf16", "f16"})
    for (const bool turned : {false, true}) {
      Compare(Program({type, 64, 96, {96, 96, 96}, turned, kBias}));
      Compare(Program({type, 37, 75, {130, 33, 33}, turned, kBias}));
    }
  Compare(Program({"f32", 130, 40, {70, 64}, false, Group().tail}));
}

TEST(ProductGroup, VectorsAndManyProducts) {
  for (const std::string type : {"f32", "bf16"}) {
    Compare(Program({type, 1, 300, {256, 128, 128}, false, kBias}));
    Compare(Program({type, 1, 260, {200, 200}, true, kBias}));
    Compare(Program({type, 33, 70, {40, 40, 40, 40, 40, 56}, false, kBias}));
  }
}

TEST(ProductGroup, OfOneRightOperandAndInOtherRoles) {
  const std::string shared = R"(HloModule m
ENTRY e {
  xa = f32[70,48] parameter(0)
  xb = f32[70,48] parameter(1)
  w = f32[48,96] parameter(2)
  a = f32[70,96] dot(xa, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[70,96] dot(xb, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[70,96], f32[70,96]) tuple(a, b)
})";
  Compare(shared);
  // A gradient by the input and one by the weights read one array as a left and as a right operand.
  Compare(R"(HloModule m
ENTRY e {
  x = f32[70,48] parameter(0)
  w = f32[48,96] parameter(1)
  dy = f32[70,96] parameter(2)
  dx = f32[70,48] dot(dy, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  dw = f32[48,96] dot(x, dy), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT t = (f32[70,48], f32[48,96]) tuple(dx, dw)
})");
  // Gradients by several weights: the left operand is turned.
  Compare(R"(HloModule m
ENTRY e {
  x = bf16[70,48] parameter(0)
  dq = bf16[70,96] parameter(1)
  dk = bf16[70,96] parameter(2)
  a = bf16[48,96] dot(x, dq), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  b = bf16[48,96] dot(x, dk), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT t = (bf16[48,96], bf16[48,96]) tuple(a, b)
})");
}

// A result may not lie where another product's residual does: blocks run in any order.
TEST(ProductGroup, ResidualsStayUntilTheyAreRead) {
  Compare(R"(HloModule m
ENTRY e {
  x = f32[40,48] parameter(0)
  wa = f32[48,32] parameter(1)
  wb = f32[48,32] parameter(2)
  c = f32[40,32] parameter(3)
  d = f32[40,32] parameter(4)
  cs = f32[40,32] negate(c)
  ds = f32[40,32] add(d, c)
  y = f32[40,48] negate(x)
  a = f32[40,32] dot(y, wa), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[40,32] dot(y, wb), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ra = f32[40,32] add(a, cs)
  rb = f32[40,32] multiply(b, ds)
  sa = f32[40,32] transpose(ra), dimensions={0,1}
  ROOT r = f32[40,32] subtract(sa, rb)
})");
}

// Products that meet place by place: sums of terms of several lengths, and a gate.
std::string Meeting(const std::string& type, const std::string& m, const std::string& n, const std::string& tail) {
  return absl::StrReplaceAll(R"(HloModule m
ENTRY e {
  x = $t[$m,75] parameter(0)
  y = $t[$m,40] parameter(1)
  wx = $t[75,$n] parameter(2)
  wy = $t[$n,40] parameter(3)
  bias = $t[$n] parameter(4)
  b = $t[$m,$n] broadcast(bias), dimensions={1}
  p = $t[$m,$n] dot(x, wx), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  q = $t[$m,$n] dot(y, wy), lhs_contracting_dims={1}, rhs_contracting_dims={1}
$tail
})",
                             {{"$tail", tail}, {"$t", type}, {"$m", m}, {"$n", n}});
}

TEST(ProductGroup, ProductsThatMeetAreOneKernel) {
  const std::string sum = "  pq = $t[$m,$n] add(p, q)\n  ROOT r = $t[$m,$n] add(pq, b)";
  const std::string gate =
      "  g = $t[$m,$n] maximum(p, b)\n  h = $t[$m,$n] multiply(g, p)\n  ROOT r = $t[$m,$n] multiply(h, q)";
  for (const std::string type : {"f32", "f16"})
    for (const std::string& tail : {sum, gate}) {
      const auto program = [&](const char* m, const char* n) {
        return absl::StrReplaceAll(Meeting(type, m, n, tail), {{"$t", type}, {"$m", m}, {"$n", n}});
      };
      Compare(program("64", "96"));
      Compare(program("37", "130"));
      // 16 bits are padded for the library first.
      if (type == "f32") EXPECT_EQ(GpuSteps(program("64", "96")), 1) << program("64", "96");
    }
}

TEST(ProductGroup, IsOneKernel) {
  EXPECT_EQ(GpuSteps(Program({"f32", 64, 96, {96, 96, 96}, false, kBias})), 1);
  EXPECT_EQ(GpuSteps(Program({"bf16", 64, 96, {96, 32, 32}, false, kBias})), 1);
  EXPECT_EQ(GpuSteps(Program({"bf16", 4096, 4096, {4096, 4096}, false, kBias})), 2);
}

}  // namespace
}  // namespace kiln
