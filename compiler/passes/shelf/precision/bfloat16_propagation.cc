// What every reader rounds to bf16 is stored as bf16.
//
// An f32 value computed by an operation that only moves or selects elements, and read by nothing but conversions to
// bf16 (or by such operations in turn), may be rounded at its source: rounding commutes with moving, and the module's
// results are the same to the last bit. Arithmetic is not touched: there rounding early would show.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"

namespace kiln {
namespace {

bool Moves(const Instruction* i) {
  return i->HasTrait(Moving) || i->Is(Opcode::DynamicSlice) || i->Is(Opcode::Gather) || i->Is(Opcode::Copy);
}

bool Rounds(const Instruction* i) {
  return i->Is(Opcode::Convert) && i->shape().type() == PrimitiveType::BF16 &&
         i->operand(0)->shape().type() == PrimitiveType::F32;
}

}  // namespace

absl::StatusOr<bool> Bfloat16Propagation(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    std::vector<Instruction*> order = c->PostOrder();
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      Instruction* i = *it;
      if (!Moves(i) || i->shape().type() != PrimitiveType::F32 || i->IsRoot() || i->users().empty()) continue;
      bool all = true;
      for (const Instruction* u : i->users()) all = all && Rounds(u);
      if (!all || !ctx.Take()) continue;
      std::vector<Instruction*> operands;
      for (Instruction* o : i->operands())
        operands.push_back(o->shape().type() == PrimitiveType::F32 ? ConvertTo(PrimitiveType::BF16, o).get() : o);
      Shape narrow = i->shape();
      narrow.set_type(PrimitiveType::BF16);
      Instruction* n = c->AddClone(i, narrow, operands);
      for (Instruction* u : std::vector<Instruction*>(i->users())) {
        u->ReplaceAllUsesWith(n);
        c->Remove(u);
      }
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
