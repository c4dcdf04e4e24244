// Evaluator entry points by op family, on operands of run-time extents; `shape` is what RuntimeShape says of the
// result. Each answers NotFound for an opcode that is not of its family.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

absl::StatusOr<Literal> EvalShapeOp(const Instruction& i, const Shape& shape, const std::vector<const Literal*>& x);
absl::StatusOr<Literal> EvalReduction(const Instruction& i, const Shape& shape, const std::vector<const Literal*>& x);
absl::StatusOr<Literal> EvalContraction(const Instruction& i, const Shape& shape, const std::vector<const Literal*>& x);
absl::StatusOr<Literal> EvalCollective(const Instruction& i, const Shape& shape, const std::vector<const Literal*>& x);
absl::StatusOr<Literal> EvalLapack(const Instruction& i, const Shape& shape, const std::vector<const Literal*>& x);
absl::StatusOr<Literal> EvalCsrProduct(const Instruction& i, const Shape& shape, const std::vector<const Literal*>& x);
// Calls of GPU libraries (hlo/library_calls.h) and of what names operations of HLO (hlo/named_operations.h).
absl::StatusOr<Literal> EvalLibraryCall(const Instruction& i, const Shape& shape, const std::vector<const Literal*>& x);
absl::StatusOr<Literal> EvalAnnotation(const Instruction& i, const Shape& shape, const std::vector<const Literal*>& x);
absl::StatusOr<Literal> EvalManualBoundary(const Instruction& i, const Shape& shape,
                                           const std::vector<const Literal*>& x);
absl::StatusOr<Literal> EvalLinalg(const Instruction& i, const Shape& shape, const std::vector<const Literal*>& x);
absl::StatusOr<Literal> EvalBatchNorm(const Instruction& i, const Shape& shape, const std::vector<const Literal*>& x);
absl::StatusOr<Literal> EvalRandom(const Instruction& i, const Shape& shape, const std::vector<const Literal*>& x);
// As a program finds it that was just created.
void ForgetRandomState();
// What lies past a size is not there; a static result that reads it has zeros.
absl::StatusOr<Literal> EvalDynamicSize(const Instruction& i, const Shape& shape, const std::vector<const Literal*>& x);
// A called computation on scalars.
absl::StatusOr<Literal> CallScalar(const Computation& f, const std::vector<Element>& args);

// A family as a table: what each of its opcodes means.
struct Meaning {
  Opcode opcode;
  absl::StatusOr<Literal> (*evaluate)(const Instruction& i, const Shape& shape, const std::vector<const Literal*>& x);
};
template <size_t N>
absl::StatusOr<Literal> EvaluateBy(const Meaning (&family)[N], const Instruction& i, const Shape& shape,
                                   const std::vector<const Literal*>& x) {
  for (const Meaning& m : family)
    if (i.Is(m.opcode)) return m.evaluate(i, shape, x);
  return absl::NotFoundError("");
}

// Row-major positions of a shape.
class IndexSpace {
 public:
  explicit IndexSpace(const Ints& dims) : dims_(dims), strides_(dims.size(), 1) {
    for (int64_t d = static_cast<int64_t>(dims.size()) - 2; d >= 0; --d) strides_[d] = strides_[d + 1] * dims[d + 1];
  }
  int64_t Linear(const Ints& index) const {
    int64_t n = 0;
    for (size_t d = 0; d < dims_.size(); ++d) n += index[d] * strides_[d];
    return n;
  }
  bool Holds(const Ints& index) const {
    for (size_t d = 0; d < dims_.size(); ++d)
      if (index[d] < 0 || index[d] >= dims_[d]) return false;
    return true;
  }
  Ints At(int64_t linear) const {
    Ints v(dims_.size());
    for (size_t d = 0; d < dims_.size(); ++d) {
      v[d] = linear / strides_[d];
      linear %= strides_[d];
    }
    return v;
  }

 private:
  Ints dims_, strides_;
};

}  // namespace kiln
