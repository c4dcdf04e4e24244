// What the expanders share: find the instructions of a module that a pass rewrites, and put what replaces each in its
// place.
#pragma once

#include <vector>

#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/rewriter.h"

namespace kiln {

// For every instruction for which wanted(i): replacement(i) gives the instruction that takes its place (null: leave
// it), as Rewriter::Replace says. An expansion is not refused for control edges or a sharding: where its value was
// there before, a copy of it carries them.
template <typename Wanted, typename Replacement>
absl::StatusOr<bool> ExpandEach(Module& m, PassContext& ctx, const Wanted& wanted, const Replacement& replacement) {
  Rewriter rewriter(ctx, Rewriter::Layouts::kIgnored);
  std::vector<Computation*> all;
  for (const auto& c : m.computations()) all.push_back(c.get());
  for (Computation* c : all) {
    for (Instruction* i : c->PostOrder()) {
      if (!wanted(i)) continue;
      const int64_t first_new = m.next_id();
      const auto build = [&](Instruction* from) -> absl::StatusOr<Instruction*> {
        absl::StatusOr<Instruction*> with = replacement(from);
        if (!with.ok() || !*with || *with == from || (*with)->id() >= first_new) return with;
        const bool edges = !from->control_predecessors().empty() || !from->control_successors().empty();
        const bool sharded = from->attrs().sharding && from->attrs().sharding != (*with)->attrs().sharding;
        if (!edges && !sharded) return with;
        return c->Add(Opcode::Copy, (*with)->shape(), {*with});
      };
      ASSIGN_OR_RETURN(const bool replaced, rewriter.Replace(i, build));
      if (replaced) c->Remove(i);
    }
  }
  return rewriter.changed();
}

}  // namespace kiln
