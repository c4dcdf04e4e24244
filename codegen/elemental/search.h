// Reductions that look for an element and its place, as argmax is written.
#pragma once

#include <optional>
#include <vector>

#include "codegen/llvm/ir.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

// Whether function `f` of two elements and their places, integers, gives of both that argument which a predicate picks:
// it may be given them in either order.
bool ChoosesByPlace(const Computation& f);

// Of an element with its place and another, `a` becomes the one with the lower place, of type `place`, and `b` the
// other: a function that is given them so finds what it would if it had walked over all, of several NaNs the first.
void OrderByPlace(Ir& ir, PrimitiveType place, std::vector<Val>* a, std::vector<Val>* b);

// Whether `reduce` chooses between elements of one array, and with them between their places along the one dimension
// that is reduced: each result of its function is that argument of the two elements which a predicate picks.
bool IsSearch(const Instruction* reduce);

// Of such a reduction whose function prefers lower places: the comparisons of its function that ask which of the two is
// lower. All places are seen in their order, and what the search begins with has none above the first. Else none.
std::vector<const Instruction*> TestsOfOrder(const Instruction* reduce);

// A search for the greatest element or the least, of equal ones for the first, and for the first NaN where there is
// one. Its function may ask for that in many ways; here it is known to be that, whatever it is given.
struct Extremum {
  bool greatest;
  bool later_value;  // of two equal elements the value is the later one's: 0 may have either sign
};
std::optional<Extremum> ExtremumOf(const Instruction* reduce);

}  // namespace kiln
