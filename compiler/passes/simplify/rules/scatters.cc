// Scatters of nothing, and sums of scatters that add.
#include <algorithm>

#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/simplify/dot_form.h"
#include "compiler/passes/simplify/rules/reducer.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

Instruction* OfNoUpdates(Instruction* i) {
  const int64_t count = (i->operand_count() - 1) / 2;
  for (int64_t k = 0; k < count; ++k)
    if (i->operand(count + 1 + k)->shape().ElementCount() != 0) return nullptr;
  if (i->shape().IsArray()) return i->operand(0);
  const std::vector<Instruction*> unchanged(i->operands().begin(), i->operands().begin() + count);
  return i->parent()->Add(Opcode::Tuple, i->shape(), unchanged);
}

// A scatter that adds its updates to one array, for one user.
bool IsAddition(const Instruction* i) {
  if (!i->Is(Opcode::Scatter) || i->operand_count() != 3 || i->users().size() != 1 || i->IsRoot()) return false;
  const Attributes& a = i->attrs();
  return IsStatic(i) && ReducerOf(i) == Opcode::Add && !a.indices_are_sorted.value_or(false) &&
         !a.unique_indices.value_or(false) && a.input_batching_dims.value_or(Ints()).empty() && !a.sharding;
}

Instruction* Onto(Instruction* scatter, Expr x, Expr indices, Expr updates) {
  return x.computation()->AddClone(scatter, Shape::Array(x.type(), x.shape().dims()),
                                   {x.get(), indices.get(), updates.get()});
}

// Whether two scatters differ in their operands only.
bool SameDimensions(const Instruction* a, const Instruction* b) {
  const Attributes &x = a->attrs(), &y = b->attrs();
  if (x.update_window_dims != y.update_window_dims || x.inserted_window_dims != y.inserted_window_dims ||
      x.scatter_dims_to_operand_dims != y.scatter_dims_to_operand_dims || x.index_vector_dim != y.index_vector_dim ||
      a->operand(2)->shape().rank() != b->operand(2)->shape().rank())
    return false;
  for (int64_t d : *x.update_window_dims)
    if (a->operand(2)->shape().dim(d) != b->operand(2)->shape().dim(d)) return false;
  return true;
}

// The dimension of the indices along which those of two scatters can be put side by side; -1: none.
int64_t JoinedDim(const Instruction* a, const Instruction* b) {
  const Shape &x = a->operand(1)->shape(), &y = b->operand(1)->shape();
  int64_t joined = -1;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (x.dim(d) == y.dim(d)) continue;
    if (joined >= 0 || d == *a->attrs().index_vector_dim) return -1;
    joined = d;
  }
  for (int64_t d = 0; joined < 0 && d < x.rank(); ++d)
    if (d != *a->attrs().index_vector_dim) joined = d;
  return joined;
}

// The dimension of the updates for dimension `d` of the indices.
int64_t OfUpdates(const Instruction* scatter, int64_t d) {
  if (d > *scatter->attrs().index_vector_dim) --d;
  for (int64_t u = 0; u < scatter->operand(2)->shape().rank(); ++u)
    if (!Holds(*scatter->attrs().update_window_dims, u) && d-- == 0) return u;
  return -1;
}

// Two scatters are one with the indices and updates of both, or else one after the other, as long as the updates are
// fewer than the elements.
Instruction* Combined(Instruction* a, Instruction* b) {
  const Shape &i = a->operand(1)->shape(), &j = b->operand(1)->shape();
  if (a->operand(2)->shape().ElementCount() + b->operand(2)->shape().ElementCount() >= a->shape().ElementCount())
    return nullptr;
  const bool same = i.type() == j.type() && i.rank() == j.rank() && SameDimensions(a, b);
  const int64_t d = same ? JoinedDim(a, b) : -1;
  if (same && d < 0) return nullptr;
  Expr x = Expr(a->operand(0)) + b->operand(0);
  if (!same) return Onto(a, Onto(b, x, b->operand(1), b->operand(2)), a->operand(1), a->operand(2));
  return Onto(a, x, ConcatOf({a->operand(1), b->operand(1)}, d),
              ConcatOf({a->operand(2), b->operand(2)}, OfUpdates(a, d)));
}

// The other addend is what the scatter adds to.
Instruction* SumWithScatter(Instruction* i) {
  Instruction *a = i->operand(0), *b = i->operand(1);
  if (a == b) return nullptr;
  const bool left = IsAddition(a), right = IsAddition(b);
  if (left && right) return Combined(a, b);
  if (!left && !right) return nullptr;
  Instruction *scatter = left ? a : b, *other = left ? b : a;
  return Onto(scatter, Expr(scatter->operand(0)) + other, scatter->operand(1), scatter->operand(2));
}

const Rule kRules[] = {
    {"scatter-of-nothing",
     {Opcode::Scatter},
     kAllTypes | kTuples,
     Numerics::Exact,
     "ENTRY e { x = $T[4,6] parameter(0)\n i = s32[0,1] parameter(1)\n u = $T[0,6] parameter(2)\n"
     " ROOT r = $T[4,6] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},"
     " scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum }",
     "ENTRY e { x = $T[4,6] parameter(0)\n i = s32[1,1] parameter(1)\n u = $T[1,6] parameter(2)\n"
     " ROOT r = $T[4,6] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},"
     " scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum }",
     OfNoUpdates},
    {"sum-of-scatters",
     {Opcode::Add},
     kInts | kFloats | kComplex,
     Numerics::Order,
     "ENTRY e { x = $T[4,6] parameter(0)\n y = $T[4,6] parameter(1)\n i = s32[2,1] parameter(2)\n"
     " j = s32[1,1] parameter(3)\n u = $T[2,6] parameter(4)\n v = $T[1,6] parameter(5)\n"
     " a = $T[4,6] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},"
     " scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum\n"
     " b = $T[4,6] scatter(y, j, v), update_window_dims={1}, inserted_window_dims={0},"
     " scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum\n ROOT r = $T[4,6] add(a, b) }",
     "ROOT r = $T[4,6] add(p, q)",
     SumWithScatter,
     true},
    {"sum-with-scatter",
     {Opcode::Add},
     kInts | kFloats | kComplex,
     Numerics::Order,
     "ENTRY e { x = $T[4,6] parameter(0)\n y = $T[4,6] parameter(1)\n i = s32[2,1] parameter(2)\n"
     " u = $T[2,6] parameter(3)\n"
     " a = $T[4,6] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},"
     " scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum\n ROOT r = $T[4,6] add(y, a) }",
     "ENTRY e { x = $T[4,6] parameter(0)\n y = $T[4,6] parameter(1)\n i = s32[2,1] parameter(2)\n"
     " u = $T[2,6] parameter(3)\n"
     " a = $T[4,6] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},"
     " scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, to_apply=sum\n"
     " ROOT r = $T[4,6] add(y, a) }",
     SumWithScatter,
     true},
};

}  // namespace

absl::Span<const Rule> ScatterRules() { return kRules; }

}  // namespace kiln
