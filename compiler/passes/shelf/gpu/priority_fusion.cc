// Producers join all their consumers in the order of what that saves: the time of the kernels apart less that of the
// kernels together, by the cost model of a GPU. Stops when nothing saves time. The same module gives the same fusions:
// ties go to the earlier instruction.
#include <algorithm>
#include <map>

#include "compiler/analysis/cost.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/fusion/vertical_fusion.h"

namespace kiln {
namespace {

// An A100's memory and f32 units; a launch costs what it does on a stream.
constexpr CoreModel kDevice = {1.5e6, 1.4e7, 3.0, 0};
constexpr int64_t kMostOperands = 96, kMostInstructions = 300;

class Fuser {
 public:
  Fuser(Computation* c, PassContext& ctx) : c_(c), ctx_(ctx) {}

  bool Run() {
    bool changed = false;
    for (;;) {
      // Priorities of what stands now; those that a fusion touched are the only ones that differ.
      Instruction* best = nullptr;
      double most = 0;
      for (Instruction* p : c_->PostOrder()) {
        if (!MayJoin(p)) continue;
        const double saved = Saved(p);
        if (saved > most) {
          most = saved;
          best = p;
        }
      }
      if (!best || !ctx_.Take()) return changed;
      const std::vector<Instruction*> users = best->users();
      for (Instruction* u : users) {
        cost_.erase(u);
        FuseInto(best, u);
      }
      c_->Remove(best);
      changed = true;
    }
  }

 private:
  static bool Consumes(const Instruction* u) {
    if (u->Is(Opcode::Fusion))
      return !IsCustomFusion(u) && (*u->attrs().calls)->instruction_count() < kMostInstructions;
    return u->IsElementwise() || u->Is(Opcode::Reduce) || u->Is(Opcode::Broadcast) || u->Is(Opcode::Transpose) ||
           u->Is(Opcode::Slice) || u->Is(Opcode::Pad);
  }
  static bool MayJoin(const Instruction* p) {
    const bool kind = p->IsElementwise() || p->Is(Opcode::Broadcast) || p->Is(Opcode::Iota) || p->Is(Opcode::Slice);
    if (!kind || p->IsRoot() || p->users().empty() || !p->shape().IsArray() || p->shape().HasDynamic() ||
        !p->control_predecessors().empty() || !p->control_successors().empty())
      return false;
    return std::all_of(p->users().begin(), p->users().end(), [&](const Instruction* u) {
      return Consumes(u) && !u->shape().HasDynamic() && u->operand_count() + p->operand_count() <= kMostOperands;
    });
  }

  Cost CostOf(const Instruction* i) {
    const auto it = cost_.find(i);
    return it != cost_.end() ? it->second : cost_.insert({i, CostOfKernel(i)}).first->second;
  }

  double Saved(const Instruction* p) {
    const Cost own = CostOf(p);
    int64_t inputs = 0;
    for (const Instruction* o : p->operands()) inputs += o->shape().ByteSize();
    double apart = EstimatedMicroseconds(own, kDevice), together = 0;
    for (const Instruction* u : p->users()) {
      Cost cost = CostOf(u);
      apart += EstimatedMicroseconds(cost, kDevice);
      // Work is done once for every element that the consumer reads.
      const int64_t reads = std::max<int64_t>(
          1, u->shape().IsArray() ? u->shape().ElementCount() / std::max<int64_t>(1, p->shape().ElementCount()) : 1);
      cost.bytes_accessed += inputs - p->shape().ByteSize();
      cost.flops += own.flops * reads;
      together += EstimatedMicroseconds(cost, kDevice);
    }
    return apart - together;
  }

  Computation* c_;
  PassContext& ctx_;
  absl::flat_hash_map<const Instruction*, Cost> cost_;
};

}  // namespace

absl::StatusOr<bool> PriorityFusion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m)) changed |= Fuser(c, ctx).Run();
  return changed;
}

}  // namespace kiln
