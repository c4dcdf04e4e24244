// Custom calls that front ends and other compilers use as names for operations: annotations pass their operand on,
// TopK, the functions of XLA's builder, those of LAPACK that HLO has too, cuDNN's attention and JAX's product of a
// sparse matrix become what they name. Every other target is the user's own function.
#include "compiler/hlo/annotation.h"
#include "compiler/hlo/attention_call.h"
#include "compiler/hlo/csr_product.h"
#include "compiler/hlo/named_operations.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/csr_product.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/memory/host_values.h"

namespace kiln {
namespace {

// What moves a value between memories stays, for host-offloader.
bool PassesOperandOn(const Instruction* i) {
  return IsAnnotation(*i) && i->operand_count() == 1 && i->shape().Compatible(i->operand(0)->shape()) &&
         !MovesToHost(i) && !MovesToDevice(i);
}

}  // namespace

absl::StatusOr<bool> CustomCallDecomposer(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](Instruction* i) { return PassesOperandOn(i) || IsNamedOperation(i) || IsCsrProduct(i) || IsAttentionCall(i); },
      [](Instruction* i) {
        if (PassesOperandOn(i)) return i->operand(0);
        if (IsCsrProduct(i)) return CsrProductOf(i);
        if (IsAttentionCall(i)) return AttentionOf(i, i->parent(), i->operands());
        return NamedOperationOf(i, i->parent(), i->operands());
      });
}

}  // namespace kiln
