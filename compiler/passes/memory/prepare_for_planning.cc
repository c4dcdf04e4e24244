#include "compiler/passes/memory/prepare_for_planning.h"

#include "compiler/passes/other_passes.h"
#include "compiler/plan/copy_insertion.h"

namespace kiln {

absl::Status PrepareForPlanning(Module& m) {
  PassContext ctx;
  // Elements of tuples that stand beside them would seem to wait for all that the tuple holds, and a tuple that none
  // reads would seem to read it.
  RETURN_IF_ERROR(TupleSimplifier(m, ctx).status());
  RETURN_IF_ERROR(Dce(m, ctx).status());
  RETURN_IF_ERROR(InsertCopies(m));
  RETURN_IF_ERROR(TupleSimplifier(m, ctx).status());
  return Dce(m, ctx).status();
}

}  // namespace kiln
