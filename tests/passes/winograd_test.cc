// Convolutions by Winograd's algorithm have the results of the convolutions that they were, up to rounding.
#include <random>

#include "absl/strings/str_cat.h"
#include "compiler/eval/evaluator.h"
#include "compiler/hlo/parser.h"
#include "compiler/pipeline/registry.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

Literal Random(const Shape& shape, uint32_t seed) {
  std::mt19937 rng(seed);
  Literal l(shape);
  for (int64_t k = 0; k < l.size(); ++k) l.Set(k, {.re = static_cast<double>(rng() % 2001) / 1000 - 1});
  return l;
}

enum class Kernel { kParameter, kConstant, kTransposedConstant };

struct Case {
  const char *type, *input, *kernel, *result, *window, *labels;
  Kernel is = Kernel::kConstant;
};

class Winograd : public testing::TestWithParam<Case> {};

TEST_P(Winograd, EqualsTheConvolution) {
  const Case& c = GetParam();
  auto m = ParseHlo(absl::StrCat("HloModule m\nENTRY e {\n  x = ", c.type, c.input, " parameter(0)\n  w = ", c.type,
                                 c.kernel, " parameter(1)\n  ROOT y = ", c.type, c.result,
                                 " convolution(x, w), window={size=3x3", c.window, "}, dim_labels=", c.labels, "\n}\n"),
                    "m.hlo");
  ASSERT_TRUE(m.ok()) << m.status();
  Instruction* const convolution = (*m)->entry()->root();
  Computation* const entry = (*m)->entry();
  Instruction* const w = convolution->operand(1);
  const std::vector<Literal> arguments = {Random(convolution->operand(0)->shape(), 1), Random(w->shape(), 2)};
  const auto want = Evaluate(**m, arguments);
  ASSERT_TRUE(want.ok()) << want.status();
  if (c.is == Kernel::kConstant) convolution->ReplaceOperand(1, entry->AddConstant(arguments[1]));
  if (c.is == Kernel::kTransposedConstant) {
    // The constant whose transpose by (2, 0, 3, 1) is the kernel.
    const Ints order = {2, 0, 3, 1};
    Ints dims(4), strides(4);
    for (int64_t d = 0; d < 4; ++d) dims[order[d]] = w->shape().dim(d);
    Literal turned(Shape::Array(w->shape().type(), dims));
    const Ints from = w->shape().Strides(), to = turned.shape().Strides();
    for (int64_t k = 0; k < turned.size(); ++k) {
      int64_t at = 0;
      for (int64_t d = 0; d < 4; ++d) at += k / from[d] % w->shape().dim(d) * to[order[d]];
      turned.Set(at, arguments[1].Get(k));
    }
    Instruction* transpose = entry->Add(Opcode::Transpose, w->shape(), {entry->AddConstant(turned)});
    transpose->mutable_attrs().dimensions = order;
    convolution->ReplaceOperand(1, transpose);
  }
  PassContext context;
  const auto changed = FindPass("winograd-convolution")->run(**m, context);
  ASSERT_TRUE(changed.ok()) << changed.status();
  ASSERT_TRUE(*changed);
  const auto got = Evaluate(**m, arguments);
  ASSERT_TRUE(got.ok()) << got.status();
  const double tolerance = want->type() == PrimitiveType::F64 ? 1e-12 : 1e-4;
  for (int64_t k = 0; k < want->size(); ++k) ASSERT_NEAR(got->Get(k).re, want->Get(k).re, tolerance) << k;
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Winograd,
    testing::Values(
        Case{"f32", "[1,8,8,64]", "[3,3,64,64]", "[1,8,8,64]", " pad=1_1x1_1", "b01f_01io->b01f", Kernel::kParameter},
        Case{"f32", "[1,8,8,64]", "[3,3,64,64]", "[1,8,8,64]", " pad=1_1x1_1", "b01f_01io->b01f"},
        Case{"f32", "[1,8,8,64]", "[3,3,64,64]", "[1,8,8,64]", " pad=1_1x1_1", "b01f_01io->b01f",
             Kernel::kTransposedConstant},
        Case{"f32", "[2,9,7,48]", "[96,48,3,3]", "[2,9,7,96]", " pad=2_0x1_1", "b01f_oi01->b01f"},
        Case{"f64", "[1,10,8,64]", "[3,3,64,64]", "[1,7,7,64]", " pad=0_-1x-1_2", "b01f_01oi->b01f"},
        Case{"f64", "[3,6,6,64]", "[3,3,64,64]", "[3,6,6,64]", " pad=1_1x1_1", "b01f_01io->b01f", Kernel::kParameter}));

}  // namespace
}  // namespace kiln
