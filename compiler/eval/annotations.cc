// Evaluator: custom calls that say where a value is to lie, not what it is.
#include "compiler/eval/families.h"

namespace kiln {

absl::StatusOr<Literal> EvalAnnotation(const Instruction& i, const Shape&, const std::vector<const Literal*>& x) {
  if (!i.Is(Opcode::CustomCall) || !i.attrs().custom_call_target) return absl::NotFoundError("");
  const std::string& target = i.attrs().custom_call_target->text;
  for (const char* annotation :
       {"Sharding", "xla.sdy.FuncResultSharding", "annotate_device_placement", "MoveToDevice", "MoveToHost"})
    if (target == annotation && x.size() == 1) return *x[0];
  return absl::NotFoundError("");
}

}  // namespace kiln
