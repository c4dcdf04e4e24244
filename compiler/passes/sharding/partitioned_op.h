// One operation over parts of its operands, by the operation's rule.
//
// What: chooses the axes of each factor, brings operands to them, computes one device's part and combines what is
//   partial. An operation without a rule is computed whole on every device.
// Guarantees: the parts that come back are cut as asked for, but uneven and sorted ones may be cut where nothing is
// asked, and what only an elementwise operation takes may be left to that one.
#pragma once

#include <functional>

#include "compiler/passes/sharding/resharder.h"
#include "compiler/sharding/manual_region.h"
#include "compiler/sharding/reducer.h"
#include "compiler/sharding/window_rule.h"

namespace kiln {

// `operands`: of the operation's rule. `wanted`: how each leaf of the result is to be cut.
absl::StatusOr<std::vector<Part>> PartitionOp(const Instruction& op, std::vector<Part> operands,
                                              const std::vector<Tiling>& wanted, Resharder* reshard);

// `wanted` as far as it cuts along no axis that the part is written for, and evenly, or as the part is cut: uneven
// parts come about where an operation makes them, and no array is brought to them. `exactly`: it is.
Tiling Settled(const DeviceMesh& mesh, const Part& part, const Tiling& wanted, bool exactly = false);

// Whether parts of factor `f` may be of unequal size: it is all of its dimensions, and what fills up the last part
// stays there or is masked.
bool MayBeUneven(const Instruction& op, const OpRule& rule, int f);

// The value that changes nothing.
Literal Identity(Opcode op, PrimitiveType t);

// The axes of each factor, from what operands have and results are to have: those on which most arrays agree, then
// those of most bytes. No axis of `manual`.
std::vector<Axes> ChooseAxes(const DeviceMesh& mesh, const Instruction& op, const OpRule& rule,
                             const std::vector<Part>& operands, const std::vector<Tiling>& wanted, AxisMask manual);

// Special forms of an operation over parts; each takes the parts as the factors' axes cut them.
struct LocalOp {
  const Instruction& op;
  const OpRule& rule;
  const std::vector<Axes>& axes;  // of factors
  Resharder& reshard;
  std::vector<Part> parts;  // of the operands
  std::vector<Instruction*> operands;
  std::vector<Shape> shapes;  // of the results

  // The leaves of the result.
  std::vector<Instruction*> Emit();
  // Of partial results that no operation of two numbers combines: the operation over all devices' results. They may be
  // cut along the axes that they were partial along.
  std::vector<Part> OfAll(const std::vector<Part>& partial, const std::vector<Tiling>& wanted);
  bool TakesAll() const;
  // How partial results `k` are combined.
  Computation* Combiner(size_t k) const;
  // Axes of factors whose results are partial.
  Axes PartialAxes() const;

 private:
  const DeviceMesh& mesh() const { return reshard.mesh(); }
  Computation* computation() const { return reshard.computation(); }
  // Axes that cut dimension `d` of a tensor.
  Axes AxesOf(const OpRule::Tensor& t, size_t d) const;
  Instruction* Clone(const std::vector<Instruction*>& with);
  // What fills up uneven parts of dimensions that are summed up becomes `value`.
  Instruction* Masked(size_t k, const std::function<Expr()>& value);
  std::function<Expr()> Zero(size_t k) const;  // of operand `k`'s type
  // Where on the device index `start` of `size` elements along `d` of operand 0 lies.
  Expr LocalStart(size_t d, Expr start, int64_t size);
  std::vector<Instruction*> ResultsOf(Instruction* i) const;
  std::optional<size_t> SharedDimension(const std::vector<Part>& partial, const std::vector<Tiling>& wanted) const;
  std::vector<Part> ReducedAgain(const std::vector<Part>& partial, const std::vector<Tiling>& wanted);
  std::vector<Instruction*> FirstOfAll(const std::vector<Instruction*>& values);
  Instruction* EmitIota();
  Instruction* EmitReduce();
  Instruction* EmitGather();
  Instruction* EmitScatter();
  // In local_window.cc.
  Instruction* EmitDynamicSlice();
  Expr LookUp(Expr x, std::vector<Expr> starts);
  bool LooksUp(size_t d) const;
  Instruction* EmitDynamicUpdateSlice();
  Instruction* EmitUnpooled(const Unpooled& u);
  Instruction* EmitRotation(const Rotation& r);
  Instruction* EmitPadded(const Padded& p);
  Instruction* EmitPlaced(const Placed& p);
  Instruction* EmitSlice();
  Instruction* EmitConcatenate();
  Instruction* EmitWindow();
  Instruction* EmitPooled(const Pooled& p);
  // Operand `k` with all that the part takes of it; `stretches`: of its dimensions.
  Instruction* Fetch(size_t k, const std::optional<Expr>& fill, std::vector<std::optional<Stretch>>* stretches);
  Axes WindowAxes(size_t k, size_t d) const;
  // Dimension `d` of a result without what comes before and behind the part of dimension `in` of operand 0.
  Instruction* PartBehind(Instruction* i, const Stretch& s, size_t in, size_t d);
  Expr ShiftedIndices(const std::vector<std::pair<int64_t, Expr>>& offsets, Expr indices) const;
};

}  // namespace kiln
