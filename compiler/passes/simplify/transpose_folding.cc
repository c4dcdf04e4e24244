// Folds a transpose into the dot that reads it: the dot's dimension numbers change instead.
//
// Legal where the free dimensions of the operand keep their order, because they decide the order of the result. Left
// alone are transposes that move a batch dimension, which a product of matrices would have to gather, and products with
// a vector: the rule dot-of-vector-and-transpose has them.
#include <algorithm>

#include "compiler/pass/pass.h"

namespace kiln {
namespace {

bool IsIn(const std::optional<Ints>& dims, int64_t d) {
  return dims && std::find(dims->begin(), dims->end(), d) != dims->end();
}

// The dimensions of one side of a dot that stay in the result and are no batch.
Ints FreeDimensions(const Instruction* dot, int side) {
  const Attributes& a = dot->attrs();
  Ints free;
  for (int64_t d = 0; d < dot->operand(side)->shape().rank(); ++d)
    if (!IsIn(side ? a.rhs_batch_dims : a.lhs_batch_dims, d) &&
        !IsIn(side ? a.rhs_contracting_dims : a.lhs_contracting_dims, d))
      free.push_back(d);
  return free;
}

bool MayFold(const Instruction* dot, int side) {
  const Instruction* t = dot->operand(side);
  if (!t->Is(Opcode::Transpose) || dot->operand(1 - side)->shape().rank() < 2) return false;
  const Ints& p = *t->attrs().dimensions;
  for (int64_t d : (side ? dot->attrs().rhs_batch_dims : dot->attrs().lhs_batch_dims).value_or(Ints()))
    if (p[d] != d) return false;
  Ints free = FreeDimensions(dot, side);
  for (int64_t& d : free) d = p[d];
  return std::is_sorted(free.begin(), free.end()) && !std::is_sorted(p.begin(), p.end());
}

void Fold(Instruction* dot, int side) {
  Instruction* t = dot->operand(side);
  Attributes& a = dot->mutable_attrs();
  for (auto* dims :
       {side ? &a.rhs_batch_dims : &a.lhs_batch_dims, side ? &a.rhs_contracting_dims : &a.lhs_contracting_dims})
    if (*dims)
      for (int64_t& d : **dims) d = (*t->attrs().dimensions)[d];
  dot->ReplaceOperand(side, t->operand(0));
}

}  // namespace

absl::StatusOr<bool> TransposeFolding(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations())
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Dot) || i->attrs().sparsity) continue;
      for (int side = 0; side < 2; ++side) {
        if (!MayFold(i, side) || !ctx.Take()) continue;
        Fold(i, side);
        changed = true;
      }
    }
  return changed;
}

}  // namespace kiln
