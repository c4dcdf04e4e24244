// Reshapes of reshapes, of what is one value, and of iotas.
#include <algorithm>

#include "compiler/passes/simplify/rules/rule.h"
#include "compiler/passes/simplify/rules/terms.h"

namespace kiln {
namespace {

Instruction* OfScalarBroadcast(Instruction* i) {
  Instruction* x = i->operand(0);
  if (!x->Is(Opcode::Broadcast) || x->operand(0)->shape().ElementCount() != 1) return nullptr;
  return BroadcastTo(ReshapeTo(x->operand(0), {}), i->shape().dims()).get();
}

// The dimensions of `to` that the dimensions `kept` of `from` are once the rest is reshaped; null if one is not whole.
std::optional<Ints> Unmoved(const Ints& from, const Ints& to, const Ints& kept) {
  Ints out;
  size_t e = 0;
  int64_t reached = 1;  // elements of the dimensions of `to` before e
  for (int64_t k : kept) {
    const int64_t before = Product(Ints(from.begin(), from.begin() + k)), n = from[static_cast<size_t>(k)];
    while (e < to.size() && (reached < before || (reached == before && to[e] == 1 && n != 1))) reached *= to[e++];
    if (e == to.size() || reached != before || to[e] != n) return std::nullopt;
    out.push_back(static_cast<int64_t>(e));
    reached *= to[e++];
  }
  return out;
}

// A reshape that leaves what is repeated whole repeats it itself.
Instruction* OfBroadcast(Instruction* i) {
  Instruction* b = i->operand(0);
  if (!b->Is(Opcode::Broadcast) || HasOwnLayout(i) || i->shape().ElementCount() == 0) return nullptr;
  const Ints& map = *b->attrs().dimensions;
  if (!std::is_sorted(map.begin(), map.end())) return nullptr;
  const std::optional<Ints> to = Unmoved(b->shape().dims(), i->shape().dims(), map);
  return to ? BroadcastTo(b->operand(0), i->shape().dims(), *to).get() : nullptr;
}

// A reshape that only inserts or drops extents 1 takes an update and its starts with it.
Instruction* OfUpdate(Instruction* i) {
  Instruction* update = i->operand(0);
  if (!update->Is(Opcode::DynamicUpdateSlice) || !HasOneUser(update) || HasOwnLayout(i) || update->attrs().sharding ||
      update->operand_count() != 2 + update->shape().rank())
    return nullptr;
  const Shape& u = update->operand(1)->shape();
  std::vector<Expr> starts;
  Ints sizes;
  int64_t from = 0;
  const auto skip_ones = [&] {
    while (from < update->shape().rank() && update->shape().dim(from) == 1) ++from;
  };
  for (int64_t n : i->shape().dims()) {
    if (n != 1) skip_ones();
    if (n != 1 && (from == update->shape().rank() || update->shape().dim(from) != n)) return nullptr;
    Instruction* like = update->operand_count() > 2 ? update->operand(2) : nullptr;
    if (!like) return nullptr;
    sizes.push_back(n == 1 ? 1 : u.dim(from));
    starts.push_back(n == 1 ? IntegerIn(i->parent(), like->shape().type(), 0) : Expr(update->operand(2 + from)));
    if (n != 1) ++from;
  }
  skip_ones();
  if (from != update->shape().rank() || Product(sizes) != u.ElementCount() || u.ElementCount() == 0) return nullptr;
  return UpdateOf(ReshapeTo(update->operand(0), i->shape().dims()), ReshapeTo(update->operand(1), sizes), starts).get();
}

Ints WithoutOnes(const Ints& dims) {
  Ints out;
  for (int64_t n : dims)
    if (n != 1) out.push_back(n);
  return out;
}

// The positions in `x` of the dimensions of its operand that are not 1, for a transpose; else their own.
Ints MovedBy(const Instruction* x) {
  Ints order;  // operand dimensions, as the result has them
  for (int64_t d = 0; d < x->shape().rank(); ++d)
    if (x->shape().dim(d) != 1) order.push_back(x->Is(Opcode::Transpose) ? (*x->attrs().dimensions)[d] : d);
  Ints sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t& d : order) d = std::find(sorted.begin(), sorted.end(), d) - sorted.begin();
  return order;
}

// Reshapes that only insert or drop extents 1, and transposes, which together move nothing.
Instruction* OfChain(Instruction* i) {
  constexpr int kMostSteps = 16;
  if (HasOwnLayout(i)) return nullptr;
  Ints at;  // where the dimensions of `i` that are not 1 are among those of x
  for (size_t k = 0; k < WithoutOnes(i->shape().dims()).size(); ++k) at.push_back(static_cast<int64_t>(k));
  const Ints identity = at;
  Instruction* x = i;
  for (int step = 0; step < kMostSteps; ++step) {
    const Instruction* below = x;
    if (!below->Is(Opcode::Reshape) && !below->Is(Opcode::Transpose)) return nullptr;
    x = below->operand(0);
    if (below->Is(Opcode::Reshape) && WithoutOnes(x->shape().dims()) != WithoutOnes(below->shape().dims()))
      return nullptr;
    const Ints moved = MovedBy(below);
    for (int64_t& d : at) d = moved[static_cast<size_t>(d)];
    if (at == identity && x->shape().dims() == i->shape().dims()) return x;
  }
  return nullptr;
}

Instruction* OfConstant(Instruction* i) {
  Instruction* x = i->operand(0);
  if (!x->Is(Opcode::Constant) || x->users().size() != 1) return nullptr;
  return i->parent()->AddConstant(x->literal().Reshaped(i->shape()));
}

// An iota that only gains or loses extents 1 stays an iota.
Instruction* OfIota(Instruction* i) {
  const Instruction* x = i->operand(0);
  if (!x->Is(Opcode::Iota) || i->shape().rank() == 0) return nullptr;
  Ints from, to;
  int64_t from_pos = -1, to_dim = -1, pos = 0;
  for (int64_t d = 0; d < x->shape().rank(); ++d)
    if (x->shape().dim(d) != 1) {
      if (d == *x->attrs().iota_dimension) from_pos = static_cast<int64_t>(from.size());
      from.push_back(x->shape().dim(d));
    }
  for (int64_t d = 0; d < i->shape().rank(); ++d)
    if (i->shape().dim(d) != 1) {
      if (pos++ == from_pos) to_dim = d;
      to.push_back(i->shape().dim(d));
    }
  if (from != to || to_dim < 0) return nullptr;
  return IotaOf(i->parent(), i->shape().type(), i->shape().dims(), to_dim).get();
}

// An iota whose dimension becomes one or two: each counts by the elements of those behind it. More would cost more than
// the index that they stand for.
Instruction* OfCutIota(Instruction* i) {
  const Instruction* x = i->operand(0);
  if (!x->Is(Opcode::Iota) || x->shape().ElementCount() == 0) return nullptr;
  const Ints &from = x->shape().dims(), &to = i->shape().dims();
  const auto at = static_cast<size_t>(*x->attrs().iota_dimension);
  const int64_t inner = Product(Ints(from.begin() + static_cast<int64_t>(at) + 1, from.end()));
  std::optional<Expr> sum;
  int parts = 0;
  int64_t stride = 1;  // elements of the dimensions of `to` behind d
  for (auto d = static_cast<int64_t>(to.size()) - 1; d >= 0; stride *= to[static_cast<size_t>(d--)]) {
    const int64_t n = to[static_cast<size_t>(d)], next = stride * n;
    if (n == 1 || next <= inner || stride >= inner * from[at]) continue;
    // A dimension of the result that is only in part one of the iota's.
    if (stride < inner || stride % inner != 0 || next > inner * from[at] || (inner * from[at]) % next != 0)
      return nullptr;
    if (++parts > 2) return nullptr;
    const Expr part = IotaOf(i->parent(), i->shape().type(), to, d);
    const Expr scaled = stride == inner ? part : part * static_cast<double>(stride / inner);
    sum = sum ? *sum + scaled : scaled;
  }
  return sum ? sum->get() : nullptr;
}

// A reshape that cuts the dimension of which a slice took whole pieces: the slice takes them behind it. What follows
// then reads the slice's operand, as heads of attention are read out of the product for queries, keys and values.
Instruction* OfSliceOfPieces(Instruction* i) {
  Instruction* s = i->operand(0);
  if (!s->Is(Opcode::Slice) || !HasOneUser(s) || HasOwnLayout(i) || i->shape().ElementCount() == 0) return nullptr;
  Instruction* x = s->operand(0);
  int64_t cut = -1, before = 1;
  for (int64_t d = 0; d < s->shape().rank(); ++d) {
    if ((*s->attrs().slice)[static_cast<size_t>(d)].stride != 1) return nullptr;
    if (s->shape().dim(d) == x->shape().dim(d)) continue;
    if (cut >= 0) return nullptr;
    cut = d;
  }
  for (int64_t d = 0; d < cut; ++d) before *= s->shape().dim(d);
  if (cut < 0 || before == 1) return nullptr;  // rows stay rows: slice-of-reshape
  // The first piece of the dimension in the result, and how many elements each has.
  const Ints& to = i->shape().dims();
  size_t first = 0;
  for (int64_t reached = 1; first < to.size() && (reached < before || to[first] == 1);) reached *= to[first++];
  const Ints head(to.begin(), to.begin() + static_cast<ptrdiff_t>(first));
  if (first == to.size() || Product(head) != before) return nullptr;
  const int64_t n = s->shape().dim(cut), piece = to[first] > 0 ? n / to[first] : 0;
  const SliceDim& taken = (*s->attrs().slice)[static_cast<size_t>(cut)];
  if (to[first] * piece != n || piece == 1 || taken.start % piece != 0 || x->shape().dim(cut) % piece != 0)
    return nullptr;
  Ints whole = to, from(to.size()), limit = to;
  whole[first] = x->shape().dim(cut) / piece;
  from[first] = taken.start / piece;
  limit[first] = from[first] + to[first];
  return SliceOf(ReshapeTo(x, whole), from, limit).get();
}

const Rule kRules[] = {
    {"reshape-to-itself",
     {Opcode::Reshape},
     kAllTypes,
     Numerics::Exact,
     "ROOT r = $T[4,6] reshape(p)",
     "ROOT r = $T[6,4] reshape(p)",
     [](Instruction* i) { return i->shape().dims() == i->operand(0)->shape().dims() ? i->operand(0) : nullptr; }},
    {"reshape-of-nothing",
     {Opcode::Reshape},
     kAllTypes,
     Numerics::Exact,
     "n = $T[0,6] slice(p), slice={[0:0], [0:6]}\n ROOT r = $T[3,0] reshape(n)",
     "ROOT r = $T[6,4] reshape(p)",
     [](Instruction* i) { return i->shape().ElementCount() == 0 ? Filled(i, 0) : nullptr; }},
    {"reshapes-and-transposes-that-undo",
     {Opcode::Reshape, Opcode::Transpose},
     kAllTypes,
     Numerics::Exact,
     "a = $T[6,4] transpose(p), dimensions={1,0}\n b = $T[6,1,4] reshape(a)\n"
     " c = $T[4,1,6] transpose(b), dimensions={2,1,0}\n ROOT r = $T[4,6] reshape(c)",
     "b = $T[6,1,4] reshape(p)\n c = $T[4,1,6] transpose(b), dimensions={2,1,0}\n ROOT r = $T[4,6] reshape(c)",
     OfChain},
    {"reshape-of-reshape",
     {Opcode::Reshape},
     kAllTypes,
     Numerics::Exact,
     "a = $T[24] reshape(p)\n ROOT r = $T[6,4] reshape(a)",
     "ROOT r = $T[6,4] reshape(p)",
     [](Instruction* i) -> Instruction* {
       Instruction* x = i->operand(0);
       return x->Is(Opcode::Reshape) ? ReshapeTo(x->operand(0), i->shape().dims()).get() : nullptr;
     }},
    {"reshape-of-scalar-broadcast",
     {Opcode::Reshape},
     kAllTypes,
     Numerics::Exact,
     "b = $T[4,6] broadcast(s), dimensions={}\n ROOT r = $T[24] reshape(b)",
     "b = $T[4,6,2] broadcast(p), dimensions={0,1}\n ROOT r = $T[48] reshape(b)",
     OfScalarBroadcast},
    {"reshape-of-broadcast",
     {Opcode::Reshape},
     kAllTypes,
     Numerics::Exact,
     "b = $T[2,3,4,6] broadcast(p), dimensions={2,3}\n ROOT r = $T[6,4,6,1] reshape(b)",
     "b = $T[2,4,6] broadcast(p), dimensions={1,2}\n ROOT r = $T[8,6] reshape(b)",
     OfBroadcast},
    {"reshape-of-update",
     {Opcode::Reshape},
     kAllTypes,
     Numerics::Exact,
     "u = $T[2,3] slice(q), slice={[0:2], [0:3]}\n n = s32[] constant(1)\n"
     " d = $T[4,6] dynamic-update-slice(p, u, n, n)\n ROOT r = $T[4,1,6] reshape(d)",
     "u = $T[2,3] slice(q), slice={[0:2], [0:3]}\n n = s32[] constant(1)\n"
     " d = $T[4,6] dynamic-update-slice(p, u, n, n)\n ROOT r = $T[24] reshape(d)",
     OfUpdate},
    {"reshape-of-slice-of-pieces",
     {Opcode::Reshape},
     kAllTypes,
     Numerics::Exact,
     "b = $T[4,4] slice(p), slice={[0:4], [2:6]}\n ROOT r = $T[2,2,2,2] reshape(b)",
     "b = $T[4,4] slice(p), slice={[0:4], [1:5]}\n ROOT r = $T[2,2,2,2] reshape(b)",
     OfSliceOfPieces,
     true},
    {"reshape-of-constant",
     {Opcode::Reshape},
     kAllTypes,
     Numerics::Exact,
     "c = $T[2,2] constant({{0, 1}, {1, 0}})\n ROOT r = $T[4] reshape(c)",
     "c = $T[2,2] constant({{0, 1}, {1, 0}})\n r = $T[4] reshape(c)\n ROOT t = ($T[4], $T[2,2]) tuple(r, c)",
     OfConstant},
    {"reshape-of-iota",
     {Opcode::Reshape},
     kInts | kFloats | kComplex,
     Numerics::Exact,
     "n = $T[1,6] iota(), iota_dimension=1\n ROOT r = $T[6] reshape(n)",
     "n = $T[2,3] iota(), iota_dimension=1\n ROOT r = $T[6] reshape(n)",
     OfIota},
    {"reshape-that-cuts-iota",
     {Opcode::Reshape},
     kInts,
     Numerics::Exact,
     "n = $T[2,12,5] iota(), iota_dimension=1\n ROOT r = $T[2,1,3,4,5] reshape(n)",
     "n = $T[2,12,5] iota(), iota_dimension=1\n ROOT r = $T[2,3,20] reshape(n)",
     OfCutIota},
};

}  // namespace

absl::Span<const Rule> ReshapeRules() { return kRules; }

}  // namespace kiln
