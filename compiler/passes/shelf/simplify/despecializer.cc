// Undoes what a target did to a program, so that its optimised form can be run and compared elsewhere.
#include "compiler/passes/other_passes.h"

namespace kiln {

absl::StatusOr<bool> Despecializer(Module& m, PassContext& ctx) {
  bool changed = false;
  for (PassFn pass : {HloDescheduler, ControlDepRemover, Defuser, Bf16MixedPrecisionRemoval}) {
    ASSIGN_OR_RETURN(const bool did, pass(m, ctx));
    changed = changed || did;
  }
  return changed;
}

}  // namespace kiln
