// Equal fused and scalar computations become one, so that kernels made from them are made once.
//
// Bodies of loops, branches and calls stay apart: each call site owns the memory of what it calls.
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/simplify/unify_computations.h"

namespace kiln {

absl::StatusOr<bool> ComputationDeduplicator(Module& m, PassContext& ctx) {
  absl::flat_hash_set<const Computation*> control;
  for (const Computation* c : ControlComputations(m)) control.insert(c);
  return UnifyComputations(m, ctx, [&](const Computation* c) { return !control.contains(c); });
}

}  // namespace kiln
