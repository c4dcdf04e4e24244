// Random valid HLO modules whose results are exact: small integers in every type, kept small, so that any order of
// evaluation gives the same bits and every difference is a bug.
#pragma once

#include <memory>

#include "compiler/hlo/instruction.h"

namespace kiln {

struct RandomOptions {
  // Replicas; of more than one, programs have collectives between them.
  int64_t devices = 1;
  // Bounded dynamic dimensions: sizes that travel through loops, choices and tuples.
  bool dynamic = false;
  // Algorithms besides: transforms, factorisations, random bits.
  bool libraries = false;
  // Reductions by functions that do not commute or are not associative, or from other values than their identity, for
  // backends that reduce in order.
  bool ordered = false;
  // More operations, types and attributes, complex numbers, operands with values of their own, and now and then large
  // arrays.
  bool wide = false;
  // What is added to numbers that are rounded: one that lies at the middle between two does not with another.
  double offset = 0.1371;
  // Only what XLA's text and StableHLO can express, so that the module can be given to XLA.
  bool portable = false;
};

// The same module for the same seed and options on every machine.
std::unique_ptr<Module> RandomModule(uint64_t seed, const RandomOptions& options = {});

}  // namespace kiln
