// Arithmetic on sizes is straightened: concatenations of concatenations, slices of what was concatenated, reshapes that
// undo each other, conversions and reshapes to what is there already.
#include "compiler/pass/pass.h"
#include "compiler/pass/rewriter.h"

namespace kiln {
namespace {

bool IsSize(const Instruction* i) { return i->shape().type() == PrimitiveType::S32 && i->shape().rank() <= 1; }

Instruction* FlatConcatenation(Instruction* i) {
  std::vector<Instruction*> parts;
  for (Instruction* o : i->operands()) {
    const bool inner = o->Is(Opcode::Concatenate) && o->attrs().dimensions == i->attrs().dimensions;
    if (inner)
      parts.insert(parts.end(), o->operands().begin(), o->operands().end());
    else
      parts.push_back(o);
  }
  return parts.size() == i->operands().size() ? nullptr : i->parent()->AddClone(i, i->shape(), parts);
}

// The operand of a concatenation that a slice takes.
Instruction* SlicedPart(const Instruction* i) {
  const Instruction* all = i->operand(0);
  const SliceDim& s = (*i->attrs().slice)[0];
  if (!all->Is(Opcode::Concatenate) || s.stride != 1) return nullptr;
  int64_t at = 0;
  for (Instruction* o : all->operands()) {
    if (at == s.start && at + o->shape().dim(0) == s.limit) return o;
    at += o->shape().dim(0);
  }
  return nullptr;
}

Instruction* Simpler(Instruction* i) {
  if (!IsSize(i)) return nullptr;
  switch (i->opcode()) {
    case Opcode::Concatenate:
      return FlatConcatenation(i);
    case Opcode::Slice:
      return i->shape().rank() == 1 ? SlicedPart(i) : nullptr;
    case Opcode::Convert:
      return i->operand(0)->shape() == i->shape() ? i->operand(0) : nullptr;
    case Opcode::Reshape: {
      Instruction* x = i->operand(0);
      if (x->shape() == i->shape()) return x;
      const bool undoes = x->Is(Opcode::Reshape) || (x->Is(Opcode::Broadcast) && x->shape().ElementCount() == 1);
      return undoes && x->operand(0)->shape() == i->shape() ? x->operand(0) : nullptr;
    }
    default:
      return nullptr;
  }
}

}  // namespace

absl::StatusOr<bool> DynamicDimensionSimplifier(Module& m, PassContext& ctx) {
  Rewriter rewriter(ctx);
  for (const auto& c : m.computations())
    for (Instruction* i : c->PostOrder()) {
      ASSIGN_OR_RETURN(const bool replaced, rewriter.Replace(i, Simpler));
      if (replaced) c->Remove(i);
    }
  return rewriter.changed();
}

}  // namespace kiln
