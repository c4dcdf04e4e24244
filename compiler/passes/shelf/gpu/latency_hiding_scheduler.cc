// Puts work between the start and the done of what runs asynchronously: from the end of a computation backwards, a done
// is placed as early as its readers allow and its start as late as nothing else waits for it.
//
// List scheduling in reverse: of the instructions whose readers are all placed, dones go first, then ordinary work, and
// starts only when nothing else is ready or their done lies far enough behind; ties keep the given order.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

bool Starts(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::AsyncStart:
    case Opcode::AllReduceStart:
    case Opcode::AllGatherStart:
    case Opcode::CollectivePermuteStart:
    case Opcode::CopyStart:
      return true;
    default:
      return false;
  }
}

bool Ends(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::AsyncDone:
    case Opcode::AllReduceDone:
    case Opcode::AllGatherDone:
    case Opcode::CollectivePermuteDone:
    case Opcode::CopyDone:
      return true;
    default:
      return false;
  }
}

std::vector<Instruction*> Order(Computation* c) {
  const std::vector<Instruction*> given = c->PostOrder();
  absl::flat_hash_map<const Instruction*, size_t> place;
  absl::flat_hash_map<const Instruction*, int64_t> waiting;  // readers that are not placed yet
  for (size_t k = 0; k < given.size(); ++k) {
    place[given[k]] = k;
    for (const Instruction* o : given[k]->operands()) ++waiting[o];
    for (const Instruction* p : given[k]->control_predecessors()) ++waiting[p];
  }
  std::vector<Instruction*> ready, reversed;
  for (Instruction* i : given)
    if (waiting[i] == 0) ready.push_back(i);
  const auto rank = [](const Instruction* i) { return Ends(i) ? 0 : Starts(i) ? 2 : 1; };
  while (!ready.empty()) {
    const auto next = std::min_element(ready.begin(), ready.end(), [&](const Instruction* a, const Instruction* b) {
      return std::pair(rank(a), given.size() - place.at(a)) < std::pair(rank(b), given.size() - place.at(b));
    });
    Instruction* i = *next;
    ready.erase(next);
    reversed.push_back(i);
    const auto release = [&](Instruction* o) {
      if (--waiting[o] == 0) ready.push_back(o);
    };
    for (Instruction* o : i->operands()) release(o);
    for (Instruction* p : i->control_predecessors()) release(p);
  }
  std::reverse(reversed.begin(), reversed.end());
  return reversed;
}

}  // namespace

absl::StatusOr<bool> LatencyHidingScheduler(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m)) {
    bool any = false;
    for (const auto& i : c->instructions()) any = any || Starts(i.get());
    if (!any) continue;
    const std::vector<Instruction*> order = Order(c);
    const bool same = std::equal(order.begin(), order.end(), c->instructions().begin(), c->instructions().end(),
                                 [](const Instruction* a, const auto& b) { return a == b.get(); });
    if (same || !ctx.Take()) continue;
    c->Reorder(order);
    changed = true;
  }
  return changed;
}

}  // namespace kiln
