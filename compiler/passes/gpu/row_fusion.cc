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

struct Search {
  const std::function<RowFormsOf>& forms;
  RowMemberFilter* takes;  // or nullptr
  absl::flat_hash_map<const Instruction*, size_t> place;
  // Members of regions that the filter refused: a part of one would leave the rest apart for who takes it whole.
  absl::flat_hash_set<const Instruction*> refused;
};

bool FuseOne(Instruction* root, Search* search, PassContext& ctx, bool* several) {
  if (root->shape().ElementCount() == 0) return false;
  for (const RowForm& form : search->forms(root)) {
    if (!form.Whole(root->shape()) && !form.Row(root->shape())) continue;
    const auto takes = [&](const Instruction* i) { return !search->takes || search->takes(i, form); };
    if (!takes(root)) continue;
    const RowRegion region = RowRegionOf(root, form, search->place);
    if (region.members.empty()) continue;
    if (!std::all_of(region.members.begin(), region.members.end(), takes)) {
      search->refused.insert(region.members.begin(), region.members.end());
      continue;
    }
    if (!ctx.Take()) continue;
    *several = region.outputs.size() > 1;
    FuseRegion(region.outputs, region.members)->mutable_attrs().backend_config =
        "{\"fusion_backend_config\":{\"kind\":\"block_level\"}}";
    return true;
  }
  return false;
}

// True if one with several results was made: the order of instructions has changed then. `tried`: ids of roots behind
// which nothing was found; what is fused elsewhere gives them no more.
bool Sweep(Computation* c, const std::function<RowFormsOf>& forms, RowMemberFilter* takes, PassContext& ctx,
           absl::flat_hash_set<int64_t>* tried, bool* changed) {
  const std::vector<Instruction*> order = c->PostOrder();
  Search search{forms, takes, {}, {}};
  for (size_t k = 0; k < order.size(); ++k) search.place[order[k]] = k;
  absl::flat_hash_set<const Instruction*> live;
  for (size_t k = order.size(); k-- > 0;) {
    Instruction* i = order[k];
    if (live.empty())
      for (const auto& x : c->instructions()) live.insert(x.get());
    if (!live.contains(i) || search.refused.contains(i)) continue;
    const Shape& s = i->shape();
    if ((!i->IsElementwise() && !i->Is(Opcode::Reduce)) || !s.IsArray() || s.HasDynamic() || !s.HasDefaultLayout())
      continue;
    bool several = false;
    if (tried->contains(i->id())) continue;
    if (!FuseOne(i, &search, ctx, &several)) {
      tried->insert(i->id());
      continue;
    }
    *changed = true;
    if (several) return true;
    live.clear();
  }
  return false;
}

}  // namespace

bool FuseRowsOf(Module& m, const std::function<RowFormsOf>& forms, RowMemberFilter* takes, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m)) {
    absl::flat_hash_set<int64_t> tried;
    while (Sweep(c, forms, takes, ctx, &tried, &changed)) continue;
  }
  return changed;
}

bool FuseRows(Module& m, int64_t shortest, RowMemberFilter* takes, PassContext& ctx) {
  return FuseRowsOf(
      m, [shortest](const Instruction* root) { return FormsInOnePiece(root, shortest); }, takes, ctx);
}

absl::StatusOr<bool> GpuRowFusion(Module& m, PassContext& ctx) { return FuseRows(m, kShortestGpuRow, nullptr, ctx); }

absl::StatusOr<bool> CpuRowFusion(Module& m, PassContext& ctx) { return FuseRows(m, kShortestCpuRow, nullptr, ctx); }

}  // namespace kiln
