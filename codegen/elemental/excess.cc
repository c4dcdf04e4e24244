#include "codegen/elemental/excess.h"

#include <algorithm>

#include "codegen/elemental/movement.h"

namespace kiln {

bool MayHoldExcess(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::Parameter:
    case Opcode::Constant:
    case Opcode::Convert:
      return false;
    case Opcode::Bitcast:
    case Opcode::Broadcast:
    case Opcode::Reshape:
    case Opcode::Slice:
    case Opcode::Transpose:
      return MayHoldExcess(i->operand(0));
    default:
      return true;
  }
}

bool TakesRounded(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::Ceil:
    case Opcode::Compare:
    case Opcode::Convert:
    case Opcode::Floor:
    case Opcode::IsFinite:
    case Opcode::ReducePrecision:
    case Opcode::Remainder:
    case Opcode::RoundNearestAfz:
    case Opcode::RoundNearestEven:
    case Opcode::Sign:
      return true;
    default:
      return false;
  }
}

bool FeedsChoice(const Instruction* i) {
  return std::any_of(i->users().begin(), i->users().end(), [](const Instruction* u) {
    const bool reduces = u->Is(Opcode::Reduce) || u->Is(Opcode::ReduceWindow);
    return u->Is(Opcode::SelectAndScatter) || (reduces && u->shape().IsTuple()) ||
           (IsMovement(u->opcode()) && FeedsChoice(u));
  });
}

}  // namespace kiln
