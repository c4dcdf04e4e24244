// Evaluator: numbers that the program draws: Philox over a key that is fixed and a counter of the blocks taken, as kiln
// defines rng. Two draws that nothing orders may be taken in either order.
#include <algorithm>
#include <cmath>

#include "compiler/eval/evaluator.h"
#include "compiler/eval/families.h"

namespace kiln {
namespace {

constexpr uint64_t kKey = 0x5eed0fc0ffee1234;
// Of the thread, since devices evaluate on threads of their own.
thread_local uint64_t taken;

Literal TakeState(uint64_t blocks) {
  Literal state(Shape::Array(PrimitiveType::U64, {2}));
  Element e;
  e.i = static_cast<int64_t>(kKey);
  state.Set(0, e);
  e.i = static_cast<int64_t>(taken);
  state.Set(1, e);
  taken += blocks;
  return state;
}

// Random words of `t` with the extents `dims`.
absl::StatusOr<Literal> Words(PrimitiveType t, const Ints& dims) {
  const Literal state = TakeState(static_cast<uint64_t>((Product(dims) * InfoOf(t).bits + 127) / 128));
  Module m("words");
  Computation* c = m.AddComputation("words");
  Instruction* i = c->Add(Opcode::RngBitGenerator, Shape::Tuple({state.shape(), Shape::Array(t, dims)}),
                          {c->AddParameter(0, state.shape(), "state")});
  i->mutable_attrs().algorithm = attr::Raw("rng_philox");
  ASSIGN_OR_RETURN(const Literal both, EvaluateInstruction(*i, {&state}));
  return both.elements()[1];
}

absl::StatusOr<Literal> Rng(const Instruction& i, const Shape& shape, const Literal& a, const Literal& b) {
  const Distribution how = *i.attrs().distribution;
  const PrimitiveType t = shape.type();
  const bool uniform = how == Distribution::rng_uniform,
             wide = t == PrimitiveType::F64 || (!IsFloat(t) && InfoOf(t).bits > 32);
  if ((!uniform && !IsFloat(t)) || IsComplex(t) || t == PrimitiveType::Pred)
    return ErrorAt(&i, absl::StrCat("distribution '", TextOf(how), "' has no meaning on ", TextOf(t)),
                   absl::StatusCode::kUnimplemented);
  const PrimitiveType word = wide ? PrimitiveType::U64 : PrimitiveType::U32;
  ASSIGN_OR_RETURN(const Literal first, Words(word, shape.dims()));
  Literal second = first;
  if (!uniform) {
    ASSIGN_OR_RETURN(second, Words(word, shape.dims()));
  }
  // Every step is rounded to the type that computes.
  auto round = [&](double v) { return wide ? v : static_cast<double>(static_cast<float>(v)); };
  auto unit = [&](const Literal& words, int64_t n) {
    const uint64_t w = static_cast<uint64_t>(words.Get(n).i);
    return wide ? static_cast<double>(w >> 11) * 0x1p-53 : static_cast<double>(w >> 8) * 0x1p-24;
  };
  Literal out(shape);
  for (int64_t n = 0; n < out.size(); ++n) {
    const Element low = a.Get(0), high = b.Get(0);
    Element e;
    if (!IsFloat(t)) {
      const uint64_t mask = wide ? ~uint64_t{0} : 0xffffffff;
      const uint64_t range = static_cast<uint64_t>(WrapInt(t, high.i - low.i)) & mask;
      if (range == 0) return ErrorAt(&i, "draws from an empty range");
      e.i = low.i + static_cast<int64_t>(static_cast<uint64_t>(first.Get(n).i) % range);
    } else if (uniform) {
      e.re = round(low.re + round(unit(first, n) * round(high.re - low.re)));
    } else {
      const double radius = round(std::sqrt(round(round(std::log(1 - unit(first, n))) * -2)));
      const double angle = round(unit(second, n) * round(2 * M_PI));
      e.re = round(low.re + round(round(radius * round(std::cos(angle))) * high.re));
    }
    out.Set(n, e);
  }
  return out;
}

}  // namespace

absl::StatusOr<Literal> EvalRandom(const Instruction& i, const Shape& shape, const std::vector<const Literal*>& x) {
  if (i.Is(Opcode::Rng)) {
    if (x.size() < 2) return ErrorAt(&i, "takes the two parameters of its distribution");
    return Rng(i, shape, *x[0], *x[1]);
  }
  if (!i.Is(Opcode::RngGetAndUpdateState)) return absl::NotFoundError("");
  if (shape.type() != PrimitiveType::U64 || shape.dims() != Ints{2})
    return ErrorAt(&i, "the state is u64[2]", absl::StatusCode::kUnimplemented);
  return TakeState(static_cast<uint64_t>(i.attrs().delta.value_or(1)));
}

void ForgetRandomState() { taken = 0; }

}  // namespace kiln
