// Reductions between devices whose result depends on the order of the members get one: the group's. They become
// gathers, and sums that each device makes of what it gathered. Integer sums and other combinations that no order can
// change stay as they are.
#include "compiler/hlo/exchange.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/collective_gathers.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

bool OrderMatters(const Instruction* i) {
  if (!IsSynchronousCollective(i) || !i->attrs().to_apply) return false;
  const Instruction* r = (*i->attrs().to_apply)->root();
  if (r->operand_count() != 2 || !r->operand(0)->Is(Opcode::Parameter) || !r->operand(1)->Is(Opcode::Parameter))
    return true;
  switch (r->opcode()) {
    case Opcode::Minimum:
    case Opcode::Maximum:
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor:
      return false;
    case Opcode::Add:
    case Opcode::Multiply:
      return IsFloat(r->shape().type()) || IsComplex(r->shape().type());
    default:
      return true;
  }
}

}  // namespace

absl::StatusOr<bool> CollectiveDeterminismExpander(Module& m, PassContext& ctx) {
  return ExpandEach(m, ctx, OrderMatters, [&](Instruction* i) { return AsGather(i, m); });
}

}  // namespace kiln
