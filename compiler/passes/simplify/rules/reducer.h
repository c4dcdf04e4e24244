// What the rules of reductions and windows ask of a reducer.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "compiler/hlo/instruction.h"

namespace kiln {

// The operation of a reducer (a, b) -> op(a, b), if it is that.
std::optional<Opcode> ReducerOf(const Instruction* i);

// Whether op(initial, x) is x, but for the sign of a zero.
bool IsIdentityOf(Opcode op, PrimitiveType t, const Instruction* initial);

// Whether an initial value may be combined with a result several times, or once, without a difference: it is the
// identity, or the operation takes any value twice as once.
bool InitialMayRepeat(Opcode op, PrimitiveType t, const Instruction* initial);

// Whether what it combines depends on the order in which that happens.
bool OrderMatters(const Instruction* i);

// The same value wherever it stands: one instruction, or constants of the same bits.
bool SameScalar(const Instruction* a, const Instruction* b);

// No extent is dynamic, of the result or of an operand.
bool IsStatic(const Instruction* i);

// Pairs (i, j), ascending: dimension i of `from` is dimension j of `to` where one is reshaped to the other.
std::vector<std::pair<int64_t, int64_t>> DimsKeptByReshape(const Ints& from, const Ints& to);

}  // namespace kiln
