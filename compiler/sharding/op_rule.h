// Which dimensions of an operation's operands and results are cut together.
//
// What: each operation's dimensions as factors, as in an einsum: a dimension lists the factors it is made of, the major
//   one first; dimensions that share a factor correspond. A dimension without factors has to be whole.
// Why: propagation, the choice of a partitioned form and its local shapes all follow from this table alone.
// Guarantees: an operation whose tensors are cut along the same axes of each factor, computed part by part, gives the
//   parts of its result; for factors other than kPass after what the kind says.
#pragma once

#include "compiler/sharding/device_mesh.h"

namespace kiln {

struct OpRule {
  enum Kind {
    kPass,       // in operands and results alike
    kReduction,  // in operands alone: results are partial, and combined
    kLookup,     // of a gather's or slice's operand, one row for each index: rows that a device lacks count as zero
    kRows,       // of an operand that is updated, and of the result: updates of rows that a device lacks are dropped
    kUpdates,    // of a scatter's indices and updates: results are partial
    kWindow,     // in operands and results, where a part takes more than a part of the operand (window_rule.h)
    kWindowSum,  // of a convolution's input and kernel: the same, and results are partial
  };
  // Factors of each dimension.
  using Tensor = std::vector<std::vector<int>>;

  Ints sizes;  // of factors
  std::vector<Kind> kinds;
  std::vector<Tensor> operands, results;  // results: one for each leaf

  bool IsWindow(int f) const {
    return kinds[static_cast<size_t>(f)] == kWindow || kinds[static_cast<size_t>(f)] == kWindowSum;
  }
  int Add(int64_t size, Kind kind = kPass) {
    sizes.push_back(size);
    kinds.push_back(kind);
    return static_cast<int>(sizes.size()) - 1;
  }
};

// Its operands are those of RuleOperands (window_rule.h). Absent for an operation that has to be computed whole, and
// for tuples and control flow.
std::optional<OpRule> RuleOf(const Instruction& i);

// An operation over many rows, matrices or lines that are alike, whose dimensions without factors have to be whole:
// what cuts these had better cut others.
bool IsOfBatches(const Instruction& i);

// The opcode of a reduction's function (a, b) -> op(a, b), where the order of elements does not matter.
std::optional<Opcode> CombinerOf(const Computation& function);

// The same of each result of a function of several pairs, which are combined apart from each other; empty for others,
// such as that of the greatest and its index.
std::vector<Opcode> CombinersOf(const Computation& function);

// The axes of each factor that a tensor so cut shows; axes that fit no factor are left out.
std::vector<Axes> AxesOfFactors(const DeviceMesh& mesh, const OpRule& rule, const OpRule::Tensor& tensor,
                                const Tiling& t);
// A tensor cut along the axes of its factors. Nothing where a factor behind one that is not cut up wholly is cut.
std::optional<Tiling> TilingOfFactors(const DeviceMesh& mesh, const OpRule& rule, const OpRule::Tensor& tensor,
                                      const std::vector<Axes>& axes);

}  // namespace kiln
