// Random bits by threefry (2 x 32, 20 rounds) and philox (4 x 32, 10 rounds) as integer arithmetic: the same bits as
// the kernel's, for a target without one. States of u64 and results of 32 and 64 bits.
#include "compiler/hlo/random_bits.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

using P = PrimitiveType;

Expr Right(Expr x, int n) { return Binary(Opcode::ShiftRightLogical, x, x.Like(n)); }
Expr Left(Expr x, int n) { return Binary(Opcode::ShiftLeft, x, x.Like(n)); }
Expr Xor(Expr a, Expr b) { return Binary(Opcode::Xor, a, b); }
Expr Low(Expr x) { return ConvertTo(P::U32, x); }
Expr High(Expr x) { return ConvertTo(P::U32, Right(x, 32)); }
Expr Wide(Expr low, Expr high) { return ConvertTo(P::U64, low) | Left(ConvertTo(P::U64, high), 32); }

Expr StateWord(Expr state, int64_t k, const Ints& dims) {
  return BroadcastTo(ReshapeTo(SliceOf(state, {k}, {k + 1}), {}), dims);
}

struct Bits {
  Expr bits;
  int64_t blocks;
};

std::pair<Expr, Expr> Threefry(Expr k0, Expr k1, Expr x, Expr y) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const Expr keys[3] = {k0, k1, Xor(Xor(k0, k1), k0.Like(0x1BD11BDA))};
  x = x + k0;
  y = y + k1;
  for (int r = 0; r < 5; ++r) {
    for (int n : kRotations[r % 2]) {
      x = x + y;
      y = Xor(x, Left(y, n) | Right(y, 32 - n));
    }
    x = x + keys[(r + 1) % 3];
    y = y + keys[(r + 2) % 3] + static_cast<double>(r + 1);
  }
  return {x, y};
}

// `a` and `b` in turn along dimension `d`.
Expr Interleave(const std::vector<Expr>& parts, int64_t d) {
  Ints dims = parts[0].shape().dims(), one = dims;
  one.insert(one.begin() + d + 1, 1);
  std::vector<Expr> columns;
  for (const Expr& p : parts) columns.push_back(ReshapeTo(p, one));
  dims[d] *= static_cast<int64_t>(parts.size());
  return ReshapeTo(ConcatOf(columns, d + 1), dims);
}

Bits ThreefryBits(Expr state, const Shape& s) {
  Computation* c = state.computation();
  const bool wide = BitWidth(s.type()) == 64;
  Ints dims = s.dims();
  if (dims.empty()) dims = {1};
  const int64_t d = ThreefryDimension(dims);
  Ints half = dims;
  if (!wide) half[d] = (dims[d] + 1) / 2;
  const int64_t blocks = Product(half);
  Expr counter = ReshapeTo(IotaOf(c, P::U64, {blocks}, 0), half) + StateWord(state, 1, half);
  Expr key = StateWord(state, 0, half);
  auto [x, y] = Threefry(Low(key), High(key), Low(counter), High(counter));
  if (wide) return {ReshapeTo(Wide(x, y), s.dims()), blocks};
  Expr both = Interleave({x, y}, d);
  return {ReshapeTo(SliceOf(both, Ints(dims.size(), 0), dims), s.dims()), blocks};
}

Bits PhiloxBits(Expr state, const Shape& s) {
  Computation* c = state.computation();
  const bool wide = BitWidth(s.type()) == 64;
  const int64_t n = s.ElementCount(), per = wide ? 2 : 4, blocks = (n + per - 1) / per;
  const Ints dims = {blocks};
  Expr low = StateWord(state, 1, dims), high = StateWord(state, state.shape().dim(0) > 2 ? 2 : 0, dims);
  Expr counter = low + IotaOf(c, P::U64, dims, 0);
  Expr top = high + ConvertTo(P::U64, counter < low);
  Expr key = StateWord(state, 0, dims), k0 = Low(key), k1 = High(key);
  Expr x[4] = {Low(counter), High(counter), Low(top), High(top)};
  for (int r = 0; r < 10; ++r) {
    Expr p0 = ConvertTo(P::U64, x[0]), p1 = ConvertTo(P::U64, x[2]);
    p0 = p0 * p0.Like(0xD2511F53);
    p1 = p1 * p1.Like(0xCD9E8D57);
    const Expr next[4] = {Xor(Xor(High(p1), x[1]), k0), Low(p1), Xor(Xor(High(p0), x[3]), k1), Low(p0)};
    std::copy(next, next + 4, x);
    k0 = k0 + k0.Like(0x9E3779B9);
    k1 = k1 + k1.Like(0xBB67AE85);
  }
  Expr words = wide ? Interleave({Wide(x[0], x[1]), Wide(x[2], x[3])}, 0) : Interleave({x[0], x[1], x[2], x[3]}, 0);
  return {ReshapeTo(SliceOf(words, {0}, {n}), s.dims()), blocks};
}

// The state with its counter `blocks` further.
Expr Advanced(Expr state, int64_t blocks, bool philox) {
  Expr key = SliceOf(state, {0}, {1}), low = SliceOf(state, {1}, {2});
  Expr next = low + static_cast<double>(blocks);
  std::vector<Expr> parts = {key, next};
  if (state.shape().dim(0) > 2) {
    Expr high = SliceOf(state, {2}, {3});
    parts.push_back(philox ? high + ConvertTo(P::U64, next < low) : high);
  }
  return ConcatOf(parts, 0);
}

}  // namespace

absl::StatusOr<bool> RngBitGeneratorExpander(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) {
        if (!i->Is(Opcode::RngBitGenerator)) return false;
        const Shape &state = i->operand(0)->shape(), &bits = i->shape().tuple()[1];
        return state.type() == P::U64 && state.dim(0) <= 3 && (bits.type() == P::U32 || bits.type() == P::U64) &&
               bits.ElementCount() > 0;
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        const bool philox = !i->attrs().algorithm || *i->attrs().algorithm != "rng_three_fry";
        const Shape& s = i->shape().tuple()[1];
        const Bits b = philox ? PhiloxBits(i->operand(0), s) : ThreefryBits(i->operand(0), s);
        return TupleOf({Advanced(i->operand(0), b.blocks, philox), b.bits});
      });
}

}  // namespace kiln
