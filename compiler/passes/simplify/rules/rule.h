// Rules of algebra: a row each, in tables by family.
//
// What: a rule looks at one instruction and its operands and builds a simpler value, or gives null.
// Guarantees: for an instruction of the rule's opcodes and element types the value is equal in the sense of `numerics`,
//   for every input, NaN, infinities and signed zeros included. tests/passes/rules_test.cc holds each rule to its row:
//   it fires on the one example and not on the other, at every type that it admits, and both sides are evaluated on
//   random and on extreme inputs.
// Source: HLO semantics; XLA's AlgebraicSimplifier for the choice of rules.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "compiler/hlo/instruction.h"
#include "compiler/pass/algebra.h"

namespace kiln {

// Element types of the result.
enum TypeSet : unsigned { kInts = 1, kFloats = 2, kPred = 4, kComplex = 8, kReal = 7, kAllTypes = 15, kTuples = 16 };

// What a rule may do to a result.
enum class Numerics {
  Exact,     // nothing
  ZeroSign,  // the sign of a zero, where HLO leaves the order of additions open
  Rounding,  // the last bit: it rounds at other places
  Order,     // what it adds up it adds in another order, or in a wider type
  Range,     // also overflow and underflow on the way to a result that real numbers have
  Finite,    // what NaN, infinities and negative zeros give
};

// Whether the choice of algebra lets rules of the class be applied.
bool Admits(Algebra algebra, Numerics numerics);

struct Rule {
  const char* name;
  std::vector<Opcode> opcodes;
  unsigned types;
  Numerics numerics;
  // Bodies of an entry with parameters p, q : $T[4,6], s : $T[] and k : pred[4,6]; the root is what the rule is for.
  // A text with a line "ENTRY" is whole computations with parameters of their own. Both may call `sum` over
  // $T and `argmax` over (f32, s32).
  const char* fires;
  const char* refuses;
  // The new value, which may be one that was there before; null: the rule does not apply.
  Instruction* (*rewrite)(Instruction* i);
  // Whether it is only for modules without layouts: it changes extents that later stages have settled.
  bool before_layouts = false;
};

unsigned TypeSetOf(const Shape& shape);

// In the order in which they are tried.
absl::Span<const Rule> ArithmeticRules();  // add, multiply, power, ...
absl::Span<const Rule> SumRules();
absl::Span<const Rule> ProductRules();
absl::Span<const Rule> QuotientRules();
absl::Span<const Rule> PowerRules();       // with roots, exponentials and logarithms
absl::Span<const Rule> ComparisonRules();  // and what is made of them
absl::Span<const Rule> ExtremumRules();
absl::Span<const Rule> SelectRules();
absl::Span<const Rule> ConstantRules();  // and iotas
absl::Span<const Rule> SinkingRules();   // of broadcasts, below what is elementwise
absl::Span<const Rule> PadRules();
absl::Span<const Rule> PadSumRules();
absl::Span<const Rule> DynamicSliceRules();  // and updates
absl::Span<const Rule> LogicRules();         // and, or, select, maximum, ...
absl::Span<const Rule> ConversionRules();    // convert, real, imag
absl::Span<const Rule> BroadcastRules();
absl::Span<const Rule> ReshapeRules();
absl::Span<const Rule> TransposeRules();
absl::Span<const Rule> SliceRules();       // slices of slices, of concatenations, ...
absl::Span<const Rule> PieceRules();       // pad, concatenate, reverse, dynamic slices
absl::Span<const Rule> DotRules();         // the form of a dot
absl::Span<const Rule> DotOperandRules();  // dots of transposes, reshapes, concatenations; transposes of dots
absl::Span<const Rule> ReduceRules();
absl::Span<const Rule> ReduceOperandRules();    // reductions of transposes, reshapes, reductions, ...
absl::Span<const Rule> ReduceBroadcastRules();  // reductions of what was repeated
absl::Span<const Rule> ReduceDotRules();        // reductions of products
absl::Span<const Rule> ReduceWindowRules();
absl::Span<const Rule> GatherRules();
absl::Span<const Rule> ScatterRules();
absl::Span<const Rule> MapRules();  // and scatters of whole arrays
absl::Span<const Rule> ConvolutionRules();
absl::Span<const Rule> CollectiveRules();
absl::Span<const Rule> SortRules();
absl::Span<const Rule> BarrierRules();
absl::Span<const Rule> OrderRules();  // one order for operands; last
// All of them, family by family.
const std::vector<const Rule*>& AllRules();
// Those for `opcode`.
const std::vector<const Rule*>& RulesFor(Opcode opcode);

}  // namespace kiln
