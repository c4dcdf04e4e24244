// Parts that are made again where they are wanted, of smaller arrays than they are.
//
// What: a mask, a broadcast or a conversion that an operation wants cut in another way is computed once more, cut so,
//   from operands that are brought there.
// Why: an exchange would move all of it; its operands, or theirs, are often a small part of that: the one-hot rows of a
//   mixture of experts come of one number each.
// Guarantees: the same bits. Only elementwise operations and those that repeat or rename elements are made again.
// Cost: at most kMostSteps operations, and half the bytes of the exchange; each form is made once.
#pragma once

#include "compiler/passes/sharding/resharder.h"

namespace kiln {

// `value` is `op` of the parts.
void RememberRecipe(const Instruction& op, const std::vector<Part>& operands, const Part& value, Resharder* reshard);
// The part cut as `target` says: made again, or else moved.
Part Bring(const Part& part, const Tiling& target, Resharder* reshard);
// The same of what `op` gives; what only an elementwise operation takes stays as it is cut, if that is no more than is
// asked for: where operands come alike, it is cheaper to move what is made of them.
Part BringResult(const Instruction& op, const Part& part, const Tiling& target, Resharder* reshard);

}  // namespace kiln
