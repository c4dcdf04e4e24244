// The elements of a window or of a reduced line, combined one after the other where an element of the result is needed.
#pragma once

#include <vector>

#include "codegen/elemental/element.h"

namespace kiln {

// The function of `i` of what is combined so far and what comes. What is no such sum keeps its own rounding.
absl::StatusOr<std::vector<Val>> Combine(ElementEmitter& elements, const Instruction* i,
                                         const std::vector<Val>& arguments);

// What a reduce or reduce-window of one array or several has combined so far.
class Accumulator {
 public:
  // With the initial values, at the builder's position.
  static absl::StatusOr<Accumulator> Begin(ElementEmitter& elements, const Instruction* i);
  // Combines the operands' elements at `at`.
  absl::Status Take(const Index& at);
  std::vector<Val> Get();

 private:
  std::vector<Val> SoFar();
  Accumulator(ElementEmitter& elements, const Instruction* i) : elements_(elements), i_(i) {}
  PrimitiveType Type(size_t k) const { return i_->operand(static_cast<int64_t>(k))->shape().type(); }
  void Put(size_t k, const Val& v);

  ElementEmitter& elements_;
  const Instruction* i_;
  std::vector<llvm::Value*> slots_;
};

// The results of reduction `i` at `index`, one for each operand array.
absl::StatusOr<std::vector<Val>> EmitReduced(ElementEmitter& elements, const Instruction* i, const Index& index);

}  // namespace kiln
