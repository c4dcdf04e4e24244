// Conversions that lose nothing, and parts of complex numbers.
#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

// float -> wider float -> float: the first step lost nothing.
Instruction* ConvertTwice(Instruction* i) {
  Instruction* inner = i->operand(0);
  if (!inner->Is(Opcode::Convert) || !IsFloat(inner->shape().type()) || !IsFloat(inner->operand(0)->shape().type()))
    return nullptr;
  const TypeInfo &from = InfoOf(inner->operand(0)->shape().type()), &wide = InfoOf(inner->shape().type());
  if (wide.exponent_bits < from.exponent_bits || wide.mantissa_bits < from.mantissa_bits ||
      wide.flavour != FloatFlavour::Ieee)
    return nullptr;
  return ConvertTo(i->shape().type(), inner->operand(0)).get();
}

const Rule kRules[] = {
    {"convert-to-itself",
     {Opcode::Convert},
     kAllTypes,
     Numerics::Exact,
     "ROOT r = $T[4,6] convert(p)",
     "ROOT r = s16[4,6] convert(k)",
     [](Instruction* i) { return i->operand(0)->shape().type() == i->shape().type() ? i->operand(0) : nullptr; }},
    {"convert-widened",
     {Opcode::Convert},
     kFloats,
     Numerics::Exact,
     "c = f64[4,6] convert(p)\n ROOT r = bf16[4,6] convert(c)",
     "c = f8e4m3fn[4,6] convert(p)\n ROOT r = f32[4,6] convert(c)",
     ConvertTwice},
    {"real-of-complex",
     {Opcode::Real},
     kFloats,
     Numerics::Exact,
     "a = f32[4,6] convert(p)\n b = f32[4,6] convert(q)\n c = c64[4,6] complex(a, b)\n ROOT r = f32[4,6] real(c)",
     "a = f32[4,6] convert(p)\n ROOT r = f32[4,6] real(a)",
     [](Instruction* i) { return i->operand(0)->Is(Opcode::Complex) ? i->operand(0)->operand(0) : nullptr; }},
    {"imag-of-complex",
     {Opcode::Imag},
     kFloats,
     Numerics::Exact,
     "a = f32[4,6] convert(p)\n b = f32[4,6] convert(q)\n c = c64[4,6] complex(a, b)\n ROOT r = f32[4,6] imag(c)",
     "a = f32[4,6] convert(p)\n ROOT r = f32[4,6] imag(a)",
     [](Instruction* i) { return i->operand(0)->Is(Opcode::Complex) ? i->operand(0)->operand(1) : nullptr; }},
    {"copy-of-copy",
     {Opcode::Copy},
     kAllTypes | kTuples,
     Numerics::Exact,
     "c = $T[4,6] copy(p)\n ROOT r = $T[4,6] copy(c)",
     "c = $T[4,6]{0,1} copy(p)\n ROOT r = $T[4,6]{1,0} copy(c)",
     [](Instruction* i) {
       return i->operand(0)->Is(Opcode::Copy) && i->shape() == i->operand(0)->shape() ? i->operand(0) : nullptr;
     }},
    {"element-of-tuple",
     {Opcode::GetTupleElement},
     kAllTypes | kTuples,
     Numerics::Exact,
     "t = ($T[4,6], $T[4,6]) tuple(p, q)\n ROOT r = $T[4,6] get-tuple-element(t), index=1",
     "ROOT r = $T[4,6] copy(p)",
     [](Instruction* i) {
       return i->operand(0)->Is(Opcode::Tuple) ? i->operand(0)->operand(*i->attrs().tuple_index) : nullptr;
     }},
};

}  // namespace

absl::Span<const Rule> ConversionRules() { return kRules; }

}  // namespace kiln
