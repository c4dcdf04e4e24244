// Equal computations become one, so that kernels made from them are made once.
#include "compiler/pipeline/registry.h"

namespace kiln {

absl::StatusOr<bool> ComputationDeduplicator(Module& m, PassContext& ctx) { return SubcomputationUnification(m, ctx); }

}  // namespace kiln
