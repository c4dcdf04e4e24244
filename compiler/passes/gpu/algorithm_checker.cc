// Refuses products whose algorithm the types contradict or that no target here can keep: it is never replaced in
// silence.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/pass/pass.h"

namespace kiln {
namespace {

struct Algorithm {
  const char* name;
  PrimitiveType operands, result;
};

constexpr PrimitiveType kAny = PrimitiveType::Tuple;

constexpr Algorithm kAlgorithms[] = {
    {"dot_any_f8_any_f8_f32", kAny, PrimitiveType::F32},
    {"dot_any_f8_any_f8_f32_fast_accum", kAny, PrimitiveType::F32},
    {"dot_f16_f16_f16", PrimitiveType::F16, PrimitiveType::F16},
    {"dot_f16_f16_f32", PrimitiveType::F16, PrimitiveType::F32},
    {"dot_bf16_bf16_bf16", PrimitiveType::BF16, PrimitiveType::BF16},
    {"dot_bf16_bf16_f32", kAny, PrimitiveType::F32},
    {"dot_bf16_bf16_f32_x3", PrimitiveType::F32, PrimitiveType::F32},
    {"dot_bf16_bf16_f32_x6", PrimitiveType::F32, PrimitiveType::F32},
    {"dot_bf16_bf16_f32_x9", PrimitiveType::F32, PrimitiveType::F32},
    {"dot_tf32_tf32_f32", PrimitiveType::F32, PrimitiveType::F32},
    {"dot_tf32_tf32_f32_x3", PrimitiveType::F32, PrimitiveType::F32},
    {"dot_f32_f32_f32", PrimitiveType::F32, PrimitiveType::F32},
    {"dot_f64_f64_f64", PrimitiveType::F64, PrimitiveType::F64},
};

}  // namespace

absl::StatusOr<bool> AlgorithmChecker(Module& m, PassContext&) {
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions()) {
      if (!i->Is(Opcode::Dot) || !i->attrs().algorithm || i->attrs().algorithm->text == "dot_unset" ||
          i->attrs().algorithm->text.find('{') != std::string::npos)
        continue;
      const std::string& name = i->attrs().algorithm->text;
      const auto known = std::find_if(std::begin(kAlgorithms), std::end(kAlgorithms),
                                      [&](const Algorithm& a) { return name == a.name; });
      if (known == std::end(kAlgorithms))
        return ErrorAt(i.get(), absl::StrCat("algorithm '", name, "' is not supported"),
                       absl::StatusCode::kUnimplemented);
      const PrimitiveType operand = i->operand(0)->shape().type();
      if (known->operands != kAny && operand != known->operands)
        return ErrorAt(i.get(), absl::StrCat("algorithm '", name, "' takes operands of ", TextOf(known->operands),
                                             ", these are of ", TextOf(operand)));
    }
  return false;
}

}  // namespace kiln
