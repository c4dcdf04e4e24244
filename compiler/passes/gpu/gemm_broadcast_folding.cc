// A product whose operand is one matrix repeated along the batch reads that matrix with a stride of 0.
#include "compiler/hlo/library_calls.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

// The matrix that operand `k` repeats along all `batch` leading dimensions and nothing else, or nullptr.
Instruction* Repeated(const Instruction* call, int64_t k, int64_t batch) {
  Instruction* x = call->operand(k);
  if (!x->Is(Opcode::Broadcast) || x->operand(0)->shape().rank() != x->shape().rank() - batch) return nullptr;
  const Ints& dims = *x->attrs().dimensions;
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d] != batch + static_cast<int64_t>(d)) return nullptr;
  return x->operand(0);
}

}  // namespace

absl::StatusOr<bool> CublasGemmBroadcastFoldingRewriter(Module& m, PassContext& ctx) {
  const auto fold = [](const Instruction* i, GemmConfig* g, std::vector<Instruction*>* operands) {
    auto config = GemmConfigOf(i);
    if (!config.ok() || config->lhs_batch.empty()) return false;
    *g = *config;
    *operands = i->operands();
    const auto batch = static_cast<int64_t>(g->lhs_batch.size());
    bool any = false;
    for (int64_t k = 0; k < 2; ++k) {
      bool& flag = k == 0 ? g->lhs_broadcast : g->rhs_broadcast;
      if (flag) continue;
      if (Instruction* matrix = Repeated(i, k, batch)) {
        (*operands)[static_cast<size_t>(k)] = matrix;
        flag = any = true;
      }
    }
    return any;
  };
  GemmConfig g;
  std::vector<Instruction*> operands;
  return ExpandEach(
      m, ctx, [&](const Instruction* i) { return IsCallTo(i, kGemmTarget) && fold(i, &g, &operands); },
      [&](Instruction* i) -> absl::StatusOr<Instruction*> {
        Instruction* call = i->parent()->AddClone(i, i->shape(), operands);
        call->mutable_attrs().backend_config = ToText(g);
        return call;
      });
}

}  // namespace kiln
