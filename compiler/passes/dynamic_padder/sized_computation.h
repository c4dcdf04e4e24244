// What the parts of dynamic-padder share: the sizes of dynamic dimensions in one computation.
//
// A family of operations (shape, indices, contraction, sort, control flow) is a file of functions over a
// SizedComputation; each rewrites its instruction and states the sizes of what it gives.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "compiler/hlo/graph_builder.h"

namespace kiln::padding {

using Sizes = std::map<int64_t, Instruction*>;  // s32[] by dimension; absent: static
using LeafSizes = std::map<ShapeIndex, Sizes>;  // by leaf of a value; absent: static
using DynamicDims = std::set<std::pair<ShapeIndex, int64_t>>;

class SizedComputation {
 public:
  SizedComputation(Module* m, Computation* c) : m_(m), c_(c) {}
  Module* module() const { return m_; }
  Computation* computation() const { return c_; }

  const LeafSizes& All(const Instruction* i) const;
  const Sizes& Of(const Instruction* i, const ShapeIndex& leaf = {}) const;
  void Set(const Instruction* i, const Sizes& sizes) { SetAll(i, {{{}, sizes}}); }
  void SetAll(const Instruction* i, LeafSizes sizes);
  bool IsDynamic(const Instruction* i) const { return sizes_.contains(i); }
  // The size of a dimension, or its extent if it is static.
  Expr SizeOf(const Instruction* i, int64_t dim, const ShapeIndex& leaf = {});

  Expr Int(int64_t v) { return IntegerIn(c_, PrimitiveType::S32, v); }
  Expr Zero(const Instruction* x) { return c_->AddConstant(Literal::Of(x->shape().type(), 0)); }
  // `x` with `value`, a scalar or an array like `x`, past the size of each dimension in `dims` that has one.
  Instruction* Masked(Instruction* x, const Ints& dims, Expr value);
  // Puts `with` in the place of `i`, which is removed.
  absl::Status Replace(Instruction* i, Instruction* with, const LeafSizes& sizes);

 private:
  Module* m_;
  Computation* c_;
  absl::flat_hash_map<const Instruction*, LeafSizes> sizes_;
};

// Dynamic dimensions that a shape declares, and those of which sizes are known.
DynamicDims DeclaredDims(const Shape& s);
DynamicDims KnownDims(const LeafSizes& sizes);
void StripDynamic(Shape* s);
// True if `c` or something that it runs has a dynamic dimension.
bool IsDynamicComputation(const Computation* c);
Ints AllDims(const Shape& s);
// What changes no sum, product or disjunction that `reducer` makes; any other result takes `init`, which HLO asks to
// change none.
Expr NeutralOf(SizedComputation& f, const Computation* reducer, Instruction* init);
// An operand's size is lost here, or a size that the shape declares was never stated.
absl::Status RefuseDynamic(const SizedComputation& f, const Instruction* i);

// Element `k` of a tuple, without a get-tuple-element where the tuple is at hand.
Instruction* ElementOf(Instruction* tuple, int64_t k);
// Makes parameter `p` a tuple that also holds a size for each of `dims`; its users see the value that they knew.
void AddSizesToParameter(SizedComputation& f, Instruction* p, const DynamicDims& dims);
// `value` as such a tuple.
Instruction* WithSizes(SizedComputation& f, Instruction* value, const DynamicDims& dims);

// Rewrites every instruction of the computation and drops the marks of dynamic dimensions.
absl::Status PadComputation(SizedComputation& f);
// The same for one instruction of a family; the instruction may be gone afterwards.
absl::Status PadControlFlow(SizedComputation& f, Instruction* i);
absl::Status PadShapeOperation(SizedComputation& f, Instruction* i);
absl::Status PadReshape(SizedComputation& f, Instruction* i);
absl::Status PadIndexed(SizedComputation& f, Instruction* i);
absl::Status PadContraction(SizedComputation& f, Instruction* i);
absl::Status PadSort(SizedComputation& f, Instruction* i);

}  // namespace kiln::padding
