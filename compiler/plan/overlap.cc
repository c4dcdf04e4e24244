#include "compiler/plan/overlap.h"

#include <algorithm>

#include "compiler/plan/held_order.h"

namespace kiln {
namespace {

// Puts bytes into a queue and goes on.
bool Sends(const Instruction* i) { return i->Is(Opcode::Send) || i->Is(Opcode::Outfeed); }
// Waits for bytes of a queue.
bool Receives(const Instruction* i) { return i->Is(Opcode::Recv) || i->Is(Opcode::Infeed); }

// Both directions are one: sends move as far as they can in the reversed order.
struct MoveRule {
  bool (*moves)(const Instruction*);
  bool reversed;

  // What stands before `i` in this direction.
  std::vector<Instruction*> Before(const Instruction* i) const {
    std::vector<Instruction*> out = reversed ? i->users() : i->operands();
    const auto& control = reversed ? i->control_successors() : i->control_predecessors();
    out.insert(out.end(), control.begin(), control.end());
    return out;
  }
};

// `order` with what moves held back until something needs it or communicates too, and with it what is only a name for
// (a part of) it.
Order HeldBack(Order order, const MoveRule& d) {
  if (d.reversed) std::reverse(order.begin(), order.end());
  HeldOrder held;
  for (Instruction* i : order) {
    const bool moves = d.moves(i), free = InfoOf(i->opcode()).lowering == Lowering::Free;
    const size_t needed = !moves && Communicates(i) ? held.held().size() : held.Needed(d.Before(i));
    if (moves || (free && needed > 0)) {
      held.Hold(i);
      continue;
    }
    held.Release(needed);
    held.Put(i);
  }
  Order out = held.Take();
  if (d.reversed) std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace

bool Communicates(const Instruction* i) {
  if (i->HasTrait(Collective) || i->HasSideEffect()) return true;
  for (const Computation* c : i->called())
    for (const auto& inner : c->instructions())
      if (Communicates(inner.get())) return true;
  return false;
}

Order Overlapped(Order order, const std::function<int64_t(const Order&)>& peak) {
  constexpr MoveRule kDirections[] = {{Sends, true}, {Receives, false}};
  for (const MoveRule& d : kDirections) {
    if (std::none_of(order.begin(), order.end(), d.moves)) continue;
    Order moved = HeldBack(order, d);
    if (peak(moved) <= peak(order)) order = std::move(moved);
  }
  return order;
}

}  // namespace kiln
