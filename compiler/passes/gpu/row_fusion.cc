// Rows that are reduced and then used again (softmax, layer norm) become one kernel: threads of a block for each row.
//
// Where an elementwise value depends on a reduction over its own minor dimension, repeated along that dimension again,
// everything between - from the root backwards, as far as it can be computed row by row - is one fusion of kind
// kCustom. Bitcasts and dimensions that are several in one array and one in another do not matter: only the order in
// memory does. Values on the way that are read elsewhere too, such as the sum before a norm, are further results. Rows
// of 2 to 16384 elements on GPUs; at most 100 instructions. On CPUs (cpu-row-fusion) a row is a unit that stays in the
// first cache: each array is read and written once. Below 24 elements loops over many rows at once are faster.
#include "compiler/passes/gpu/row_fusion.h"

#include <algorithm>

#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

constexpr int64_t kShortestCpuRow = 24, kLongestRow = 16384;

// The reduction that a row's value is made of element by element, or nullptr.
const Instruction* ReduceBehind(const Instruction* i) {
  constexpr int kFar = 8;
  for (int k = 0; k < kFar && !i->Is(Opcode::Reduce); ++k) {
    if (!i->IsElementwise() && !i->Is(Opcode::Bitcast)) return nullptr;
    const Instruction* next = nullptr;
    for (const Instruction* o : i->operands())
      if (o->Is(Opcode::Reduce) || ((o->IsElementwise() || o->Is(Opcode::Bitcast)) && !next)) next = o;
    if (!next) return nullptr;
    i = next;
  }
  return i->Is(Opcode::Reduce) && i->shape().IsArray() ? i : nullptr;
}

std::vector<RowForm> FormsInOnePiece(const Instruction* root, int64_t shortest) {
  std::vector<RowForm> out;
  const Shape& s = root->shape();
  const auto add = [&](int64_t rows, int64_t length) {
    if (length >= shortest && length <= kLongestRow) out.push_back({rows, length});
  };
  if (s.rank() > 0) {
    int64_t minor = s.rank() - 1;
    while (minor > 0 && s.dim(minor) == 1) --minor;
    add(s.ElementCount() / s.dim(minor), s.dim(minor));
  }
  if (const Instruction* reduce = ReduceBehind(root); reduce && reduce->shape().ElementCount() == s.ElementCount())
    add(s.ElementCount(), reduce->operand(0)->shape().ElementCount() / s.ElementCount());
  return out;
}

class Sweep {
 public:
  Sweep(Computation* c, const std::function<RowFormsOf>& forms, RowMemberFilter* takes, PassContext& ctx)
      : forms_(forms), takes_(takes), ctx_(ctx), order_(c->PostOrder()) {
    for (size_t k = 0; k < order_.size(); ++k) place_[order_[k]] = k;
  }

  // From the last instruction to the first; whether anything was fused.
  bool Run() {
    bool changed = false;
    for (size_t k = order_.size(); k-- > 0;) {
      // What is moved here in place of a fused root comes next.
      while (order_[k] && MayEnd(order_[k]) && FuseOne(order_[k])) changed = true;
    }
    return changed;
  }

 private:
  bool MayEnd(const Instruction* i) const {
    const Shape& s = i->shape();
    return (i->IsElementwise() || i->Is(Opcode::Reduce)) && s.IsArray() && !s.HasDynamic() && s.HasDefaultLayout() &&
           s.ElementCount() != 0 && !refused_.contains(i);
  }

  bool FuseOne(Instruction* root) {
    for (const RowForm& form : forms_(root)) {
      if (!form.Whole(root->shape()) && !form.Row(root->shape())) continue;
      const auto takes = [&](const Instruction* i) { return !takes_ || takes_(i, form); };
      if (!takes(root)) continue;
      const RowRegion region = RowRegionOf(root, form, place_);
      if (region.members.empty()) continue;
      if (!std::all_of(region.members.begin(), region.members.end(), takes)) {
        refused_.insert(region.members.begin(), region.members.end());
        continue;
      }
      if (!ctx_.Take()) continue;
      Fuse(region, place_.at(root));
      return true;
    }
    return false;
  }

  // The region's root is at place `last`.
  void Fuse(const RowRegion& region, size_t last) {
    absl::flat_hash_set<const Instruction*> gone;
    Instruction* fusion = FuseRegion(region.outputs, region.members, &gone);
    fusion->mutable_attrs().backend_config = "{\"fusion_backend_config\":{\"kind\":\"block_level\"}}";
    size_t first = last;
    for (const Instruction* i : gone) {
      const auto at = place_.find(i);
      first = std::min(first, at->second);
      order_[at->second] = nullptr;
      place_.erase(at);
    }
    if (region.outputs.size() > 1) MoveBehind(fusion, first, last);
  }

  // The places from `first` to `last` are given again: what needs the fusion comes behind all else, which it may need.
  void MoveBehind(const Instruction* fusion, size_t first, size_t last) {
    absl::flat_hash_set<const Instruction*> behind = {fusion};
    for (std::vector<const Instruction*> work = {fusion}; !work.empty();) {
      const Instruction* i = work.back();
      work.pop_back();
      for (const auto* next : {&i->users(), &i->control_successors()})
        for (const Instruction* u : *next) {
          const auto at = place_.find(u);
          if ((at == place_.end() || at->second < last) && behind.insert(u).second) work.push_back(u);
        }
    }
    const auto from = order_.begin() + static_cast<std::ptrdiff_t>(first);
    std::stable_partition(from, order_.begin() + static_cast<std::ptrdiff_t>(last) + 1,
                          [&](const Instruction* i) { return !i || !behind.contains(i); });
    for (size_t k = first; k <= last; ++k)
      if (order_[k]) place_[order_[k]] = k;
  }

  const std::function<RowFormsOf>& forms_;
  RowMemberFilter* takes_;  // or nullptr
  PassContext& ctx_;
  std::vector<Instruction*> order_;  // nullptr: fused
  absl::flat_hash_map<const Instruction*, size_t> place_;
  // Members of regions that the filter refused: a part of one would leave the rest apart for who takes it whole.
  absl::flat_hash_set<const Instruction*> refused_;
};

}  // namespace

bool FuseRowsOf(Module& m, const std::function<RowFormsOf>& forms, RowMemberFilter* takes, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m)) changed |= Sweep(c, forms, takes, ctx).Run();
  return changed;
}

bool FuseRows(Module& m, int64_t shortest, RowMemberFilter* takes, PassContext& ctx) {
  return FuseRowsOf(
      m, [shortest](const Instruction* root) { return FormsInOnePiece(root, shortest); }, takes, ctx);
}

absl::StatusOr<bool> GpuRowFusion(Module& m, PassContext& ctx) { return FuseRows(m, kShortestGpuRow, nullptr, ctx); }

absl::StatusOr<bool> CpuRowFusion(Module& m, PassContext& ctx) { return FuseRows(m, kShortestCpuRow, nullptr, ctx); }

}  // namespace kiln
