// One element of one operation, for any shell: loops, reductions, updates.
//
// What: computes the value of any instruction of a fused computation at an index, as LLVM IR at the builder's position.
// Guarantees: nothing is read outside an operand; a value used twice at one index is computed once in a block.
// The caller decides who visits which index; layouts are applied only where a parameter is loaded.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "codegen/llvm/ir.h"

namespace kiln {

struct Index {
  std::vector<llvm::Value*> dims;
  // Row-major position in a shape of these dimensions, where it is already known.
  llvm::Value* linear = nullptr;
};

class ElementEmitter {
 public:
  // `parameters`: base pointers of the fused computation's parameters.
  ElementEmitter(Ir& ir, std::vector<llvm::Value*> parameters) : ir_(ir), params_(std::move(parameters)) {}

  absl::StatusOr<Val> Emit(const Instruction* i, const Index& index);
  // From now on `i` is `v`, whatever the index: the caller computed it for the place it is at.
  void Preset(const Instruction* i, const Val& v) { preset_[i] = v; }
  // From now on `i` is computed again.
  void Forget(const Instruction* i) { preset_.erase(i); }
  // From now on the elements of `i` are read from `copy`, where they lie as `shape` has them, so far (`offset`) behind
  // their places.
  void ReadFrom(const Instruction* i, llvm::Value* copy, const Shape& shape, const Ints& offset = {}) {
    copies_.insert_or_assign(i, Copy{copy, shape, offset});
  }
  // From now on the element at row-major position `linear` (null: none) lies at `place` in an array of as many elements
  // that it is reshaped to or from: the caller knows its dimensions there without divisions.
  void ReshapeTo(llvm::Value* linear, std::function<Index(const Shape&)> place) {
    reshaped_ = linear;
    place_ = std::move(place);
  }
  // That place; none elsewhere.
  std::optional<Index> PlaceOf(const Index& index, const Shape& shape) const {
    return index.linear && index.linear == reshaped_ ? std::optional<Index>(place_(shape)) : std::nullopt;
  }
  // The reductions of the window at `index`, one for each operand array.
  absl::StatusOr<std::vector<Val>> EmitWindow(const Instruction* i, const Index& index);
  // From now on the windows of `window` (null: of none) lie inside its array along these dimensions: nothing is checked
  // there.
  void WindowsInside(const Instruction* window, std::vector<bool> dims) {
    inside_ = window;
    inside_dims_ = std::move(dims);
  }
  // A computation on scalars, such as a reducer, applied to values. One Val per result.
  // The element of type `to` with the bits of `v`; both types take as many.
  Val Reinterpret(const Val& v, PrimitiveType from, PrimitiveType to);
  absl::StatusOr<std::vector<Val>> Apply(const Computation& f, const std::vector<Val>& arguments);
  // Element offset of `index` in memory of `shape`.
  llvm::Value* Offset(const Shape& shape, const Index& index);
  // Where the array of a parameter lies.
  llvm::Value* Address(const Instruction* parameter) const { return params_[*parameter->attrs().parameter_number]; }
  // Start index operand as i64, clamped to [0, extent - window].
  absl::StatusOr<llvm::Value*> ClampedStart(const Instruction* start, const Index& at, int64_t extent, int64_t window);

  Ir& ir() { return ir_; }

 private:
  struct Key {
    const Instruction* i;
    llvm::BasicBlock* block;
    std::vector<llvm::Value*> dims;
    bool operator==(const Key& o) const { return i == o.i && block == o.block && dims == o.dims; }
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.i, k.block, k.dims);
    }
  };
  struct Copy {
    llvm::Value* address;
    Shape shape;
    Ints offset;
  };
  absl::StatusOr<Val> EmitUncached(const Instruction* i, const Index& index);
  absl::StatusOr<Val> EmitGather(const Instruction* i, const Index& index);

  Ir& ir_;
  std::vector<llvm::Value*> params_;
  absl::flat_hash_map<Key, Val> cache_;
  absl::flat_hash_map<const Instruction*, Val> preset_;
  absl::flat_hash_map<const Instruction*, Copy> copies_;
  llvm::Value* reshaped_ = nullptr;
  std::function<Index(const Shape&)> place_;
  const Instruction* inside_ = nullptr;
  std::vector<bool> inside_dims_;
};

// Elementwise operation `i` on operand values.
absl::StatusOr<Val> EmitElementwise(Ir& ir, const Instruction* i, const std::vector<Val>& x);

// acc + x * y, all of type `t`.
Val MultiplyAdd(Ir& ir, PrimitiveType t, const Val& acc, const Val& x, const Val& y);

// Where a scatter puts what: the roles of the dimensions of its updates.
struct ScatterPlan {
  explicit ScatterPlan(const Instruction* scatter);
  size_t arrays;  // that it updates together
  const Shape &target, &updates;
  const Instruction* indices;
  Ints batch_dims, window_dims;  // of the updates
  Ints to;                       // target dimension of each window dimension
  Ints extent;                   // of the window, in every target dimension
  bool fits = true;              // a window is no larger than the target

  struct Start {
    std::vector<llvm::Value*> dims;  // first position of the window in every target dimension
    llvm::Value* inside;             // the whole window lies in the target
  };
  // `batch`: the position in the batch dimensions of the updates.
  absl::StatusOr<Start> StartOf(ElementEmitter& elements, const std::vector<llvm::Value*>& batch) const;

 private:
  const Instruction* scatter_;
};

// The one dimension along which a reduce-window of one array reaches from each element to the first, or to the last, of
// its line, and nothing else: a running reduction. -1 of other windows.
int64_t RunningDim(const Instruction* reduce_window);

// The innermost dimension that is not 1 (0 if there is none).
int64_t MinorDim(const Shape& s);

// Reduction-safe combine: float operations of this block may be reassociated, so that loops over them vectorise.
void AllowReassociation(Ir& ir, bool allow);

}  // namespace kiln
