// Every element of a loop's first state that costs nothing to make has a value of its own.
//
// A loop works on its state in place. Zeros that begin several elements, or are read elsewhere too, and constants would
// each be copied before it; fills of their own lie where the loop wants them, and share a kernel.
#include <algorithm>

#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

// A loop that writes what it computes from constants alone.
bool IsFill(const Instruction* i) {
  if (!i->Is(Opcode::Fusion) || i->attrs().fusion_kind != FusionKind::kLoop || !i->shape().IsArray() ||
      i->operand_count() > 0 || !i->control_predecessors().empty() || !i->control_successors().empty())
    return false;
  constexpr int64_t kMostInstructions = 4;
  const Computation* f = *i->attrs().calls;
  return f->instruction_count() <= kMostInstructions &&
         std::all_of(f->instructions().begin(), f->instructions().end(), [](const auto& x) {
           return x->Is(Opcode::Constant) || x->Is(Opcode::Broadcast) || x->Is(Opcode::Iota) || x->Is(Opcode::Bitcast);
         });
}

bool IsScalarConstant(const Instruction* i) {
  return i->Is(Opcode::Constant) && i->shape().IsArray() && i->shape().rank() == 0;
}

Instruction* FillLike(Instruction* v) {
  Computation* c = v->parent();
  if (v->Is(Opcode::Fusion)) {
    Instruction* fill = c->AddClone(v, v->shape(), {});
    fill->mutable_attrs().calls = c->module()->CloneComputation(*v->attrs().calls);
    return fill;
  }
  Instruction* fill = c->Add(Opcode::Broadcast, v->shape(), {v});
  fill->mutable_attrs().dimensions = Ints();
  return FuseInto(v, WrapInFusion(fill));
}

}  // namespace

absl::StatusOr<bool> WhileInitSplitter(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m))
    for (Instruction* loop : OfOpcode(c, Opcode::While)) {
      Instruction* init = loop->operand(0);
      if (!init->Is(Opcode::Tuple) || init->users().size() != 1) continue;
      for (int64_t k = 0; k < init->operand_count(); ++k) {
        Instruction* v = init->operand(k);
        const auto uses = std::count(init->operands().begin(), init->operands().end(), v);
        const bool shared = uses > 1 || v->users().size() > 1;
        if (!(IsScalarConstant(v) || (IsFill(v) && shared)) || !ctx.Take()) continue;
        init->ReplaceOperand(k, FillLike(v));
        changed = true;
      }
    }
  return changed;
}

}  // namespace kiln
