// The topk kernels of both backends, every access of them watched, against the reference evaluator: every type that has
// an order, rows of one element to thousands, as few and as many of them as a block sorts, and values that tie, that
// are no numbers and that are zero with either sign.
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/gpu/both_backends.h"

namespace kiln {
namespace {

// Bits of the type at random, from all of them or from a few.
Literal Values(PrimitiveType t, const Ints& dims, uint32_t seed, bool ties) {
  Literal l(Shape::Array(t, dims));
  std::mt19937 random(seed);
  for (int64_t k = 0; k < l.size(); ++k) {
    Element e;
    if (IsFloat(t)) {
      constexpr double kFew[] = {0.0, -0.0, 1.0, -1.0, 2.0};
      const double special[] = {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::quiet_NaN(),
                                std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
      const uint32_t r = random();
      e.re = ties ? kFew[r % 5] : r % 16 == 0 ? special[r / 16 % 4] : (static_cast<double>(r) - 2147483648.0) / 1e6;
    } else {
      e.i = ties ? static_cast<int64_t>(random() % 3) : static_cast<int64_t>(random() * uint64_t{0x9e3779b97f4a7c15});
    }
    l.Set(k, e);
  }
  return l;
}

void Compare(const char* backend, PrimitiveType t, const Ints& dims, int64_t k, bool largest, bool ties) {
  Ints kept = dims;
  kept.back() = k;
  const std::string name(TextOf(t));
  const std::string program = absl::StrCat("HloModule m\nENTRY e {\n  x = ", Shape::Array(t, dims).ToString(false),
                                           " parameter(0)\n  ROOT t = (", Shape::Array(t, kept).ToString(false), ", ",
                                           Shape::Array(PrimitiveType::S32, kept).ToString(false), ") topk(x), k=", k,
                                           ", largest=", largest ? "true" : "false", "\n}\n");
  const Literal x = Values(t, dims, static_cast<uint32_t>(k * 31 + dims.back()), ties);
  const auto results = RunOnBoth(program, x, backend);
  ASSERT_EQ(results[1].size(), 2U);
  for (size_t p = 0; p < 2; ++p)
    for (int64_t q = 0; q < results[0][p].size(); ++q) {
      const Element want = results[0][p].Get(q), got = results[1][p].Get(q);
      const bool same = p || !IsFloat(t) ? want.i == got.i
                                         : (std::isnan(want.re) && std::isnan(got.re)) ||
                                               (want.re == got.re && std::signbit(want.re) == std::signbit(got.re));
      ASSERT_TRUE(same) << program << (ties ? "ties" : "random") << ": element " << q << " of result " << p << ": "
                        << want.re << "/" << want.i << " and " << got.re << "/" << got.i;
    }
}

class TopK : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backends, TopK, testing::Values("cpu", "gpu-emulated"),
                         [](const auto& i) { return std::string(i.index ? "Gpu" : "Cpu"); });

TEST_P(TopK, EveryTypeInOrder) {
  using P = PrimitiveType;
  for (const P t : {P::F16, P::BF16, P::F32, P::F64, P::F8E5M2, P::F8E4M3FN, P::S4, P::S8, P::S16, P::S32, P::S64,
                    P::U4, P::U8, P::U16, P::U32, P::U64, P::Pred})
    for (const bool largest : {true, false})
      for (const bool ties : {true, false})
        for (const int64_t k : {9, 60}) Compare(GetParam(), t, {3, 170}, k, largest, ties);
}

TEST_P(TopK, RowsOfEveryLength) {
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 1},
                             {2, 1},
                             {255, 255},
                             {256, 3},
                             {257, 20},
                             {1000, 17},
                             {1025, 1024},
                             {5003, 50},
                             {8193, 3},
                             {20011, 1},
                             {30000, 300}})
    for (const bool ties : {true, false}) Compare(GetParam(), PrimitiveType::F32, {2, n}, k, true, ties);
  Compare(GetParam(), PrimitiveType::S32, {2, 3, 300}, 40, false, false);
  Compare(GetParam(), PrimitiveType::F32, {2, 2100}, 1025, true, true);  // sorted instead
}

}  // namespace
}  // namespace kiln
