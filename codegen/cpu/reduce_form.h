// What can be told of a reduction before its loops are chosen.
#pragma once

#include <optional>
#include <vector>

#include "codegen/elemental/element.h"
#include "compiler/hlo/instruction.h"

namespace kiln::cpu {

// Whether parameter `p` has the columns of what is reduced, of shape `in`: [along, minor] of few bytes, which every row
// of results reads again.
bool IsReadByRows(const Instruction* p, const Shape& in, int64_t along, int64_t minor);

// Whether `reduce` asks if any element holds, or if all do, of so many along its innermost dimension that it is worth
// looking whether that is known already.
bool IsDecidedEarly(const Instruction* reduce);

// A reduction of dimensions on both sides of one that stays, `rows`: of `inner`, which are few elements, and of
// `outer`. `kept` are those that stay besides. Dimensions of 1 are in none. Its function gives the same in any order,
// or a sum.
struct Around {
  Ints kept, outer, inner;
  int64_t rows;
};
std::optional<Around> AroundOf(const Instruction* reduce);

}  // namespace kiln::cpu
