// A value of a loop's body in all iterations, as one array [iterations, ...].
//
// What: says which values lie in such an array anyway (slices of what the loop does not change, one after the other in
//   either direction, and what the loop stores so), keeps others in new arrays, and builds the array outside.
// Guarantees: what is known is known of every iteration, no index being clamped; all arrays have one order.
// Cost: an index's expression is evaluated for each iteration, once.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/loops/while_state.h"

namespace kiln {

// Whether `i` is the same in every iteration and lies there before the loop, but for its form.
bool IsFixed(const Instruction* loop, const Instruction* i);
// The same value before the loop.
Instruction* BeforeLoop(Instruction* loop, const Instruction* i);

// What an index is in the iterations: first, first + by, first + 2 by and so on; by is 1 or -1.
struct Walk {
  int64_t first = 0, by = 1;
};

class StepArrays {
 public:
  StepArrays(const Instruction* loop, const Induction& count);

  // What `v` of the body is in memory that moves or is converted only: what lies in an array anyway, or else the
  // smallest that it is made of so, which a new array would keep.
  Instruction* BaseOf(Instruction* v) const;
  bool IsKnown(const Instruction* base) const { return Find(base).has_value(); }
  // Bytes that the arrays take which the loop slices or stores step by step.
  int64_t known_bytes() const;
  // Whether they go down: new ones do what the first of them does.
  bool down() const { return !known_.empty() && known_.begin()->second.walk.by < 0; }
  // Elements of the state that are arrays of which the loop stores every part, another in each iteration.
  const std::vector<int64_t>& filled() const { return filled_; }
  // Of the array that keeps `base`.
  Shape ShapeOf(const Instruction* base) const;

  // In the body: element `k` of the state, of shape ShapeOf(base), takes `base` in each iteration.
  void Keep(Instruction* base, int64_t k);
  // Beside the loop, given what BaseOf(v) is: all iterations of `v`.
  Expr All(Instruction* v, Instruction* loop) const;

 private:
  struct Place {
    int64_t element = 0;  // of the state
    bool is_stored = false;
    Walk walk;
    Instruction* index = nullptr;
  };
  std::optional<Walk> WalkOf(const Instruction* index) const;
  std::optional<Place> PlaceOf(const Instruction* array, Instruction* index, const Shape& part,
                               std::optional<Walk> walk) const;
  std::optional<Place> Find(const Instruction* base) const;
  Expr Base(const Instruction* base, Instruction* loop) const;
  Instruction* Index() const;

  const Instruction* loop_;
  Induction count_;
  std::map<int64_t, Place> known_;  // by the id of the value
  std::vector<int64_t> filled_;
};

}  // namespace kiln
