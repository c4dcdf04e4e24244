// Evaluator: calls of GPU libraries, those that scale by blocks and those that name operations of HLO, as the ordinary
// operations that they stand for.
#include "compiler/hlo/library_calls.h"

#include "compiler/eval/evaluator.h"
#include "compiler/eval/families.h"
#include "compiler/hlo/block_scaling.h"
#include "compiler/hlo/named_operations.h"

namespace kiln {

absl::StatusOr<Literal> EvalLibraryCall(const Instruction& i, const Shape&, const std::vector<const Literal*>& x) {
  const bool named = IsNamedOperation(&i);
  if (!named && !IsLibraryCall(&i) && !IsBlockScaling(&i)) return absl::NotFoundError("");
  Module m("library_call");
  Computation* c = m.AddComputation("meaning");
  m.set_entry(c);
  std::vector<Instruction*> operands;
  std::vector<Literal> arguments;
  for (size_t k = 0; k < x.size(); ++k) {
    operands.push_back(c->AddParameter(static_cast<int64_t>(k), i.operand(static_cast<int64_t>(k))->shape(), "p"));
    arguments.push_back(*x[k]);
  }
  absl::StatusOr<Instruction*> root = named ? NamedOperationOf(&i, c, operands) : MeaningOf(&i, c, operands);
  RETURN_IF_ERROR(root.status());
  c->set_root(*root);
  return EvaluateComputation(*c, arguments);
}

}  // namespace kiln
