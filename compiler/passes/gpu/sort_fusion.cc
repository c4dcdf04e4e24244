// Loops before and after a sort join its kernel: the first pass over the elements computes them, the last goes on with
// what it writes. Results that nobody reads are not written.
//
// Before: a loop that the sort alone reads, and counters of places, which cost less than a load, whoever reads them.
// After: an elementwise loop that alone reads the one result. Before loops are joined with their neighbours.
#include <algorithm>

#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/around.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

bool Before(const Instruction* i) {
  if (!IsElementalLoop(i) || i->operand_count() > kMostKernelOperands) return false;
  const bool counts = (*i->attrs().calls)->root()->Is(Opcode::Iota);
  return counts ||
         std::all_of(i->users().begin(), i->users().end(), [&](const Instruction* u) { return u == i->users()[0]; });
}

bool IsFree(const Instruction* sort) {
  for (const Instruction* o : sort->operands())
    if (!o->shape().HasDefaultLayout() || o->shape().HasDynamic()) return false;
  return sort->control_predecessors().empty() && sort->control_successors().empty();
}

// The results of the sort that are read; all of them where it is the root.
std::vector<Instruction*> ReadResults(Instruction* sort) {
  if (sort->shape().IsArray() || sort->IsRoot()) return {sort};
  std::vector<Instruction*> out;
  for (Instruction* u : sort->users()) {
    if (!u->Is(Opcode::GetTupleElement)) return {sort};
    if (!u->users().empty() || u->IsRoot()) out.push_back(u);
  }
  return out;
}

// The elementwise loop that alone reads the one result; null if there is none.
Instruction* Behind(const std::vector<Instruction*>& results) {
  if (results.size() != 1 || results[0]->IsRoot() || !results[0]->shape().IsArray()) return nullptr;
  Instruction* user = results[0]->users()[0];
  if (results[0]->users().size() != 1 || !IsLoopBehind(user, results[0])) return nullptr;
  return user;
}

}  // namespace

absl::StatusOr<bool> SortFusion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m))
    for (Instruction* sort : OfOpcode(c, Opcode::Sort)) {
      if (!IsFree(sort)) continue;
      const std::vector<Instruction*> results = ReadResults(sort);
      if (results.empty()) continue;
      Instruction* behind = Behind(results);
      std::vector<Instruction*> before;
      int64_t operands = sort->operand_count() + (behind ? behind->operand_count() : 0);
      for (Instruction* o : sort->operands()) {
        if (!Before(o) || std::count(before.begin(), before.end(), o)) continue;
        before.push_back(o);
        operands += o->operand_count();
      }
      const bool fewer = sort->shape().IsTuple() && results[0] != sort && results.size() < sort->shape().tuple().size();
      if ((!behind && before.empty() && !fewer) || operands > kMostKernelOperands || !ctx.Take()) continue;
      Instruction* fusion = nullptr;
      if (results[0] == sort) {
        fusion = WrapInFusion(sort);
      } else {
        absl::flat_hash_set<const Instruction*> members(results.begin(), results.end());
        members.insert(sort);
        fusion = FuseRegion(results, members);
      }
      if (behind) {
        Instruction* alone = fusion;
        fusion = FuseInto(alone, behind);
        c->Remove(alone);
      }
      for (Instruction* o : before) {
        FuseInto(o, fusion);
        if (o->users().empty()) c->Remove(o);
      }
      fusion->mutable_attrs().fusion_kind = FusionKind::kCustom;
      fusion->mutable_attrs().backend_config = "{\"fusion_backend_config\":{\"kind\":\"sort\"}}";
      changed = true;
    }
  return changed;
}

}  // namespace kiln
