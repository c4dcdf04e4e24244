// Mistakes that are made in valid inputs, one at a time.
//
// Guarantees: each depends on its arguments alone; what comes out is at most kLargestMutant bytes.
#pragma once

#include <string>

#include "tests/fuzz/mutate/inputs.h"
#include "tests/fuzz/mutate/random.h"

namespace kiln::mutate {

constexpr size_t kLargestMutant = 4 << 20;

// Bytes changed, left out, repeated or exchanged; the beginning alone; the beginning with the end of `other`.
std::string MutateBytes(std::string s, const std::string& other, Random& random);
// Text: numbers at their limits, names, types, attributes, operands and lines exchanged, repeated or left out, brackets
// that do not close, deep nesting, long lists.
std::string MutateText(std::string s, const std::string& other, Random& random);

// The mutant of that number: one to four mistakes in one of the inputs, and of which it is.
Input Mutant(const std::vector<Input>& inputs, uint64_t number);

}  // namespace kiln::mutate
