// rng as random bits of a state that the program keeps between runs (Philox), shaped to the distribution asked for.
#include <cmath>

#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

// Random words of `t` with the extents `dims`.
Expr Words(Computation* c, PrimitiveType t, const Ints& dims) {
  // One block of Philox gives 128 bits; the state moves on by as many as are taken.
  const int64_t bits = InfoOf(t).bits;
  Instruction* state = c->Add(Opcode::RngGetAndUpdateState, Shape::Array(PrimitiveType::U64, {2}), {});
  state->mutable_attrs().delta = (Product(dims) * bits + 127) / 128;
  Instruction* words = c->Add(Opcode::RngBitGenerator, Shape::Tuple({state->shape(), Shape::Array(t, dims)}), {state});
  words->mutable_attrs().algorithm = attr::Raw("rng_philox");
  Instruction* g = PartOf(words, 1).get();
  return g;
}

// In [0, 1): as many bits as the mantissa holds.
Expr Unit(Computation* c, PrimitiveType t, const Ints& dims) {
  const bool wide = t == PrimitiveType::F64;
  const int kept = wide ? 53 : 24;
  Expr words = Words(c, wide ? PrimitiveType::U64 : PrimitiveType::U32, dims);
  words = Binary(Opcode::ShiftRightLogical, words, words.Like(wide ? 11 : 8));
  return ConvertTo(t, words) * std::ldexp(1.0, -kept);
}

absl::StatusOr<Instruction*> Expand(Instruction* i) {
  Computation* c = i->parent();
  const PrimitiveType t = i->shape().type();
  const Ints dims = i->shape().dims();
  const Distribution how = *i->attrs().distribution;
  Expr a = i->operand(0), b = i->operand(1);
  auto spread = [&](Expr x) { return BroadcastTo(x, dims); };
  if (IsIntegral(t) && how == Distribution::rng_uniform) {
    Expr words = Words(c, InfoOf(t).bits > 32 ? PrimitiveType::U64 : PrimitiveType::U32, dims);
    Expr range = ConvertTo(words.type(), spread(b) - spread(a));
    return (spread(a) + ConvertTo(t, Binary(Opcode::Remainder, words, range))).get();
  }
  if (!IsFloat(t))
    return ErrorAt(i, absl::StrCat("'", TextOf(how), "' has no meaning on ", TextOf(t)),
                   absl::StatusCode::kUnimplemented);
  const PrimitiveType wide = t == PrimitiveType::F64 ? t : PrimitiveType::F32;
  if (how == Distribution::rng_uniform) {
    Expr low = ConvertTo(wide, spread(a)), high = ConvertTo(wide, spread(b));
    return ConvertTo(t, low + Unit(c, wide, dims) * (high - low)).get();
  }
  // Box and Muller: a radius from one uniform number, an angle from another.
  Expr u = 1.0 - Unit(c, wide, dims), angle = Unit(c, wide, dims) * (2 * M_PI);
  Expr radius = Unary(Opcode::Sqrt, Unary(Opcode::Log, u) * -2.0);
  Expr normal = radius * Unary(Opcode::Cosine, angle);
  return ConvertTo(t, ConvertTo(wide, spread(a)) + normal * ConvertTo(wide, spread(b))).get();
}

}  // namespace

absl::StatusOr<bool> RngExpander(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](Instruction* i) { return i->Is(Opcode::Rng); }, Expand);
}

}  // namespace kiln
