// Makes a schedule the module's own: the text's order, and is_scheduled.
#pragma once

#include "compiler/plan/schedule.h"

namespace kiln {

// Computations without an entry in `schedule`, such as those of fusions, get an order that puts operands first. True if
// anything is different afterwards.
inline bool InstallSchedule(Module& m, const Schedule& schedule) {
  bool changed = !m.is_scheduled;
  for (const auto& c : m.computations()) {
    const auto it = schedule.find(c.get());
    std::vector<Instruction*> now;
    for (const auto& i : c->instructions()) now.push_back(i.get());
    const std::vector<Instruction*> order = it == schedule.end() ? c->PostOrder() : it->second;
    if (now == order) continue;
    c->Reorder(order);
    changed = true;
  }
  m.is_scheduled = true;
  return changed;
}

}  // namespace kiln
