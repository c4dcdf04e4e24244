// Conversions that lose nothing, and parts of complex numbers.
#include "compiler/passes/simplify/rules/rule.h"
#include "compiler/passes/simplify/rules/terms.h"

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

// Whether every value of type `from` is one of type `to`.
bool Holds(PrimitiveType to, PrimitiveType from) {
  const auto integral = [](PrimitiveType t) { return IsIntegral(t) || t == PrimitiveType::Pred; };
  const auto digits = [](PrimitiveType t) {
    return t == PrimitiveType::Pred ? 1 : static_cast<int>(BitWidth(t)) - (IsSigned(t) ? 1 : 0);
  };
  if (!integral(from)) return false;
  if (integral(to)) return to != PrimitiveType::Pred && (IsSigned(to) || !IsSigned(from)) && digits(to) >= digits(from);
  return IsFloat(to) && InfoOf(to).flavour == FloatFlavour::Ieee && InfoOf(to).mantissa_bits + 1 >= digits(from) &&
         (1 << (InfoOf(to).exponent_bits - 1)) > digits(from);
}

// integer -> type that holds all its values -> the same integer type.
Instruction* ConvertBack(Instruction* i) {
  Instruction* inner = i->operand(0);
  if (!inner->Is(Opcode::Convert)) return nullptr;
  Instruction* x = inner->operand(0);
  return x->shape().type() == i->shape().type() && Holds(inner->shape().type(), x->shape().type()) ? x : nullptr;
}

// convert(convert(a) op convert(b)) in the type of a and b, whose wrapped results are the low bits of the wide ones.
Instruction* InNarrowType(Instruction* i) {
  Instruction* f = i->operand(0);
  const PrimitiveType t = i->shape().type();
  const bool wraps = f->Is(Opcode::Add) || f->Is(Opcode::Subtract) || f->Is(Opcode::Multiply);
  const bool unsigned_only = f->Is(Opcode::Divide) || f->Is(Opcode::Remainder);
  if (!(wraps || (unsigned_only && IsUnsigned(t))) || !HasOneUser(f) || BitWidth(t) < 8) return nullptr;
  std::vector<Instruction*> narrow;
  for (Instruction* o : f->operands()) {
    if (!o->Is(Opcode::Convert) || !HasOneUser(o) || o->operand(0)->shape().type() != t) return nullptr;
    narrow.push_back(o->operand(0));
  }
  const PrimitiveType wide = f->shape().type();
  if (!IsIntegral(wide) || IsSigned(wide) != IsSigned(t) || BitWidth(wide) <= BitWidth(t)) return nullptr;
  // By zero, division gives all ones, which the narrow type has fewer of: the same once converted.
  return i->parent()->AddClone(f, i->shape(), std::move(narrow));
}

// Of a bitcast-convert, or of one that changed nothing.
Instruction* BitcastConvertAgain(Instruction* i) {
  Instruction* x = i->operand(0);
  if (x->shape().Compatible(i->shape())) return x;
  return x->Is(Opcode::BitcastConvert) ? Over(i, {x->operand(0)}) : nullptr;
}

// What was regrouped to be concatenated, and is regrouped back.
Instruction* BitcastConvertOfPieces(Instruction* i) {
  const Instruction* c = i->operand(0);
  if (!c->Is(Opcode::Concatenate)) return nullptr;
  const int64_t d = (*c->attrs().dimensions)[0];
  std::vector<Expr> parts;
  for (Instruction* o : c->operands()) {
    if (!o->Is(Opcode::BitcastConvert)) return nullptr;
    const Shape& x = o->operand(0)->shape();
    if (x.type() != i->shape().type() || x.rank() != i->shape().rank() || d >= x.rank()) return nullptr;
    parts.emplace_back(o->operand(0));
  }
  // Concatenated along the dimension that the elements were split into, they would be regrouped across pieces.
  if (d == i->shape().rank() || (c->shape().rank() > i->shape().rank() && d == c->shape().rank() - 1)) return nullptr;
  return ConcatOf(parts, d).get();
}

// bitcast(f(bitcast(x))) is bitcast(f(x)) for an f of one array, element by element.
Instruction* AroundFunction(Instruction* i) {
  Instruction* f = i->operand(0);
  if (!f->IsElementwise() || f->operand_count() != 1 || f->Is(Opcode::Copy) || !HasOneUser(f) || f->IsRoot())
    return nullptr;
  const Instruction* inner = f->operand(0);
  if (!inner->Is(Opcode::Bitcast)) return nullptr;
  Instruction* x = inner->operand(0);
  const auto like = [](const Instruction* a, const Instruction* b) { return a->shape().type() == b->shape().type(); };
  if (!like(x, inner) || !like(i, f) || HasOwnLayout(x) || HasOwnLayout(inner) || HasOwnLayout(f) || HasOwnLayout(i))
    return nullptr;
  Shape shape = x->shape();
  shape.set_type(f->shape().type());
  return Over(i, {i->parent()->AddClone(f, shape, {x})});
}

const Rule kRules[] = {
    {"convert-back",
     {Opcode::Convert},
     kInts | kPred,
     Numerics::Exact,
     "a = s16[4,6] convert(k)\n b = s32[4,6] convert(a)\n ROOT r = s16[4,6] convert(b)",
     "a = s16[4,6] convert(k)\n b = s8[4,6] convert(a)\n ROOT r = s16[4,6] convert(b)",
     ConvertBack},
    {"arithmetic-in-narrow-type",
     {Opcode::Convert},
     kInts,
     Numerics::Exact,
     "v = u8[4,6] convert(p)\n a = u32[4,6] convert(v)\n w = u8[4,6] convert(q)\n b = u32[4,6] convert(w)\n"
     " m = u32[4,6] multiply(a, b)\n ROOT r = u8[4,6] convert(m)",
     "v = u8[4,6] convert(p)\n a = u32[4,6] convert(v)\n w = u8[4,6] convert(q)\n b = u32[4,6] convert(w)\n"
     " m = u32[4,6] maximum(a, b)\n ROOT r = u8[4,6] convert(m)",
     InNarrowType},
    {"bitcast-convert-again",
     {Opcode::BitcastConvert},
     kAllTypes,
     Numerics::Exact,
     "a = $T[4,6] bitcast-convert(p)\n ROOT r = $T[4,6] bitcast-convert(a)",
     "f = f32[4,6] convert(k)\n ROOT r = s32[4,6] bitcast-convert(f)",
     BitcastConvertAgain},
    {"bitcast-convert-of-pieces",
     {Opcode::BitcastConvert},
     kInts | kFloats,
     Numerics::Exact,
     "v = u8[4,6] convert(k)\n a = s8[4,6] bitcast-convert(v)\n c = s8[8,6] concatenate(a, a), dimensions={0}\n"
     " ROOT r = u8[8,6] bitcast-convert(c)",
     "v = u8[4,6] convert(k)\n a = s8[4,6] bitcast-convert(v)\n w = s8[4,6] convert(v)\n"
     " c = s8[8,6] concatenate(a, w), dimensions={0}\n ROOT r = u8[8,6] bitcast-convert(c)",
     BitcastConvertOfPieces},
    {"complex-of-parts",
     {Opcode::Complex},
     kComplex,
     Numerics::Exact,
     "a = f32[4,6] real(p)\n b = f32[4,6] imag(p)\n ROOT r = c64[4,6] complex(a, b)",
     "a = f32[4,6] real(p)\n b = f32[4,6] imag(p)\n ROOT r = c64[4,6] complex(b, a)",
     [](Instruction* i) {
       const Instruction *a = i->operand(0), *b = i->operand(1);
       const bool parts = a->Is(Opcode::Real) && b->Is(Opcode::Imag) && a->operand(0) == b->operand(0);
       return parts ? a->operand(0) : nullptr;
     }},
    {"real-of-real",
     {Opcode::Real},
     kFloats,
     Numerics::Exact,
     "ROOT r = $T[4,6] real(p)",
     "f = f32[4,6] convert(k)\n c = c64[4,6] complex(f, f)\n ROOT r = f32[4,6] real(c)",
     [](Instruction* i) { return IsComplex(i->operand(0)->shape().type()) ? nullptr : i->operand(0); }},
    {"imag-of-real",
     {Opcode::Imag},
     kFloats,
     Numerics::Exact,
     "ROOT r = $T[4,6] imag(p)",
     "f = f32[4,6] convert(k)\n c = c64[4,6] complex(f, f)\n ROOT r = f32[4,6] imag(c)",
     [](Instruction* i) { return IsComplex(i->operand(0)->shape().type()) ? nullptr : Filled(i, 0); }},
    {"bitcast-of-bitcast",
     {Opcode::Bitcast},
     kAllTypes,
     Numerics::Exact,
     "a = $T[24] bitcast(p)\n ROOT r = $T[6,4] bitcast(a)",
     "ROOT r = $T[6,4] bitcast(p)",
     [](Instruction* i) -> Instruction* {
       Instruction* x = i->operand(0);
       if (x->shape() == i->shape()) return x;
       return x->Is(Opcode::Bitcast) ? Over(i, {x->operand(0)}) : nullptr;
     }},
    {"bitcast-around-function",
     {Opcode::Bitcast},
     kInts | kFloats | kComplex,
     Numerics::Exact,
     "a = $T[24] bitcast(p)\n n = $T[24] negate(a)\n ROOT r = $T[6,4] bitcast(n)",
     "a = $T[24] bitcast(p)\n n = $T[24] add(a, a)\n ROOT r = $T[6,4] bitcast(n)",
     AroundFunction},
    {"copy-to-itself",
     {Opcode::Copy},
     kAllTypes,
     Numerics::Exact,
     "ROOT r = $T[4,6] copy(p)",
     "ROOT r = $T[4,6]{0,1} copy(p)",
     [](Instruction* i) {
       return i->operand(0)->shape() == i->shape() && !i->attrs().sharding ? i->operand(0) : nullptr;
     }},
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
