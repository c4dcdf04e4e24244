// Copy insertion and what it leaves to clear away.
#include "compiler/pipeline/registry.h"
#include "compiler/plan/copy_insertion.h"

namespace kiln {

absl::Status PrepareForPlanning(Module& m) {
  RETURN_IF_ERROR(InsertCopies(m));
  PassContext ctx;
  RETURN_IF_ERROR(TupleSimplifier(m, ctx).status());
  return Dce(m, ctx).status();
}

}  // namespace kiln
