// Products with nothing to tile, of vectors, of a small matrix and a vector, or of no sum at all, as multiplications
// and a sum: a loop that fuses with what surrounds it.
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/simplify/dot_form.h"

namespace kiln {
namespace {

// Multiplications of the largest product of a matrix and a vector that is no library's (XLA's bound).
constexpr int64_t kSmall = 10'000'000;

bool IsWanted(const Instruction* i) {
  if (!i->Is(Opcode::Dot) || i->operand_count() != 2 || i->attrs().sparsity || i->shape().HasDynamic() ||
      !MultipliesAsAsked(i))
    return false;
  const DotSide l = SideOf(i, 0), r = SideOf(i, 1);
  if (l.contracting.empty() || (l.free.empty() && r.free.empty())) return true;
  int64_t multiplications = i->shape().ElementCount();
  for (int64_t d : l.contracting) multiplications *= i->operand(0)->shape().dim(d);
  return (l.free.empty() || r.free.empty()) && multiplications < kSmall;
}

}  // namespace

absl::StatusOr<bool> DotStrengthReduction(Module& m, PassContext& ctx) {
  return ExpandEach(m, ctx, IsWanted,
                    [](Instruction* i) -> absl::StatusOr<Instruction*> { return DotAsProducts(i).get(); });
}

}  // namespace kiln
