// Whether a comparator asks for the order of one operand, so that a sort may go by digits and not by comparing.
#pragma once

#include <optional>

#include "compiler/hlo/instruction.h"

namespace kiln {

struct SortKey {
  int64_t operand;           // of the sort
  const Instruction* value;  // in the comparator: what is compared, made of `parameter` alone
  const Instruction* parameter;
  bool descending;
  // Of floats: NaNs and the signs of zeros have places. Where they have none, rows with NaNs are to be sorted by
  // comparing, and zeros are equal.
  bool total;
};

// Rows that are shorter are sorted by comparing, whatever their key.
inline constexpr int64_t kFewestByDigits = 64;

// Nothing where the comparator looks at more than one operand, or at its two sides in different ways.
std::optional<SortKey> KeyOfSort(const Instruction* sort);

}  // namespace kiln
