// Questions that rules ask about values, and small expressions that they answer with.
#pragma once

#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/simplify/rules/pattern.h"

namespace kiln {

// A constant, or a broadcast of one.
bool IsKnown(const Instruction* i);
// The same, of one element: each element is that value. Null if it is not known to be.
Instruction* ScalarOf(Instruction* i);
// Whether no element is below zero, which NaN counts as not being. A mere parameter is not known to be, whatever its
// type: the question costs no more than a few steps.
bool IsNeverNegative(const Instruction* i);

inline bool HasOneUser(const Instruction* i) { return i->users().size() == 1; }
// Somebody decided on a layout that is not row major: then structure stays, because a copy may be what moving it costs.
inline bool HasOwnLayout(const Instruction* i) { return !i->shape().HasDefaultLayout(); }
inline bool IsDirection(const Instruction* compare, Direction direction) {
  return compare->Is(Opcode::Compare) && *compare->attrs().direction == direction;
}
// One constant for two: of one element if both are, whole if both are written out, repeated if both are in the same
// way; else null.
Instruction* OfConstants(Opcode opcode, Instruction* a, Instruction* b);

// `i` over other operands, of its own shape.
inline Instruction* Over(const Instruction* i, std::vector<Instruction*> operands) {
  return i->parent()->AddClone(i, i->shape(), std::move(operands));
}
// An array like `i` with every element `value`.
inline Instruction* Filled(Instruction* i, double value) { return Expr(i).Like(value).get(); }
// A scalar along every element of `dims`.
inline Instruction* Spread(Instruction* scalar, const Ints& dims) { return BroadcastTo(scalar, dims).get(); }

}  // namespace kiln
