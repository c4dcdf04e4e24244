// The product of a vector and a matrix that is computed for it alone, element by element from what is in memory
// (weights times their scales), as multiplications and a sum: one loop that fuses, and no matrix that is stored. So is
// the product of a vector of few elements, as of weights of colours, with a matrix of many rows: whole rows are vectors
// then.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/simplify/dot_form.h"

namespace kiln {
namespace {

// Elements of the least matrix: a smaller one stays in the cache between its maker and its reader.
constexpr int64_t kLeast = 16384;
// Operations that make an element.
constexpr int kMost = 12;

// Whether fusing `i` computes it where it lies: what is in memory, and elementwise work of one user on that.
bool ComesFromMemory(const Instruction* i, int* budget) {
  if (i->Is(Opcode::Parameter) || i->Is(Opcode::Constant) || i->Is(Opcode::GetTupleElement) || i->Is(Opcode::Iota))
    return true;
  const bool moves = i->Is(Opcode::Broadcast) || (i->Is(Opcode::Reshape) && i->shape().ElementCount() < kLeast);
  if ((!i->IsElementwise() && !moves) || i->shape().HasDynamic() || --*budget < 0) return false;
  return std::all_of(i->operands().begin(), i->operands().end(),
                     [&](const Instruction* o) { return ComesFromMemory(o, budget); });
}

bool IsComputed(const Instruction* matrix) {
  if (!matrix->IsElementwise() || matrix->users().size() != 1 || matrix->shape().ElementCount() < kLeast) return false;
  int budget = kMost;
  return ComesFromMemory(matrix, &budget);
}

// Whether rows are too short for a kernel of products.
bool IsShort(const Instruction* i, const DotSide& side, const Shape& s) {
  constexpr int64_t kMostProducts = 4;
  int64_t products = 1;
  for (int64_t d : side.contracting) products *= s.dim(d);
  return products <= kMostProducts && i->shape().ElementCount() * products >= kLeast;
}

// Which operand is the vector, or -1.
int64_t VectorOf(const Instruction* i) {
  if (!IsPlainDot(i) || !IsFloat(i->shape().type()) || !MultipliesAsAsked(i)) return -1;
  for (int64_t k = 0; k < 2; ++k) {
    const DotSide side = SideOf(i, k);
    const Shape& s = i->operand(k)->shape();
    const bool one = std::all_of(side.free.begin(), side.free.end(), [&](int64_t d) { return s.dim(d) == 1; });
    if (one && !side.contracting.empty() && (IsComputed(i->operand(1 - k)) || IsShort(i, side, s))) return k;
  }
  return -1;
}

absl::StatusOr<Instruction*> AsSum(Instruction* i) {
  const int64_t k = VectorOf(i);
  DotSide sides[2] = {SideOf(i, 0), SideOf(i, 1)};
  Expr operands[2] = {i->operand(0), i->operand(1)};
  // The vector without its dimensions of extent 1.
  Ints dims, place;
  for (int64_t d = 0; d < operands[k].shape().rank(); ++d) {
    place.push_back(static_cast<int64_t>(dims.size()));
    if (!Holds(sides[k].free, d)) dims.push_back(operands[k].shape().dim(d));
  }
  operands[k] = ReshapeTo(operands[k], dims);
  for (int64_t& d : sides[k].batch) d = place[static_cast<size_t>(d)];
  for (int64_t& d : sides[k].contracting) d = place[static_cast<size_t>(d)];
  sides[k].free.clear();
  const Expr dot = DotLike(i, operands[0], sides[0], operands[1], sides[1]);
  Instruction* sum = ReshapeTo(DotAsProducts(dot.get()), i->shape().dims()).get();
  i->parent()->Remove(dot.get());
  return sum;
}

}  // namespace

absl::StatusOr<bool> MatrixVectorFusion(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](const Instruction* i) { return VectorOf(i) >= 0; }, AsSum);
}

}  // namespace kiln
