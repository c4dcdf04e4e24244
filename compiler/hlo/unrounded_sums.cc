#include "compiler/hlo/unrounded_sums.h"

namespace kiln {

bool SumsUnrounded(const Instruction* i) {
  constexpr int64_t kShortWindow = 128;  // elements
  int64_t window = 1;
  for (const WindowDim& d : i->attrs().window.value_or(attr::Win())) window *= d.size;
  if (i->Is(Opcode::ReduceWindow) && window <= kShortWindow) return false;
  const Computation& f = **i->attrs().to_apply;
  const Instruction* r = f.root();
  return r->Is(Opcode::Add) && f.parameters().size() == 2 && IsFloat(r->shape().type()) &&
         InfoOf(r->shape().type()).bits < 32 && r->operand(0)->Is(Opcode::Parameter) &&
         r->operand(1)->Is(Opcode::Parameter) && r->operand(0) != r->operand(1);
}

}  // namespace kiln
