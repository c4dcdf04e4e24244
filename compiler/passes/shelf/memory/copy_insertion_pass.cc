// Copies where storage is shared in place (compiler/plan/copy_insertion.h).
#include "compiler/hlo/printer.h"
#include "compiler/pass/pass.h"
#include "compiler/plan/copy_insertion.h"

namespace kiln {

absl::StatusOr<bool> CopyInsertion(Module& m, PassContext& ctx) {
  if (!ctx.Take()) return false;
  const std::string before = ToText(m);
  RETURN_IF_ERROR(InsertCopies(m));
  return ToText(m) != before;
}

}  // namespace kiln
