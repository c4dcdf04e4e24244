#include "codegen/elemental/never_positive.h"

#include <algorithm>

namespace kiln {
namespace {

// Whether `i` is the largest of a line of `x`, or more than that, at every place of the line.
bool IsLargestOf(const Instruction* i, const Instruction* x) {
  if (!i->Is(Opcode::Broadcast)) return false;
  const Ints spread = i->attrs().dimensions.value_or(Ints());
  const Instruction* r = i->operand(0);
  if (r->Is(Opcode::Maximum)) r = r->operand(r->operand(0)->Is(Opcode::Reduce) ? 0 : 1);
  if (!r->Is(Opcode::Reduce) || !r->shape().IsArray() || r->operand(0) != x) return false;
  const Instruction* f = (*r->attrs().to_apply)->root();
  if (!f->Is(Opcode::Maximum) || !f->operand(0)->Is(Opcode::Parameter) || !f->operand(1)->Is(Opcode::Parameter) ||
      f->operand(0) == f->operand(1))
    return false;
  const Ints& reduced = *r->attrs().dimensions;
  Ints kept;
  for (int64_t d = 0; d < x->shape().rank(); ++d)
    if (std::find(reduced.begin(), reduced.end(), d) == reduced.end()) kept.push_back(d);
  return spread == kept;
}

}  // namespace

bool NeverPositive(const Instruction* i) {
  if (i->Is(Opcode::Negate)) {
    const Instruction* x = i->operand(0);
    return x->Is(Opcode::Abs) || (x->Is(Opcode::Multiply) && x->operand(0) == x->operand(1));
  }
  return i->Is(Opcode::Subtract) && IsLargestOf(i->operand(1), i->operand(0));
}

}  // namespace kiln
