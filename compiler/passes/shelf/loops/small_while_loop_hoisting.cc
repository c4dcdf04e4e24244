// A loop over a few bytes becomes a call of a computation of its own, marked so that a target can compile it whole
// instead of step by step.
#include "compiler/pass/pass.h"
#include "compiler/passes/loops/while_state.h"

namespace kiln {
namespace {

constexpr int64_t kSmallBytes = 1024;

int64_t TouchedBytes(const Computation* c) {
  int64_t n = 0;
  for (const auto& i : c->instructions()) {
    ForEachLeaf(i->shape(), [&](const ShapeIndex&, const Shape& s) { n += s.IsArray() ? s.ByteSize() : 0; });
    for (const Computation* f : i->called()) n += TouchedBytes(f);
  }
  return n;
}

// Library calls and calls of the user's functions stay where the entry makes them.
bool CallsOut(const Computation* c) {
  for (const auto& i : c->instructions()) {
    if (i->Is(Opcode::Fft) || i->Is(Opcode::CustomCall)) return true;
    for (const Computation* f : i->called())
      if (CallsOut(f)) return true;
  }
  return false;
}

bool MayBeCalled(const Instruction* loop, PureComputations* pure) {
  const Computation *body = *loop->attrs().body, *condition = *loop->attrs().condition;
  return loop->control_predecessors().empty() && loop->control_successors().empty() && pure->Contains(body) &&
         pure->Contains(condition) && !CallsOut(body) && !CallsOut(condition) &&
         TouchedBytes(body) + TouchedBytes(condition) <= kSmallBytes;
}

}  // namespace

absl::StatusOr<bool> SmallWhileLoopHoisting(Module& m, PassContext& ctx) {
  bool changed = false;
  PureComputations pure;
  const std::vector<Computation*> all = m.PostOrder();
  for (Computation* c : all) {
    for (Instruction* loop : c->PostOrder()) {
      if (!loop->Is(Opcode::While) || !MayBeCalled(loop, &pure)) continue;
      // The loop that a call like this was made for.
      if (c != m.entry() && c->instruction_count() == 2 && loop->operand(0)->Is(Opcode::Parameter)) continue;
      if (!ctx.Take()) continue;
      Computation* f = m.AddComputation("small_loop");
      Instruction* p = f->AddParameter(0, loop->shape(), "state");
      f->set_root(f->AddClone(loop, loop->shape(), {p}));
      Instruction* call = c->Add(Opcode::Call, loop->shape(), {loop->operand(0)});
      call->mutable_attrs().to_apply = f;
      call->mutable_attrs().frontend_attributes = "{xla_cpu_small_call=\"true\"}";
      loop->ReplaceAllUsesWith(call);
      c->Remove(loop);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
