// How many tasks a large instruction of the entry is worth, written down as a call of its computation with that many
// partitions of the outermost dimension.
//
// The count is the cost in units of what a task should have, of at most 64: bytes where the work is moving them, else
// operations. kiln's own kernels are split when they run, by the pool that the host gives; this form is for tools that
// read it.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/pass/pass.h"

namespace kiln {
namespace {

constexpr int64_t kBytesPerTask = 256 << 10, kCostPerTask = 100000, kMostTasks = 64;

int64_t Operations(const Instruction* i) {
  int64_t per_element = 1;
  if (i->Is(Opcode::Fusion)) per_element = (*i->attrs().calls)->instruction_count();
  if (i->HasTrait(Transcendental)) per_element = 3;
  return per_element * i->shape().ElementCount();
}

int64_t TasksFor(const Instruction* i) {
  int64_t bytes = i->shape().ByteSize();
  for (const Instruction* o : i->operands()) bytes += o->shape().ByteSize();
  const int64_t operations = Operations(i);
  const int64_t tasks = operations <= bytes ? bytes / kBytesPerTask : (operations + 10 * bytes) / kCostPerTask;
  return std::min({tasks, kMostTasks, i->shape().dim(0)});
}

bool Splits(const Instruction* i) {
  return i->shape().IsArray() && i->shape().rank() > 0 && i->shape().ElementCount() > 0 &&
         (i->IsElementwise() || (i->Is(Opcode::Fusion) && (*i->attrs().calls)->root()->IsElementwise())) &&
         !i->HasSideEffect();
}

}  // namespace

absl::StatusOr<bool> CpuParallelTaskAssigner(Module& m, PassContext& ctx) {
  bool changed = false;
  Computation* c = m.entry();
  for (Instruction* i : c->PostOrder()) {
    if (!Splits(i)) continue;
    const int64_t tasks = TasksFor(i);
    if (tasks < 2 || !ctx.Take()) continue;
    Computation* f = m.AddComputation(absl::StrCat("parallel_", i->name()));
    std::vector<Instruction*> parameters;
    for (int64_t k = 0; k < i->operand_count(); ++k)
      parameters.push_back(f->AddParameter(k, i->operand(k)->shape(), "p"));
    f->set_root(f->AddClone(i, i->shape(), parameters));
    Instruction* call = c->Add(Opcode::Call, i->shape(), i->operands());
    call->mutable_attrs().to_apply = f;
    call->mutable_attrs().backend_config = absl::StrCat("{\"outer_dimension_partitions\":[\"", tasks, "\"]}");
    i->ReplaceAllUsesWith(call);
    c->Remove(i);
    changed = true;
  }
  return changed;
}

}  // namespace kiln
