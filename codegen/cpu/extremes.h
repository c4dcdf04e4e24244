// Maxima and minima of floats, reduced as integers.
//
// The maximum of HLO gives NaN for NaN and tells +0 from -0: five dependent instructions of a vector machine. A key is
// an unsigned integer that orders like its number, NaN above all, so that a step of a reduction is one integer maximum.
// Guarantees: the same number as the reducer gives in any order; NaN is some NaN.
#pragma once

#include "codegen/elemental/search.h"
#include "codegen/llvm/ir.h"

namespace kiln::cpu {

class ExtremeKeys {
 public:
  // Of a reduction of one array by `reducer`; Apply() says whether it is one that has keys.
  explicit ExtremeKeys(const Computation& reducer);
  bool Apply() const { return apply_; }
  PrimitiveType KeyType() const { return key_; }

  Val Encode(Ir& ir, const Val& number) const;
  Val Decode(Ir& ir, const Val& key) const;
  Val Combine(Ir& ir, const Val& a, const Val& b) const;

  // The same where what is reduced so far lies in registers: two numbers, and a step of three instructions.
  // `highest`: of bits as signed integers, the result unless all are negative. `least`: of bits that are turned round
  // so that NaN of the negative sign comes first, numbers that are not negative then, and of the negative ones the
  // greatest first.
  struct Pair {
    llvm::Value *highest, *least;
  };
  Pair First(Ir& ir, const Val& number) const;
  Pair Next(Ir& ir, const Pair& so_far, const Val& number) const;
  Val Result(Ir& ir, const Pair& all) const;

 private:
  llvm::Value* Bits(Ir& ir, const Val& number) const;
  llvm::Constant* Turned(Ir& ir) const;  // by how much
  llvm::Constant* Lowest(Ir& ir) const;

  bool apply_ = false, minimum_ = false;
  PrimitiveType key_ = PrimitiveType::S32;
};

// A step of a search for an extreme of elements of type `t` and its place: half of the instructions that its function
// takes.
struct Found {
  Val value, place;
};
Found Choose(Ir& ir, const Extremum& extremum, PrimitiveType t, const Found& so_far, const Found& next);

}  // namespace kiln::cpu
