// A loop fusion joins all the fusions that read it, or none: where it does little arithmetic for its bytes and the
// merged kernels take no longer to move theirs than the launch that is saved and its bytes.
#include "compiler/analysis/cost.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/fusion/recompute.h"

namespace kiln {
namespace {

constexpr double kMostFlopsPerByte = 1.0;
constexpr int64_t kLaunchBytes = 1 << 20;  // what memory moves while a kernel starts; a GPU's moves some more
constexpr int64_t kMostInstructions = 200, kMostOperands = 96;

bool LoopFusion(const Instruction* i) {
  return i->Is(Opcode::Fusion) && !IsCustomFusion(i) && i->shape().IsArray() && i->control_predecessors().empty() &&
         i->control_successors().empty() && (*i->attrs().calls)->root()->IsElementwise();
}

// Every element of `producer` is computed about once by `user`: it is read as it lies, or by slices that share none,
// and nothing behind repeats it.
bool ReadsEachOnce(const Instruction* user, const Instruction* producer) {
  const Computation* f = *user->attrs().calls;
  for (int64_t k = 0; k < user->operand_count(); ++k) {
    if (user->operand(k) != producer) continue;
    for (const Instruction* u : f->parameter(k)->users())
      if (!u->Is(Opcode::Slice) && !u->IsElementwise() && !u->Is(Opcode::Reduce)) return false;
  }
  return ElementsEvaluated(user, producer) <= static_cast<double>(producer->shape().ElementCount()) &&
         Evaluations(user, producer) <= kMostEvaluations;
}

bool Merges(const Instruction* p) {
  if (!LoopFusion(p) || p->IsRoot() || p->users().empty()) return false;
  const Cost cost = CostOfKernel(p);
  if (static_cast<double>(cost.flops) > kMostFlopsPerByte * static_cast<double>(cost.bytes_accessed)) return false;
  int64_t before = cost.bytes_accessed + kLaunchBytes, after = 0;
  for (const Instruction* u : p->users()) {
    if (!u->Is(Opcode::Fusion) || IsCustomFusion(u) || !ReadsEachOnce(u, p)) return false;
    if ((*u->attrs().calls)->instruction_count() + (*p->attrs().calls)->instruction_count() > kMostInstructions ||
        u->operand_count() + p->operand_count() > kMostOperands)
      return false;
    const int64_t bytes = CostOfKernel(u).bytes_accessed;
    before += bytes;
    after += bytes - p->shape().ByteSize();
    for (const Instruction* o : p->operands())
      if (u->OperandIndex(o) < 0) after += o->shape().ByteSize();
  }
  return after <= before;
}

}  // namespace

absl::StatusOr<bool> FusionMerger(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m)) {
    std::vector<Instruction*> order = c->PostOrder();
    for (size_t k = order.size(); k-- > 0;) {
      Instruction* p = order[k];
      if (!Merges(p) || !ctx.Take()) continue;
      for (Instruction* u : std::vector<Instruction*>(p->users())) FuseInto(p, u);
      c->Remove(p);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
