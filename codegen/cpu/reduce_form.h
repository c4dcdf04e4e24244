// What can be told of a reduction before its loops are chosen.
#pragma once

#include "compiler/hlo/instruction.h"

namespace kiln::cpu {

// Whether parameter `p` has the columns of what is reduced, of shape `in`: [along, minor] of few bytes, which every row
// of results reads again.
bool IsReadByRows(const Instruction* p, const Shape& in, int64_t along, int64_t minor);

// Whether `reduce` asks if any element holds, or if all do, of so many along its innermost dimension that it is worth
// looking whether that is known already.
bool IsDecidedEarly(const Instruction* reduce);

}  // namespace kiln::cpu
