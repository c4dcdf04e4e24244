// Elements of a loop's state that are constants before the loop and that the body passes on are constants inside it.
#include "compiler/pass/pass.h"
#include "compiler/passes/loops/while_state.h"

namespace kiln {
namespace {

bool ConstantLike(const Instruction* i) {
  return i->Is(Opcode::Constant) || (i->Is(Opcode::Broadcast) && i->operand(0)->Is(Opcode::Constant));
}

Instruction* CopyInto(Computation* c, const Instruction* constant) {
  if (constant->Is(Opcode::Constant)) return c->AddClone(constant, constant->shape(), {});
  return c->AddClone(constant, constant->shape(), {CopyInto(c, constant->operand(0))});
}

}  // namespace

absl::StatusOr<bool> WhileLoopConstantSinking(Module& m, PassContext& ctx) {
  bool changed = false;
  std::vector<Computation*> all = m.PostOrder();
  // Outer loops first: what is sunk into a body can go on into the loops inside.
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    for (Instruction* loop : (*it)->PostOrder()) {
      if (!loop->Is(Opcode::While) || !HasFlatBodies(loop) || !loop->operand(0)->Is(Opcode::Tuple)) continue;
      for (size_t n = 0; n < loop->shape().tuple().size(); ++n) {
        const int64_t k = static_cast<int64_t>(n);
        const Instruction* init = InitOf(loop, k);
        if (!IsInvariant(loop, k) || !ConstantLike(init)) continue;
        bool used = false;
        for (Computation* f : {*loop->attrs().body, *loop->attrs().condition})
          for (const Instruction* e : ElementReaders(f->parameter(0), k))
            for (const Instruction* u : e->users()) used = used || !(u == f->root() && u->Is(Opcode::Tuple));
        if (!used || !ctx.Take()) continue;
        Computation *body = m.CloneComputation(*loop->attrs().body),
                    *condition = m.CloneComputation(*loop->attrs().condition);
        loop->mutable_attrs().body = body;
        loop->mutable_attrs().condition = condition;
        for (Computation* f : {body, condition})
          for (Instruction* e : ElementReaders(f->parameter(0), k)) {
            Instruction* constant = CopyInto(f, init);
            const Instruction* forwarded = f == body ? f->root() : nullptr;
            for (Instruction* u : std::vector<Instruction*>(e->users()))
              if (u != forwarded) e->ReplaceUseWith(u, constant);
            if (e->IsRoot()) f->set_root(constant);
          }
        changed = true;
      }
    }
  }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
