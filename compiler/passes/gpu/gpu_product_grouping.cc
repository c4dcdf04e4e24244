// Products that share an operand run as one kernel, each in blocks of its own: queries, keys and values, gate and up
// projections, a gradient by the input and one by the weights.
//
// Nothing is joined in memory: the kernel takes all the arrays, and a block picks those of its product. What follows a
// product element by element comes along, as in gemm-fusion. Products that kiln's kernels compute anyway always gain;
// of those that would be library calls, a group is made where the estimate below says so: it saves launches and fills
// the device where one product cannot, and loses the library's speed. cuBLAS's own grouped calls read their pointers
// from device memory, which each run would have to fill first: two nodes, and no epilogues.
#include <algorithm>
#include <cstdlib>
#include <map>

#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/gpu/kernel_depths.h"
#include "compiler/passes/gpu/pick_algorithm.h"
#include "compiler/passes/gpu/product_fusion.h"

namespace kiln {
namespace {

// Results that one kernel has: all live from its start on.
constexpr size_t kMostProducts = 4;
// Instructions between those that read the results, or make the operands: what is computed again to save memory is not
// computed with what it saves.
constexpr int64_t kFarApart = 40;

// A product that may join: a dot, or a fusion around one.
struct Candidate {
  Instruction* i;
  const Instruction* dot;
  std::vector<const Instruction*> arrays;  // of which its operands are made
  bool fused() const { return i != dot; }
};

bool IsFree(const Instruction* i) {
  return !i->users().empty() && i->control_predecessors().empty() && i->control_successors().empty() &&
         i->shape().IsArray() && i->shape().HasDefaultLayout() && i->shape().ElementCount() > 0;
}

std::optional<Candidate> AsCandidate(Instruction* i) {
  if (!IsFree(i)) return std::nullopt;
  Candidate out{i, i, {}};
  if (IsCanonicalProduct(i)) {
    for (const Instruction* o : i->operands()) {
      if (!o->shape().HasDefaultLayout()) return std::nullopt;
      out.arrays.push_back(WithoutBitcasts(o));
    }
  } else if (IsProductFusion(i)) {
    size_t dots = 0;
    for (const auto& inner : (*i->attrs().calls)->instructions()) {
      if (!inner->Is(Opcode::Dot)) continue;
      out.dot = inner.get();
      ++dots;
    }
    if (dots != 1) return std::nullopt;  // a convolution, or a group already
    for (const Instruction* o : out.dot->operands()) {
      while (o->operand_count() == 1) o = o->operand(0);
      if (o->Is(Opcode::Parameter)) out.arrays.push_back(WithoutBitcasts(i->operand(*o->attrs().parameter_number)));
    }
  } else {
    return std::nullopt;
  }
  if (!AlgorithmOf(out.dot).empty()) return std::nullopt;  // a tile of its own
  const auto updated = [](const Instruction* o) { return IsUpdatedInPlace(WithoutBitcasts(o)); };
  if (std::any_of(i->operands().begin(), i->operands().end(), updated)) return std::nullopt;
  return out;
}

bool Pays(const std::vector<Candidate>& group) {
  std::vector<const Instruction*> dots;
  double apart = 0;
  bool library = false;
  for (const Candidate& c : group) {
    const bool calls = !c.fused() && IsForLibrary(c.dot);
    library = library || calls;
    apart += calls ? LibraryProductUs(c.dot) : OwnProductsUs({c.dot});
    dots.push_back(c.dot);
  }
  return !library || OwnProductsUs(dots) < apart;
}

// One kernel of all, each with what follows it as far as `may_read` allows.
void Merge(const std::vector<Candidate>& group, PassContext& ctx,
           const std::function<bool(const Instruction*)>& may_read) {
  Instruction* all = nullptr;
  for (const Candidate& c : group) {
    Instruction* i = c.i;
    if (!c.fused())
      if (Instruction* fusion = FuseAroundProduct(i, ctx, {.may_read = may_read})) i = fusion;
    all = all ? FuseSiblings(all, i) : i;
  }
  all->mutable_attrs().fusion_kind = FusionKind::kCustom;
  all->mutable_attrs().backend_config = kProductFusionConfig;
}

// Products at one depth that read one array; of one type, so that they are divided alike. `fewest`: of a group.
bool MergeRound(Computation* c, PassContext& ctx, size_t fewest, bool from_arguments) {
  const KernelDepths depths(c);
  using Types = std::vector<PrimitiveType>;
  std::map<std::tuple<int64_t, int64_t, Types>, std::vector<Candidate>> groups;
  for (Instruction* i : c->PostOrder()) {
    const std::optional<Candidate> x = AsCandidate(i);
    if (!x) continue;
    const int64_t depth = from_arguments ? depths.before.at(i) : depths.after.at(i);
    const Types types = {x->dot->operand(0)->shape().type(), x->dot->operand(1)->shape().type(),
                         x->dot->shape().type()};
    for (size_t k = 0; k < x->arrays.size(); ++k)
      if (k == 0 || x->arrays[k] != x->arrays[0]) groups[{depth, x->arrays[k]->id(), types}].push_back(*x);
  }
  bool changed = false;
  absl::flat_hash_set<const Instruction*> merged;
  for (auto& [key, members] : groups) {
    std::vector<std::vector<Candidate>> near;
    const auto other = [&](const Candidate& x) {
      return from_arguments ? depths.after.at(x.i) : depths.before.at(x.i);
    };
    for (const Candidate& x : members) {
      if (merged.contains(x.i)) continue;
      const auto group = std::find_if(near.begin(), near.end(), [&](const std::vector<Candidate>& g) {
        return g.size() < kMostProducts && std::abs(other(g[0]) - other(x)) <= kFarApart;
      });
      if (group == near.end())
        near.push_back({x});
      else
        group->push_back(x);
    }
    for (std::vector<Candidate>& kept : near) {
      // The largest stay with the library first.
      while (kept.size() > 1 && !Pays(kept))
        kept.erase(std::max_element(kept.begin(), kept.end(), [](const Candidate& a, const Candidate& b) {
          return ProductFlops(a.dot) < ProductFlops(b.dot);
        }));
      if (kept.size() < fewest || !ctx.Take()) continue;
      for (const Candidate& x : kept) merged.insert(x.i);
      // What follows may need only what is there before the group, so that no number changes.
      Merge(kept, ctx, [&](const Instruction* o) {
        const auto before = depths.before.find(o);
        return from_arguments && before != depths.before.end() && before->second + IsKernel(o) <= std::get<0>(key);
      });
      changed = true;
    }
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> GpuProductGrouping(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m))
    for (const size_t fewest : {3, 2})  // three gradients are no pair and one, whichever depth they have in common
      for (const bool from_arguments : {true, false}) changed = MergeRound(c, ctx, fewest, from_arguments) || changed;
  return changed;
}

}  // namespace kiln
