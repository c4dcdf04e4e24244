// Collectives in the form of one exchange (compiler/hlo/exchange.h): blocks along dimension 0, one type, groups of one
// size. What is moved to get there is moved on the device itself. A group of one exchanges nothing; what cannot have
// the form, such as groups of several sizes, becomes a gather and ordinary operations.
#include "compiler/hlo/exchange.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/collective_form.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {

absl::StatusOr<bool> CollectiveCanonicalizer(Module& m, PassContext& ctx) {
  return ExpandEach(m, ctx, IsSynchronousCollective, [&](Instruction* i) { return AsExchange(i, m); });
}

}  // namespace kiln
