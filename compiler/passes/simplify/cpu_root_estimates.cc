// 1 / (x * sqrt(x)), which a power of -3/2 became, is marked where rounding is free: where the level has an estimate of
// inverse roots, code comes of that (codegen/llvm/inverse_roots.h). A root and a division wait for the divider.
#include "compiler/pass/pass.h"
#include "compiler/passes/simplify/rules/pattern.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

bool IsInversePower(const Instruction* i) {
  if (!i->Is(Opcode::Divide) || i->shape().type() != PrimitiveType::F32 || !pattern::IsAll(i->operand(0), 1))
    return false;
  const Instruction* product = i->operand(1);
  if (!product->Is(Opcode::Multiply)) return false;
  const Instruction *a = product->operand(0), *b = product->operand(1);
  return (a->Is(Opcode::Sqrt) && a->operand(0) == b) || (b->Is(Opcode::Sqrt) && b->operand(0) == a);
}

}  // namespace

absl::StatusOr<bool> CpuRootEstimates(Module& m, PassContext& ctx) {
  if (!Admits(ctx.algebra, Numerics::Range)) return false;
  bool changed = false;
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions())
      if (IsInversePower(i.get()) && !i->attrs().backend_config && ctx.Take()) {
        i->mutable_attrs().backend_config = std::string("{\"root\":\"estimate\"}");
        changed = true;
      }
  return changed;
}

}  // namespace kiln
