// Equal fused and scalar computations become one, so that kernels made from them are made once.
//
// Bodies of loops, branches and calls stay apart: each call site owns the memory of what it calls. So do functions of
// collectives, which say what a library is asked for, and what runs on another thread.
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/simplify/unify_computations.h"

namespace kiln {
namespace {

bool KeepsItsOwn(const Instruction& caller) {
  return caller.HasTrait(Collective) || !caller.parent()->execution_thread().empty();
}

}  // namespace

absl::StatusOr<bool> ComputationDeduplicator(Module& m, PassContext& ctx) {
  absl::flat_hash_set<const Computation*> control;
  for (const Computation* c : ControlComputations(m)) control.insert(c);
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions())
      if (KeepsItsOwn(*i))
        for (const Computation* called : i->called()) control.insert(called);
  return UnifyComputations(m, ctx, [&](const Computation* c) { return !control.contains(c); });
}

}  // namespace kiln
