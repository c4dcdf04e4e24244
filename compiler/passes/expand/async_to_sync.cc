// Start and done pairs as the operation they split: one stream of host code overlaps nothing. Sends and receives keep
// their first half, which does the work. In a scheduled module a pair with work between its halves stays, because the
// schedule overlaps the two.
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

Instruction* Element(Instruction* tuple, int64_t k) {
  Instruction* g = PartOf(tuple, k).get();
  return g;
}

Instruction* Like(Instruction* i, Opcode op, const Shape& shape) {
  Instruction* n = i->parent()->Add(op, shape, i->operands());
  n->mutable_attrs() = i->attrs();
  n->mutable_attrs().cross_program_prefetch_index.reset();
  n->set_loc(i->loc());
  return n;
}

Instruction* Done(Instruction* i) {
  Instruction* start = i->operand(0);
  switch (i->opcode()) {
    case Opcode::AllReduceDone:
      return Like(start, Opcode::AllReduce, i->shape());
    case Opcode::AllGatherDone:
      return Like(start, Opcode::AllGather, i->shape());
    case Opcode::CollectivePermuteDone:
      return Like(start, Opcode::CollectivePermute, i->shape());
    case Opcode::CopyDone:
      return Like(start, Opcode::Copy, i->shape());
    case Opcode::AsyncDone: {
      while (start->Is(Opcode::AsyncUpdate)) start = start->operand(0);
      Instruction* call = i->parent()->Add(Opcode::Call, i->shape(), start->operands());
      call->mutable_attrs().to_apply = *start->attrs().calls;
      return call;
    }
    case Opcode::SendDone:
      return Element(start, 2);
    case Opcode::RecvDone:
      return i->parent()->Add(Opcode::Tuple, i->shape(), {Element(start, 0), Element(start, 2)});
    default:
      return nullptr;
  }
}

bool IsStart(const Instruction* i) {
  return i->Is(Opcode::AllReduceStart) || i->Is(Opcode::AllGatherStart) || i->Is(Opcode::CollectivePermuteStart) ||
         i->Is(Opcode::CopyStart) || i->Is(Opcode::AsyncStart) || i->Is(Opcode::AsyncUpdate);
}

bool IsDone(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::AllReduceDone:
    case Opcode::AllGatherDone:
    case Opcode::CollectivePermuteDone:
    case Opcode::CopyDone:
    case Opcode::AsyncDone:
    case Opcode::SendDone:
    case Opcode::RecvDone:
      return true;
    default:
      return false;
  }
}

bool IsWork(const Instruction* i) {
  return !i->Is(Opcode::Parameter) && !i->Is(Opcode::Constant) && !i->Is(Opcode::Bitcast) &&
         !i->Is(Opcode::GetTupleElement) && !i->Is(Opcode::Send) && !i->Is(Opcode::Recv) && !IsStart(i) && !IsDone(i);
}

// The second halves, in a schedule, that work stands before and behind whose first halves it stands.
absl::flat_hash_set<const Instruction*> Overlapping(const Module& m) {
  absl::flat_hash_set<const Instruction*> out;
  if (!m.is_scheduled) return out;
  for (const auto& c : m.computations()) {
    absl::flat_hash_map<const Instruction*, int64_t> started;
    int64_t work = 0;  // instructions so far that are
    for (const auto& i : c->instructions()) {
      started[i.get()] = work;
      if (IsWork(i.get())) ++work;
      if (!IsDone(i.get())) continue;
      const Instruction* start = i->operand(0);
      while (start->Is(Opcode::AsyncUpdate)) start = start->operand(0);
      const auto begun = started.find(start);
      if (begun != started.end() && begun->second != started.at(i.get())) out.insert(i.get());
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<bool> ConvertAsyncCollectivesToSync(Module& m, PassContext& ctx) {
  const absl::flat_hash_set<const Instruction*> overlapping = Overlapping(m);
  const auto wanted = [&](const Instruction* i) { return IsDone(i) && !overlapping.contains(i); };
  ASSIGN_OR_RETURN(bool changed,
                   ExpandEach(m, ctx, wanted, [](Instruction* i) -> absl::StatusOr<Instruction*> { return Done(i); }));
  for (const auto& c : m.computations())
    for (bool again = true; again;) {
      again = false;
      for (Instruction* i : c->PostOrder())
        if (IsStart(i) && i->users().empty() && !i->IsRoot()) {
          c->Remove(i);
          again = true;
          break;
        }
    }
  return changed;
}

}  // namespace kiln
