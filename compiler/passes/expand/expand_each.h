// What the expanders share: find the instructions of a module that a pass rewrites, and put what replaces each in its
// place.
#pragma once

#include <vector>

#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"

namespace kiln {

// For every instruction for which wanted(i): replacement(i) gives the instruction that takes its place (null: leave
// it). Control edges move to the replacement.
template <typename Wanted, typename Replacement>
absl::StatusOr<bool> ExpandEach(Module& m, PassContext& ctx, const Wanted& wanted, const Replacement& replacement) {
  bool changed = false;
  std::vector<Computation*> all;
  for (const auto& c : m.computations()) all.push_back(c.get());
  for (Computation* c : all) {
    for (Instruction* i : c->PostOrder()) {
      if (!wanted(i) || !ctx.Take()) continue;
      absl::StatusOr<Instruction*> with = replacement(i);
      if (!with.ok()) return with.status();
      if (!*with || *with == i) continue;
      (*with)->set_loc(i->loc());
      for (Instruction* p : std::vector<Instruction*>(i->control_predecessors())) p->AddControlDependencyTo(*with);
      for (Instruction* s : std::vector<Instruction*>(i->control_successors())) (*with)->AddControlDependencyTo(s);
      i->ReplaceAllUsesWith(*with);
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
