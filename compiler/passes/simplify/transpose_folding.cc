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

// `reshape` of transpose `t` as a transpose of a reshape, where the reshape only inserts or drops extents 1; null where
// it does more.
Instruction* TransposeOfReshape(Instruction* reshape, const Instruction* t) {
  const Ints &order = *t->attrs().dimensions, &from = t->shape().dims(), &to = reshape->shape().dims();
  Ints sources, slots;  // dimensions other than 1: of the transpose's operand, and of the reshape
  for (size_t d = 0; d < from.size(); ++d)
    if (from[d] != 1) sources.push_back(order[d]);
  for (size_t d = 0; d < to.size(); ++d)
    if (to[d] != 1) slots.push_back(static_cast<int64_t>(d));
  if (sources.size() != slots.size()) return nullptr;
  Ints sorted = sources, dims(to.size(), 1), turned(to.size());
  std::sort(sorted.begin(), sorted.end());
  for (size_t d = 0; d < to.size(); ++d) turned[d] = static_cast<int64_t>(d);
  for (size_t k = 0; k < sources.size(); ++k) {
    const auto rank = static_cast<size_t>(std::find(sorted.begin(), sorted.end(), sources[k]) - sorted.begin());
    if (to[static_cast<size_t>(slots[k])] != t->operand(0)->shape().dim(sources[k])) return nullptr;
    dims[static_cast<size_t>(slots[rank])] = to[static_cast<size_t>(slots[k])];
    turned[static_cast<size_t>(slots[k])] = slots[rank];
  }
  Computation* c = reshape->parent();
  Instruction* flat = c->Add(Opcode::Reshape, Shape::Array(reshape->shape().type(), dims), {t->operand(0)});
  flat->set_loc(reshape->loc());
  Instruction* out = c->Add(Opcode::Transpose, reshape->shape(), {flat});
  out->set_loc(t->loc());
  out->mutable_attrs().dimensions = turned;
  return out;
}

// The transpose that `o` is, or stands for behind a reshape: then a new one. Null if there is none.
Instruction* Turned(Instruction* o) {
  if (o->Is(Opcode::Transpose)) return o;
  if (!o->Is(Opcode::Reshape) || o->users().size() != 1 || o->shape().HasDynamic()) return nullptr;
  const Instruction* t = o->operand(0);
  return t->Is(Opcode::Transpose) && t->users().size() == 1 ? TransposeOfReshape(o, t) : nullptr;
}

void RemoveTurned(Instruction* t) {
  Instruction* flat = t->operand(0);
  t->parent()->Remove(t);
  if (flat->users().empty()) flat->parent()->Remove(flat);
}

bool MayFold(const Instruction* dot, int side, const Instruction* t) {
  if (!t->Is(Opcode::Transpose) || dot->operand(1 - side)->shape().rank() < 2) return false;
  const Ints& p = *t->attrs().dimensions;
  for (int64_t d : (side ? dot->attrs().rhs_batch_dims : dot->attrs().lhs_batch_dims).value_or(Ints()))
    if (p[d] != d) return false;
  Ints free = FreeDimensions(dot, side);
  for (int64_t& d : free) d = p[d];
  return std::is_sorted(free.begin(), free.end()) && !std::is_sorted(p.begin(), p.end());
}

void Fold(Instruction* dot, int side, Instruction* t) {
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
        Instruction *o = i->operand(side), *t = Turned(o);
        if (t && MayFold(i, side, t) && ctx.Take()) {
          Fold(i, side, t);
          changed = true;
        }
        if (t && t != o && t->users().empty()) RemoveTurned(t);
      }
    }
  return changed;
}

}  // namespace kiln
