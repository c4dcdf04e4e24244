// Kernels that visit the same elements become one with several results: loops over one shape that share an operand or
// feed each other, and reductions of equal form, or with loops over as many elements, that read one array.
#include <algorithm>
#include <set>

#include "compiler/hlo/reachability.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/other_passes.h"

namespace kiln {
namespace {

constexpr int64_t kMostOperands = 96;

std::vector<Instruction*> ResultsOf(const Instruction* fusion) {
  Instruction* root = (*fusion->attrs().calls)->root();
  return root->Is(Opcode::Tuple) ? root->operands() : std::vector<Instruction*>{root};
}

// What a kernel visits: the elements of its results, or those that it reduces.
const Shape& Visited(const Instruction* result) {
  return result->Is(Opcode::Reduce) ? result->operand(0)->shape() : result->shape();
}

// A kernel of loops and reductions that visit equally many elements.
bool Joins(const Instruction* i) {
  if (!i->Is(Opcode::Fusion) || IsCustomFusion(i) || i->users().empty() || !i->control_predecessors().empty() ||
      !i->control_successors().empty())
    return false;
  const std::vector<Instruction*> results = ResultsOf(i);
  return std::all_of(results.begin(), results.end(), [&](const Instruction* r) {
    return r->shape().IsArray() &&
           (r->Is(Opcode::Reduce) ? i->attrs().fusion_kind == "kInput"
                                  : r->IsElementwise() && r->shape().HasDefaultLayout()) &&
           Visited(r).ElementCount() == Visited(results[0]).ElementCount();
  });
}

// The reduction among the results, if there is one.
const Instruction* ReduceOf(const Instruction* fusion) {
  for (const Instruction* r : ResultsOf(fusion))
    if (r->Is(Opcode::Reduce)) return r;
  return nullptr;
}

// Reductions of one form, or a loop over what a reduction reads; loops alone are joined by CpuMultiOutputFusion.
bool Alike(const Instruction* a, const Instruction* b) {
  const Instruction *x = ReduceOf(a), *y = ReduceOf(b);
  if ((!x && !y) || a->operand_count() + b->operand_count() > kMostOperands) return false;
  if (x && y)
    return a->shape().IsArray() && b->shape().IsArray() &&
           x->operand(0)->shape().dims() == y->operand(0)->shape().dims() &&
           *x->attrs().dimensions == *y->attrs().dimensions;
  return Visited(ResultsOf(a)[0]).ElementCount() == Visited(ResultsOf(b)[0]).ElementCount();
}

bool PairOne(Computation* c, PassContext& ctx) {
  std::vector<Instruction*> kernels;
  absl::flat_hash_map<const Instruction*, size_t> place;
  for (Instruction* i : c->PostOrder())
    if (Joins(i)) {
      place[i] = kernels.size();
      kernels.push_back(i);
    }
  if (kernels.size() < 2 || !Reachability::Affordable(c)) return false;
  const Reachability reach(c);
  for (Instruction* a : kernels) {
    std::set<size_t> siblings;  // later kernels that read what `a` reads
    for (const Instruction* o : a->operands())
      if (o->shape().ElementCount() > 1)
        for (const Instruction* u : o->users())
          if (const auto at = place.find(u); at != place.end() && at->second > place.at(a)) siblings.insert(at->second);
    for (const size_t y : siblings) {
      if (!Alike(a, kernels[y]) || reach.Reaches(a, kernels[y]) || !ctx.Take()) continue;
      FuseSiblings(a, kernels[y])->mutable_attrs().fusion_kind = "kInput";
      return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<bool> GpuMultiOutputFusion(Module& m, PassContext& ctx) {
  ASSIGN_OR_RETURN(bool changed, CpuMultiOutputFusion(m, ctx));
  for (Computation* c : ControlComputations(m))
    while (PairOne(c, ctx)) changed = true;
  return changed;
}

}  // namespace kiln
