// Whether a comparator asks for the order of one operand, or of one and among its equals of another, so that a sort may
// go by digits and not by comparing.
#pragma once

#include <vector>

#include "compiler/hlo/instruction.h"

namespace kiln {

struct SortKey {
  int64_t operand;           // of the sort
  const Instruction* value;  // in the comparator: what is compared, made of `parameter` alone
  const Instruction* parameter;
  bool descending;
  // Of floats: NaNs and the signs of zeros have places. Where they have none, which only a sort's one key may do, rows
  // with NaNs are to be sorted by comparing, and zeros are equal.
  bool total;
};

// Rows that are shorter are sorted by comparing, whatever their key.
inline constexpr int64_t kFewestByDigits = 64;

// What decides, then what does among equals of that, and so on. Nothing where the comparator is no such order, or looks
// at its two sides in different ways.
std::vector<SortKey> KeysOfSort(const Instruction* sort);

}  // namespace kiln
