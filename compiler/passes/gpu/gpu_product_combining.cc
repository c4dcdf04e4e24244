// Products that meet place by place are one kernel: a block computes the same place of all of them, and what is made of
// them is computed there. The gradient of an input that several weights read (dq Wq + dk Wk + dv Wv) is one sum over
// all their terms; gate and up projections are two sums, of which the activation's kernel comes along.
//
// A region is what is computed element by element, up to the products, and is read by nobody else. Its kernel takes at
// most two sums, which is what a thread has registers for. Products of which a library would compute each are joined
// where that is estimated to be faster.
#include <algorithm>

#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/gpu/pick_algorithm.h"
#include "compiler/passes/gpu/product_fusion.h"

namespace kiln {
namespace {

constexpr size_t kMostMembers = 24, kMostProducts = 4, kMostSums = 2;

struct Region {
  absl::flat_hash_set<const Instruction*> members;
  std::vector<const Instruction*> dots;
};

bool IsFree(const Instruction* i) {
  return i->shape().IsArray() && i->shape().HasDefaultLayout() && !i->shape().HasDynamic() &&
         i->control_predecessors().empty() && i->control_successors().empty();
}

// Whether `i`, read by members only, is one itself.
bool Joins(const Instruction* i, int64_t elements) {
  if (!IsFree(i) || i->IsRoot()) return false;
  if (i->Is(Opcode::Broadcast)) return i->shape().ElementCount() == elements;
  if (i->shape().ElementCount() != elements) return false;
  return i->IsElementwise() || i->Is(Opcode::Bitcast) || IsCanonicalProduct(i);
}

Region RegionBehind(const Instruction* root) {
  Region out;
  out.members.insert(root);
  std::vector<const Instruction*> order = {root};
  const int64_t elements = root->shape().ElementCount();
  // A member's operand may be read by a member that is found later.
  for (bool grew = true; grew;) {
    grew = false;
    for (size_t k = 0; k < order.size() && order.size() < kMostMembers; ++k) {
      if (order[k]->Is(Opcode::Dot) || order[k]->Is(Opcode::Broadcast)) continue;
      for (const Instruction* o : order[k]->operands()) {
        const bool inside = std::all_of(o->users().begin(), o->users().end(),
                                        [&](const Instruction* u) { return out.members.contains(u); });
        if (!inside || out.members.contains(o) || !Joins(o, elements)) continue;
        out.members.insert(o);
        order.push_back(o);
        if (o->Is(Opcode::Dot)) out.dots.push_back(o);
        grew = true;
      }
    }
  }
  return out;
}

// How many terms `i` is a sum of, with nothing but bitcasts between; 0: it is no sum of products.
size_t Terms(const Instruction* i, size_t depth = 0) {
  while (i->Is(Opcode::Bitcast)) i = i->operand(0);
  if (i->Is(Opcode::Dot)) return 1;
  if (!i->Is(Opcode::Add) || depth > kMostProducts) return 0;
  const size_t a = Terms(i->operand(0), depth + 1), b = Terms(i->operand(1), depth + 1);
  return a && b ? a + b : 0;
}

// Sums of products that no other sum of the region has as a part.
size_t Sums(const Region& region) {
  size_t sums = region.dots.size();
  for (const Instruction* i : region.members)
    if (i->Is(Opcode::Add) && Terms(i)) --sums;
  return sums;
}

// Operands of small products are computed where they are read, which triton-gemm-rewriter sees to.
bool HasOwnOperands(const Instruction* dot) {
  return std::none_of(dot->operands().begin(), dot->operands().end(), [](const Instruction* o) {
    return o->users().size() == 1 && o->Is(Opcode::Bitcast) ? o->operand(0)->HasTrait(Moving) : o->HasTrait(Moving);
  });
}

bool IsServed(const Region& region) {
  if (region.dots.size() < 2 || region.dots.size() > kMostProducts || Sums(region) > kMostSums) return false;
  const Instruction* first = region.dots[0];
  return std::all_of(region.dots.begin(), region.dots.end(), [&](const Instruction* dot) {
    return dot->shape() == first->shape() && HasOwnOperands(dot) && AlgorithmOf(dot).empty() && IsForLibrary(dot) &&
           IsFloat(dot->shape().type()) && dot->operand(0)->shape().type() == first->operand(0)->shape().type() &&
           IsFree(dot->operand(0)) && IsFree(dot->operand(1)) && dot->operand(0)->shape().ElementCount() > 0;
  });
}

bool Pays(const Region& region) {
  double apart = Sums(region) == region.dots.size() ? kKernelUs : 0;  // a library adds to what is there
  for (const Instruction* dot : region.dots) apart += LibraryProductUs(dot);
  return OwnProductsUs(region.dots, true) < apart;
}

}  // namespace

absl::StatusOr<bool> GpuProductCombining(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m)) {
    absl::flat_hash_set<const Instruction*> gone;
    std::vector<Instruction*> order = c->PostOrder();
    std::reverse(order.begin(), order.end());
    for (Instruction* root : order) {
      if (gone.contains(root) || !root->IsElementwise() || !IsFree(root) || !IsFloat(root->shape().type())) continue;
      const Region region = RegionBehind(root);
      if (!IsServed(region) || !Pays(region) || !ctx.Take()) continue;
      gone.insert(region.members.begin(), region.members.end());
      FuseRegion({root}, region.members)->mutable_attrs().backend_config = kProductFusionConfig;
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
