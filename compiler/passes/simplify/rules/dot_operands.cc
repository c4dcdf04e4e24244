// Dots whose operands or results were moved about, and reductions of dots.
#include <algorithm>

#include "compiler/passes/simplify/dot_form.h"
#include "compiler/passes/simplify/rules/pattern.h"
#include "compiler/passes/simplify/rules/permutation.h"
#include "compiler/passes/simplify/rules/reducer.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

Ints FirstDims(int64_t n) {
  Ints out;
  for (int64_t d = 0; d < n; ++d) out.push_back(d);
  return out;
}

bool HasOneUser(const Instruction* i) { return i->users().size() == 1 && !i->IsRoot(); }

// [batch, m, k] x [batch, k, n], all batch dimensions in front and in order.
bool IsMatrixProduct(const Instruction* i) {
  const DotSide l = SideOf(i, 0), r = SideOf(i, 1);
  const auto b = static_cast<int64_t>(l.batch.size());
  return l.batch == FirstDims(b) && r.batch == l.batch && l.contracting == Ints{b + 1} && r.contracting == Ints{b} &&
         l.free.size() == 1 && r.free.size() == 1;
}

// Operands transposed alike, within the batch or by exchange of the last two dimensions: the product is transposed
// instead. (a^T b^T) is (b a)^T.
Instruction* OfTransposes(Instruction* i) {
  if (!IsPlainDot(i) || !i->operand(0)->Is(Opcode::Transpose) || !i->operand(1)->Is(Opcode::Transpose)) return nullptr;
  const Ints& p = *i->operand(0)->attrs().dimensions;
  if (p != *i->operand(1)->attrs().dimensions || IsIdentity(p) || !IsMatrixProduct(i)) return nullptr;
  const size_t b = p.size() - 2;
  const bool exchanged = p[b] > p[b + 1];
  if (std::min(p[b], p[b + 1]) != static_cast<int64_t>(b)) return nullptr;
  Expr x = i->operand(0)->operand(0), y = i->operand(1)->operand(0);
  if (exchanged) std::swap(x, y);
  return TransposeBy(DotLike(i, x, SideOf(i, 0), y, SideOf(i, 1), exchanged), p).get();
}

// A transpose that puts the free dimensions of the right side in front of those of the left, and at most exchanges
// batch dimensions among themselves.
Instruction* TransposeOfDot(Instruction* i) {
  Instruction* dot = i->operand(0);
  if (!IsPlainDot(dot) || !HasOneUser(dot)) return nullptr;
  DotSide l = SideOf(dot, 0), r = SideOf(dot, 1);
  if (l.free.empty() || r.free.empty()) return nullptr;
  const auto first = static_cast<int64_t>(l.batch.size()), left = static_cast<int64_t>(l.free.size());
  const Ints& p = *i->attrs().dimensions;
  Ints exchanged;
  for (int64_t d = first + left; d < dot->shape().rank(); ++d) exchanged.push_back(d);
  for (int64_t d = first; d < first + left; ++d) exchanged.push_back(d);
  if (!std::equal(exchanged.begin(), exchanged.end(), p.begin() + first)) return nullptr;
  const DotSide before = l, other = r;
  for (size_t k = 0; k < l.batch.size(); ++k) {
    l.batch[k] = before.batch[static_cast<size_t>(p[k])];
    r.batch[k] = other.batch[static_cast<size_t>(p[k])];
  }
  return DotLike(dot, dot->operand(1), r, dot->operand(0), l, true).get();
}

// `x` with the dimensions `free` in the order that `order` has of them.
Expr WithFree(Instruction* x, const Ints& free, const Ints& order) {
  Ints p = FirstDims(x->shape().rank());
  for (size_t k = 0; k < free.size(); ++k) p[static_cast<size_t>(free[k])] = free[static_cast<size_t>(order[k])];
  return IsIdentity(p) ? Expr(x) : TransposeBy(x, p);
}

// A dot as its result is to be read: of operands of `dot`, perhaps exchanged, transposed by `order`.
struct TransposedDot {
  Instruction* dot;
  bool exchanged;
  Ints order;

  Instruction* Operand(int64_t k) const { return dot->operand(exchanged ? 1 - k : k); }
  DotSide Side(int64_t k) const { return SideOf(dot, exchanged ? 1 - k : k); }
};

// The transpose as one of operands that are much smaller than the product, where it exchanges the dimensions of each
// side among themselves; null where it does not.
Instruction* OfTransposedOperands(const TransposedDot& t) {
  DotSide sides[] = {t.Side(0), t.Side(1)};
  const size_t counts[] = {sides[0].batch.size(), sides[0].free.size(), sides[1].free.size()};
  Ints orders[3];  // of the batch, and of each side's own dimensions
  int64_t moved = 0, first = 0;
  for (int part = 0; part < 3; ++part) {
    const auto count = static_cast<int64_t>(counts[part]);
    for (int64_t k = first; k < first + count; ++k) {
      orders[part].push_back(t.order[static_cast<size_t>(k)] - first);
      if (orders[part].back() < 0 || orders[part].back() >= count) return nullptr;
    }
    first += count;
    if (part > 0 && !IsIdentity(orders[part])) moved += t.Operand(part - 1)->shape().ByteSize();
  }
  if (moved == 0 || moved > t.dot->shape().ByteSize() / 2) return nullptr;
  for (DotSide& s : sides) {
    const Ints batch = s.batch;
    for (size_t k = 0; k < batch.size(); ++k) s.batch[k] = batch[static_cast<size_t>(orders[0][k])];
  }
  return DotLike(t.dot, WithFree(t.Operand(0), sides[0].free, orders[1]), sides[0],
                 WithFree(t.Operand(1), sides[1].free, orders[2]), sides[1], t.exchanged)
      .get();
}

Instruction* TransposeOfDotToOperands(Instruction* i) {
  Instruction* dot = i->operand(0);
  if (!IsPlainDot(dot) || !HasOneUser(dot)) return nullptr;
  return OfTransposedOperands({dot, false, *i->attrs().dimensions});
}

Ints LongDims(const Shape& s) {
  Ints out;
  for (int64_t d = 0; d < s.rank(); ++d)
    if (s.dim(d) != 1) out.push_back(d);
  return out;
}

// The dimensions of `from`, those of extent 1 aside, in the order that transpose `i` gives what it reads, which has the
// elements of `from` in a shape that differs by extents of 1; none if it does not.
Ints OrderOf(const Instruction* i, const Shape& from) {
  const Shape& read = i->operand(0)->shape();
  const Ints of_read = LongDims(read), of_from = LongDims(from);
  if (of_read.size() != of_from.size()) return {};
  Ints order;
  for (const int64_t d : *i->attrs().dimensions) {
    const auto at = std::find(of_read.begin(), of_read.end(), d);
    if (at == of_read.end()) continue;
    order.push_back(of_from[static_cast<size_t>(at - of_read.begin())]);
    if (from.dim(order.back()) != read.dim(d)) return {};
  }
  return order;
}

// A transpose, behind a reshape that adds or drops extents of 1 or behind none, that makes the last dimension of the
// left side the last one: that of the product with its sides exchanged moves rows, where this one moves elements.
Instruction* TransposeOfDotToRows(Instruction* i) {
  Instruction* dot = i->operand(0);
  if (dot->Is(Opcode::Reshape) && HasOneUser(dot)) dot = dot->operand(0);
  if (!IsPlainDot(dot) || !HasOneUser(dot) || i->shape().HasDynamic()) return nullptr;
  const Shape& s = dot->shape();
  const Ints dims = LongDims(s);
  Ints order = OrderOf(i, s);
  if (order.empty()) return nullptr;
  const DotSide l = SideOf(dot, 0), r = SideOf(dot, 1);
  const auto batch = static_cast<int64_t>(l.batch.size()), left = static_cast<int64_t>(l.free.size()),
             right = static_cast<int64_t>(r.free.size());
  const auto is_left = [&](int64_t d) { return d >= batch && d < batch + left; };
  if (!is_left(order.back()) || dims.back() < batch + left || s.dim(order.back()) * ByteWidth(s.type()) < kShortestRow)
    return nullptr;
  for (int64_t d = 0; d < s.rank(); ++d)
    if (s.dim(d) == 1) order.insert(order.begin() + std::min<int64_t>(d, static_cast<int64_t>(order.size())), d);
  for (int64_t& d : order) d = d < batch ? d : is_left(d) ? d + right : d - left;
  Instruction* out = OfTransposedOperands({dot, true, order});
  if (!out) out = TransposeBy(DotLike(dot, dot->operand(1), r, dot->operand(0), l, true), order).get();
  return ReshapeTo(out, i->shape().dims()).get();
}

// A matrix that was transposed before it meets a vector is read as it was.
Instruction* OfVectorAndTranspose(Instruction* i) {
  if (!IsPlainDot(i)) return nullptr;
  for (int64_t side = 0; side < 2; ++side) {
    const Instruction* t = i->operand(side);
    DotSide s = SideOf(i, side);
    const DotSide vector = SideOf(i, 1 - side);
    if (!t->Is(Opcode::Transpose) || !s.batch.empty() || !vector.free.empty()) continue;
    const Ints& p = *t->attrs().dimensions;
    for (Ints* dims : {&s.contracting, &s.free})
      for (int64_t& d : *dims) d = p[static_cast<size_t>(d)];
    if (!std::is_sorted(s.free.begin(), s.free.end())) continue;
    Expr matrix = t->operand(0), other = i->operand(1 - side);
    return side == 0 ? DotLike(i, matrix, s, other, vector).get() : DotLike(i, other, vector, matrix, s).get();
  }
  return nullptr;
}

// The transpose and the reshape of `x` = reshape(transpose(y)), where they permute and merge nothing but what becomes
// the one contracting dimension of x.
struct Merged {
  Instruction* y = nullptr;
  Ints permutation, merged;  // of the transpose; its dimensions that become the contracting one
};

std::optional<Merged> MergedContraction(Instruction* x, int64_t contracting) {
  if (!x->Is(Opcode::Reshape) || !x->operand(0)->Is(Opcode::Transpose)) return std::nullopt;
  const Instruction* t = x->operand(0);
  if (x->shape().ElementCount() == 0) return std::nullopt;
  const auto kept = DimsKeptByReshape(t->shape().dims(), x->shape().dims());
  if (static_cast<int64_t>(kept.size()) != x->shape().rank() - 1) return std::nullopt;
  Merged m{t->operand(0), *t->attrs().dimensions, FirstDims(t->shape().rank())};
  for (const auto& [from, to] : kept) {
    if (to == contracting) return std::nullopt;
    m.merged.erase(std::find(m.merged.begin(), m.merged.end(), from));
  }
  // Neighbours: an extent of 1 from elsewhere would be one of them too.
  const auto size = static_cast<int64_t>(m.merged.size());
  if (size < 2 || m.merged.back() - m.merged.front() + 1 != size) return std::nullopt;
  for (int64_t d = 0; d < t->shape().rank(); ++d)
    if (m.permutation[static_cast<size_t>(d)] != d && !Holds(m.merged, d)) return std::nullopt;
  return m;
}

// The constant with its contracting dimension in the order of y.
Expr Reordered(Instruction* constant, int64_t contracting, const Instruction* transpose, const Merged& m) {
  Ints split, order, merged_in_y;
  for (int64_t d = 0; d < constant->shape().rank(); ++d) {
    if (d != contracting) {
      order.push_back(static_cast<int64_t>(split.size()));
      split.push_back(constant->shape().dim(d));
      continue;
    }
    const auto first = static_cast<int64_t>(split.size());
    for (int64_t k : m.merged) split.push_back(transpose->shape().dim(k));
    // The k-th merged dimension of y stands where the transpose has put it.
    for (int64_t of_y : m.merged)
      for (size_t k = 0; k < m.merged.size(); ++k)
        if (m.permutation[static_cast<size_t>(m.merged[k])] == of_y) order.push_back(first + static_cast<int64_t>(k));
  }
  return ReshapeTo(TransposeBy(ReshapeTo(constant, split), order), constant->shape().dims());
}

// dot(reshape(transpose(y)), constant): the constant takes the order of y, and folds.
Instruction* WithConstantReordered(Instruction* i) {
  if (!IsPlainDot(i)) return nullptr;
  for (int64_t side = 0; side < 2; ++side) {
    Instruction *x = i->operand(side), *constant = i->operand(1 - side);
    const DotSide l = SideOf(i, side), r = SideOf(i, 1 - side);
    if (!constant->Is(Opcode::Constant) || l.contracting.size() != 1) continue;
    const std::optional<Merged> m = MergedContraction(x, l.contracting[0]);
    if (!m || IsIdentity(m->permutation)) continue;
    Expr other = Reordered(constant, r.contracting[0], x->operand(0), *m), plain = ReshapeTo(m->y, x->shape().dims());
    return side == 0 ? DotLike(i, plain, l, other, r).get() : DotLike(i, other, r, plain, l).get();
  }
  return nullptr;
}

// dot(concatenate(x, y, ...), constant) over the concatenated dimension: the sum of a dot for each piece.
Instruction* OfConcatenation(Instruction* i) {
  if (!IsPlainDot(i) || i->shape().rank() != 2 || i->operand(0)->shape().rank() != 2) return nullptr;
  for (int64_t side = 0; side < 2; ++side) {
    Instruction *pieces = i->operand(side), *constant = i->operand(1 - side);
    const DotSide s = SideOf(i, side), c = SideOf(i, 1 - side);
    if (!s.batch.empty() || s.contracting.size() != 1 || !pieces->Is(Opcode::Concatenate) ||
        *pieces->attrs().dimensions != s.contracting || !constant->Is(Opcode::Constant))
      continue;
    std::optional<Expr> sum;
    Ints start(2, 0), limit = constant->shape().dims();
    const auto d = static_cast<size_t>(c.contracting[0]);
    for (Instruction* x : pieces->operands()) {
      limit[d] = start[d] + x->shape().dim(s.contracting[0]);
      Expr part = SliceOf(constant, start, limit);
      start[d] = limit[d];
      Expr product = side == 0 ? DotLike(i, x, s, part, c) : DotLike(i, part, c, x, s);
      sum = sum ? *sum + product : product;
    }
    return sum->get();
  }
  return nullptr;
}

// One leading batch dimension, one free dimension a side and one contracting: what the kernels take. A sum over its
// batch may be there on purpose, made by splitk-rewriter, and the product would lose the form.
bool IsKernelForm(const DotSide& l, const DotSide& r) {
  return l.batch == Ints{0} && r.batch == Ints{0} && l.contracting.size() == 1 && l.free.size() == 1 &&
         r.free.size() == 1;
}

// The sum of the products of a batch is one product that contracts the batch too.
Instruction* SumOverBatch(Instruction* i) {
  if (i->operand_count() != 2 || ReducerOf(i) != Opcode::Add || !IsStatic(i)) return nullptr;
  Instruction* dot = i->operand(0);
  if (!IsPlainDot(dot) || !HasOneUser(dot) || !pattern::IsAll(i->operand(1), 0)) return nullptr;
  DotSide l = SideOf(dot, 0), r = SideOf(dot, 1);
  if (IsKernelForm(l, r)) return nullptr;
  Ints left, right, rest;
  const size_t batches = l.batch.size();
  for (size_t k = 0; k < batches; ++k) {
    const bool summed = Holds(*i->attrs().dimensions, static_cast<int64_t>(k));
    (summed ? l.contracting : left).push_back(l.batch[k]);
    (summed ? r.contracting : right).push_back(r.batch[k]);
  }
  if (left.size() == batches) return nullptr;
  const auto removed = static_cast<int64_t>(batches - left.size());
  l.batch = left;
  r.batch = right;
  for (int64_t d : *i->attrs().dimensions)
    if (d >= static_cast<int64_t>(batches)) rest.push_back(d - removed);
  Expr product = DotLike(dot, dot->operand(0), l, dot->operand(1), r);
  return rest.empty() ? product.get() : ReduceOf(product, i->operand(1), rest, *i->attrs().to_apply).get();
}

const Rule kRules[] = {
    {"dot-of-transposes",
     {Opcode::Dot},
     kInts | kFloats | kComplex,
     Numerics::Order,
     "ENTRY e { a = $T[2,3,5,4] parameter(0)\n b = $T[2,3,6,5] parameter(1)\n"
     " x = $T[3,2,4,5] transpose(a), dimensions={1,0,3,2}\n y = $T[3,2,5,6] transpose(b), dimensions={1,0,3,2}\n"
     " ROOT r = $T[3,2,4,6] dot(x, y), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3},"
     " rhs_contracting_dims={2} }",
     "ENTRY e { a = $T[5,4] parameter(0)\n b = $T[5,6] parameter(1)\n x = $T[4,5] transpose(a), dimensions={1,0}\n"
     " ROOT r = $T[4,6] dot(x, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
     OfTransposes,
     true},
    {"dot-of-vector-and-transpose",
     {Opcode::Dot},
     kInts | kFloats | kComplex,
     Numerics::Order,
     "ENTRY e { a = $T[3] parameter(0)\n b = $T[3,2,4] parameter(1)\n"
     " t = $T[2,4,3] transpose(b), dimensions={1,2,0}\n"
     " ROOT r = $T[2,4] dot(a, t), lhs_contracting_dims={0}, rhs_contracting_dims={2} }",
     "ENTRY e { a = $T[3] parameter(0)\n b = $T[3,4,2] parameter(1)\n"
     " t = $T[2,4,3] transpose(b), dimensions={2,1,0}\n"
     " ROOT r = $T[2,4] dot(a, t), lhs_contracting_dims={0}, rhs_contracting_dims={2} }",
     OfVectorAndTranspose,
     true},
    {"transpose-of-dot",
     {Opcode::Transpose},
     kInts | kFloats | kComplex,
     Numerics::Order,
     "ENTRY e { a = $T[2,3,4,5] parameter(0)\n b = $T[2,3,5,6] parameter(1)\n"
     " d = $T[2,3,4,6] dot(a, b), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3},"
     " rhs_contracting_dims={2}\n ROOT r = $T[3,2,6,4] transpose(d), dimensions={1,0,3,2} }",
     "ENTRY e { a = $T[2,4,5] parameter(0)\n b = $T[2,5,6] parameter(1)\n"
     " d = $T[2,4,6] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2},"
     " rhs_contracting_dims={1}\n ROOT r = $T[6,2,4] transpose(d), dimensions={2,0,1} }",
     TransposeOfDot,
     true},
    {"transpose-of-dot-to-operands",
     {Opcode::Transpose},
     kInts | kFloats | kComplex,
     Numerics::Order,
     "ENTRY e { a = $T[2,3,4,2] parameter(0)\n b = $T[2,9,2] parameter(1)\n"
     " d = $T[2,3,4,9] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={3},"
     " rhs_contracting_dims={2}\n ROOT r = $T[2,4,3,9] transpose(d), dimensions={0,2,1,3} }",
     "ENTRY e { a = $T[2,3,4,9] parameter(0)\n b = $T[2,2,9] parameter(1)\n"
     " d = $T[2,3,4,2] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={3},"
     " rhs_contracting_dims={2}\n ROOT r = $T[2,4,3,2] transpose(d), dimensions={0,2,1,3} }",
     TransposeOfDotToOperands,
     true},
    {"transpose-of-dot-to-rows",
     {Opcode::Transpose},
     kInts | kFloats | kComplex,
     Numerics::Order,
     "ENTRY e { a = $T[2,3,32,2] parameter(0)\n b = $T[2,3,2,6] parameter(1)\n"
     " d = $T[2,3,32,6] dot(a, b), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3},"
     " rhs_contracting_dims={2}\n ROOT r = $T[2,6,3,32] transpose(d), dimensions={0,3,1,2} }",
     "ENTRY e { a = $T[2,3,4,5] parameter(0)\n b = $T[2,3,5,6] parameter(1)\n"
     " d = $T[2,3,4,6] dot(a, b), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3},"
     " rhs_contracting_dims={2}\n ROOT r = $T[2,4,3,6] transpose(d), dimensions={0,2,1,3} }",
     TransposeOfDotToRows,
     true},
    {"dot-of-reordered-contraction",
     {Opcode::Dot},
     kInts | kFloats,
     Numerics::Order,
     "ENTRY e { a = $T[2,3,2] parameter(0)\n t = $T[3,2,2] transpose(a), dimensions={1,0,2}\n"
     " x = $T[6,2] reshape(t)\n c = $T[2,6] constant({{1, 2, 3, 2, 1, 0}, {1, 1, 2, 1, 0, 1}})\n"
     " ROOT r = $T[2,2] dot(x, c), lhs_contracting_dims={0}, rhs_contracting_dims={1} }",
     "ENTRY e { a = $T[2,3,2] parameter(0)\n t = $T[3,2,2] transpose(a), dimensions={1,2,0}\n"
     " x = $T[6,2] reshape(t)\n c = $T[2,6] constant({{1, 2, 3, 2, 1, 0}, {1, 1, 2, 1, 0, 1}})\n"
     " ROOT r = $T[2,2] dot(x, c), lhs_contracting_dims={0}, rhs_contracting_dims={1} }",
     WithConstantReordered,
     true},
    {"dot-of-concatenation",
     {Opcode::Dot},
     kInts | kFloats,
     Numerics::Order,
     "ENTRY e { a = $T[2,1] parameter(0)\n b = $T[2,2] parameter(1)\n"
     " x = $T[2,3] concatenate(a, b), dimensions={1}\n c = $T[2,3] constant({{1, 2, 3}, {1, 0, 2}})\n"
     " ROOT r = $T[2,2] dot(x, c), lhs_contracting_dims={1}, rhs_contracting_dims={1} }",
     "ENTRY e { a = $T[1,3] parameter(0)\n b = $T[1,3] parameter(1)\n"
     " x = $T[2,3] concatenate(a, b), dimensions={0}\n c = $T[2,3] constant({{1, 2, 3}, {1, 0, 2}})\n"
     " ROOT r = $T[2,2] dot(x, c), lhs_contracting_dims={1}, rhs_contracting_dims={1} }",
     OfConcatenation,
     true},
    {"sum-of-batch-dot",
     {Opcode::Reduce},
     kInts | kFloats | kComplex,
     Numerics::Order,
     "ENTRY e { a = $T[2,3,4,2] parameter(0)\n b = $T[3,2,2,5] parameter(1)\n"
     " d = $T[2,3,4,5] dot(a, b), lhs_batch_dims={0,1}, rhs_batch_dims={1,0}, lhs_contracting_dims={3},"
     " rhs_contracting_dims={2}\n z = $T[] constant(0)\n"
     " ROOT r = $T[3,5] reduce(d, z), dimensions={0,2}, to_apply=sum }",
     "ENTRY e { a = $T[2,4,2] parameter(0)\n b = $T[2,2,5] parameter(1)\n"
     " d = $T[2,4,5] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2},"
     " rhs_contracting_dims={1}\n z = $T[] constant(0)\n"
     " ROOT r = $T[2,4] reduce(d, z), dimensions={2}, to_apply=sum }",
     SumOverBatch,
     true},
};

}  // namespace

absl::Span<const Rule> DotOperandRules() { return kRules; }

}  // namespace kiln
