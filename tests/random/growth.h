// What the makers of random operations share: the random numbers, the module, and the values that operations take.
#pragma once

#include <random>
#include <vector>

#include "compiler/hlo/graph_builder.h"
#include "tests/random/generator.h"

namespace kiln {

class Growth {
 public:
  Growth(uint64_t seed, const RandomOptions& options, Module* m) : module(m), options(options), rng(seed) {}

  uint64_t Pick(uint64_t n) { return rng() % n; }
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Pick(static_cast<uint64_t>(high - low + 1)));
  }
  bool Chance(int percent) { return Pick(100) < static_cast<uint64_t>(percent); }
  PrimitiveType AnyType();
  Ints AnyDims();
  Expr Any() { return pool[Pick(pool.size())]; }

  // Has an order.
  static bool Number(Expr e) { return e.type() != PrimitiveType::Pred && !Complex(e); }
  static bool Complex(Expr e) { return IsComplex(e.type()); }
  // Sums of several values round in it.
  static bool Narrow(PrimitiveType t) { return IsFloat(t) && InfoOf(t).bits < 32; }
  // Arithmetic works on it, as opposed to types that only hold values.
  static bool Arithmetic(PrimitiveType t) {
    return t != PrimitiveType::Pred && !IsComplex(t) && InfoOf(t).bits >= 8 && !Tiny(t);
  }
  // Floats of eight bits and less.
  static bool Tiny(PrimitiveType t) { return IsFloat(t) && InfoOf(t).bits <= 8; }

  // Values stay small integers, so that sums and products are exact in every type.
  Expr Tame(Expr e);
  // Small integers too, of whole numbers of any size: remainders, which keep more of them apart than bounds do.
  Expr Folded(Expr e);
  // What rounds on the way to a whole number, or to one that is seldom near the middle between two.
  Expr Rounded(Expr e);
  // `e` in another type; of complex numbers the real part, if that is not complex.
  static Expr As(PrimitiveType t, Expr e);
  // Some value of the given type and extents.
  Expr Fit(Computation* c, PrimitiveType t, const Ints& dims);
  // A scalar index, in range or not.
  Expr Index(Computation* c);
  // An operation whose result does not depend on the order, and what begins it.
  Opcode Reducer(PrimitiveType t);
  static double Neutral(Opcode op, PrimitiveType t);
  // A random number of random operations on the pool; `c` is where they go.
  void Grow(Computation* c, uint64_t steps);

  Module* const module;
  const RandomOptions options;
  std::mt19937_64 rng;
  std::vector<Expr> pool;
  int64_t most = 600;      // elements of a value
  int depth = 0;           // of loops and choices around
  bool stateful = false;   // an operation that changes the generator's state was made
  bool diverging = false;  // devices may take different ways here, so they cannot meet
};

// The instruction with the shape that its operands and attributes give it, or that is `given`; nothing where they do
// not fit.
std::optional<Expr> Inferred(Computation* c, Opcode op, const std::vector<Expr>& operands, const Attributes& attrs,
                             const std::optional<Shape>& given = std::nullopt);

// A random operation on `x`, or nothing where it does not fit.
struct Maker {
  int weight;
  std::optional<Expr> (*make)(Growth& g, Computation* c, Expr x);
  bool complex = false;  // takes complex numbers
};

std::vector<Maker> ElementwiseMakers();
std::vector<Maker> MovementMakers();
std::vector<Maker> IndexingMakers();
std::vector<Maker> ReductionMakers();
std::vector<Maker> ControlMakers();
std::vector<Maker> DynamicMakers();
std::vector<Maker> CollectiveMakers();
std::vector<Maker> LibraryMakers();
std::vector<Maker> TransformMakers();
std::vector<Maker> LinearMakers();
std::vector<Maker> ContractionMakers();
std::vector<Maker> PlaceMakers();
std::vector<Maker> SpecialMakers();
std::vector<Maker> StateMakers();

}  // namespace kiln
