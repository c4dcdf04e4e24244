// Reductions of a few elements, as the square of a distance in space is one, become elementwise operations: each
// element's slice, in the order that the reduction had. They then join the loop that uses them, where a loop along
// three elements for each result would be kept in memory of its own. So do products of many small matrices, which are
// too small for a tile: loops take a matrix to each lane.
//
// Elements that take time to compute stay with the reduction, which computes each of them once. So do those of fusions
// that are there already: the loops of rows and columns are made for their reductions.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/expand/scalar_body.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

constexpr int64_t kMostElements = 4;    // of a result
constexpr int64_t kFewestResults = 64;  // fewer take no time

// Whether `x` is made of arrays in memory by few operations that cost little.
bool IsCheap(const Instruction* x, int& budget) {
  if (x->Is(Opcode::Broadcast) || x->Is(Opcode::Iota) || x->Is(Opcode::Constant)) return true;
  if (!x->IsElementwise() || x->operand_count() == 0) return !x->Is(Opcode::Reduce);
  if (x->HasTrait(Transcendental) || x->HasTrait(Costly) || --budget < 0) return false;
  return std::all_of(x->operands().begin(), x->operands().end(),
                     [&](const Instruction* o) { return IsCheap(o, budget); });
}

// Whether an array is many rows of a few elements, which loops take a row to each lane.
bool HasShortRows(const Shape& s) {
  constexpr int64_t kMostOfRow = 4, kLeastRows = 16;
  return s.rank() > 1 && s.dims().back() > 1 && s.dims().back() <= kMostOfRow && s.dim(s.rank() - 2) >= kLeastRows;
}

bool IsSmallProduct(const Instruction* i) {
  constexpr int64_t kMostOfMatrix = 16;
  if (!i->Is(Opcode::Dot) || i->attrs().backend_config || i->shape().rank() != 3) return false;
  const PrimitiveType t = i->shape().type();
  if (t != PrimitiveType::F32 && t != PrimitiveType::F64) return false;
  for (const Instruction* o : i->operands())
    if (o->shape().type() != t || o->shape().rank() != 3 || !o->shape().HasDefaultLayout() || o->shape().HasDynamic())
      return false;
  const Shape& s = i->shape();
  return s.HasDefaultLayout() && s.dim(0) >= kFewestResults && s.dim(1) > 1 && s.dim(2) > 1 &&
         s.dim(1) * s.dim(2) <= kMostOfMatrix &&
         i->operand(0)->shape().dim((*i->attrs().lhs_contracting_dims)[0]) <= kMostElements;
}

bool IsShortReduction(const Instruction* i) {
  if (!i->Is(Opcode::Reduce) || i->operand_count() != 2) return false;
  const Shape& in = i->operand(0)->shape();
  if (in.HasDynamic() || !in.HasDefaultLayout() || !i->shape().HasDefaultLayout()) return false;
  const int64_t results = i->shape().ElementCount();
  if (results < kFewestResults || in.ElementCount() < 2 * results || in.ElementCount() > kMostElements * results)
    return false;
  const bool joins = !i->IsRoot() && !i->users().empty() &&
                     std::all_of(i->users().begin(), i->users().end(),
                                 [](const Instruction* u) { return u->IsElementwise() || u->Is(Opcode::Broadcast); });
  int budget = 8;
  return (joins || HasShortRows(i->shape())) && IsScalarBody(*i->attrs().to_apply) && i->operand(0)->IsElementwise() &&
         IsCheap(i->operand(0), budget);
}

// The slice of `x` at `k` of dimension `d`, without it.
Expr At(Expr x, int64_t d, int64_t k) {
  Ints start(x.shape().dims().size(), 0), limit = x.shape().dims(), rest = limit;
  start[static_cast<size_t>(d)] = k;
  limit[static_cast<size_t>(d)] = k + 1;
  rest.erase(rest.begin() + d);
  const Expr slice = SliceOf(x, start, limit);
  return slice.get()->parent()->Add(Opcode::Bitcast, Shape::Array(x.type(), rest), {slice.get()});
}

Expr Product(Instruction* i) {
  const Expr a = i->operand(0), b = i->operand(1);
  const int64_t a_k = (*i->attrs().lhs_contracting_dims)[0], b_k = (*i->attrs().rhs_contracting_dims)[0];
  const Ints& dims = i->shape().dims();
  const auto term = [&](int64_t k) {
    return BroadcastTo(At(a, a_k, k), dims, {0, 1}) * BroadcastTo(At(b, b_k, k), dims, {0, 2});
  };
  Expr sum = term(0);
  for (int64_t k = 1; k < a.shape().dim(a_k); ++k) sum = sum + term(k);
  return sum;
}

Expr Reduction(Instruction* i) {
  const Expr x = i->operand(0);
  const Ints dims = x.shape().dims(), reduced = *i->attrs().dimensions, kept = i->shape().dims();
  Expr sum = BroadcastTo(i->operand(1), kept);
  const int64_t count = x.shape().ElementCount() / i->shape().ElementCount();
  for (int64_t k = 0; k < count; ++k) {
    Ints start(dims.size(), 0), limit = dims;
    int64_t rest = k;
    for (size_t d = dims.size(); d-- > 0;) {
      if (std::find(reduced.begin(), reduced.end(), static_cast<int64_t>(d)) == reduced.end()) continue;
      start[d] = rest % dims[d];
      limit[d] = start[d] + 1;
      rest /= dims[d];
    }
    Expr element = SliceOf(x, start, limit);
    element = i->parent()->Add(Opcode::Bitcast, Shape::Array(x.type(), kept), {element.get()});
    sum = ApplyScalarBody(*i->attrs().to_apply, {sum, element})[0];
  }
  return sum;
}

}  // namespace

absl::StatusOr<bool> CpuShortReductionUnroller(Module& m, PassContext& ctx) {
  const std::vector<Computation*> control = ControlComputations(m);
  const auto wanted = [&](const Instruction* i) {
    return (IsShortReduction(i) || IsSmallProduct(i)) &&
           std::find(control.begin(), control.end(), i->parent()) != control.end();
  };
  return ExpandEach(m, ctx, wanted, [&](Instruction* i) -> absl::StatusOr<Instruction*> {
    const int64_t first_new = m.next_id();
    const Expr sum = i->Is(Opcode::Dot) ? Product(i) : Reduction(i);
    for (Instruction* added : i->parent()->AddedSince(first_new)) added->mutable_shape().SetDefaultLayouts();
    return sum.get();
  });
}

}  // namespace kiln
