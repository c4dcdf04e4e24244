// Evaluator: custom calls that say where a value is to lie, not what it is; and memory that holds nothing yet, of which
// nobody reads the zeros that it is given here.
#include "compiler/eval/families.h"
#include "compiler/hlo/annotation.h"

namespace kiln {

absl::StatusOr<Literal> EvalAnnotation(const Instruction& i, const Shape& shape, const std::vector<const Literal*>& x) {
  const auto& target = i.attrs().custom_call_target;
  if (i.Is(Opcode::CustomCall) && x.empty() && target && target->text == "AllocateBuffer") return Literal(shape);
  return IsAnnotation(i) ? absl::StatusOr<Literal>(*x[0]) : absl::NotFoundError("");
}

}  // namespace kiln
