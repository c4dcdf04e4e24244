// Scalar constants that a fusion is given become its own.
#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"

namespace kiln {
namespace {

bool Sinks(const Instruction* i) { return i->Is(Opcode::Constant) && i->shape().IsScalar(); }

// Takes operand `k` and the parameter that stands for it out of the fusion.
void Sink(Instruction* fusion, int64_t k) {
  Computation* body = *fusion->attrs().calls;
  Instruction* constant = body->AddConstant(fusion->operand(k)->literal());
  constant->mutable_shape() = fusion->operand(k)->shape();
  body->parameter(k)->ReplaceAllUsesWith(constant);
  body->RemoveParameter(k);
  fusion->RemoveOperand(k);
}

}  // namespace

absl::StatusOr<bool> ScalarConstantSinker(Module& m, PassContext& ctx) {
  bool changed = false;
  std::vector<Computation*> all;
  for (const auto& c : m.computations()) all.push_back(c.get());
  for (Computation* c : all)
    for (Instruction* fusion : OfOpcode(c, Opcode::Fusion)) {
      if (fusion->attrs().fusion_kind == FusionKind::kCustom) continue;
      if (std::none_of(fusion->operands().begin(), fusion->operands().end(), Sinks) || !ctx.Take()) continue;
      fusion->mutable_attrs().calls = m.CloneComputation(*fusion->attrs().calls);
      for (int64_t k = fusion->operand_count(); k-- > 0;)
        if (Sinks(fusion->operand(k))) Sink(fusion, k);
      changed = true;
    }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
