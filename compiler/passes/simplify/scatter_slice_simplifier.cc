// A scatter of which only the front is read, through elementwise operations, is a scatter into the front.
//
// Pads around programs make these: rows past the end take the updates that nobody wants. An update outside of the array
// is dropped, so the ones that fell behind the cut still change nothing, as long as an update is one element wide in
// each dimension that is cut.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/simplify/dot_form.h"

namespace kiln {
namespace {

// More between a scatter and its slices is not followed.
constexpr size_t kMost = 64;

// What stands between a scatter and the slices, operands first, and the extents that all slices keep.
struct Region {
  std::vector<Instruction*> values, slices;
  Ints limits;
};

std::optional<Ints> Truncated(const Instruction* slice) {
  Ints limits;
  for (const SliceDim& s : *slice->attrs().slice) {
    if (s.start != 0 || s.stride != 1) return std::nullopt;
    limits.push_back(s.limit);
  }
  return limits;
}

bool MayBeCut(const Instruction* i) {
  const bool part = i->Is(Opcode::GetTupleElement) && i->operand(0)->Is(Opcode::Scatter);
  return !i->IsRoot() && i->control_predecessors().empty() && i->control_successors().empty() && !i->attrs().sharding &&
         (part || (i->IsElementwise() && i->operand_count() > 0 && !i->HasSideEffect()));
}

// Follows all users; nothing if one is neither elementwise nor a slice like the others.
std::optional<Region> RegionOf(Instruction* scatter) {
  Region r;
  absl::flat_hash_set<Instruction*> met;
  std::vector<Instruction*> open = {scatter};
  while (!open.empty()) {
    Instruction* i = open.back();
    open.pop_back();
    for (Instruction* u : i->users()) {
      if (!met.insert(u).second) continue;
      if (u->Is(Opcode::Slice)) {
        const std::optional<Ints> limits = Truncated(u);
        if (!limits || (!r.slices.empty() && *limits != r.limits)) return std::nullopt;
        r.limits = *limits;
        r.slices.push_back(u);
      } else if (MayBeCut(u) && met.size() < kMost) {
        r.values.push_back(u);
        open.push_back(u);
      } else {
        return std::nullopt;
      }
    }
  }
  if (r.slices.empty()) return std::nullopt;
  return r;
}

// The width of an update in dimension `d` of the operand.
int64_t UpdateExtent(const Instruction* scatter, int64_t d) {
  const Attributes& a = scatter->attrs();
  const auto absent = [&](int64_t k) {
    return Holds(*a.inserted_window_dims, k) || Holds(a.input_batching_dims.value_or(Ints()), k);
  };
  if (absent(d)) return 1;
  size_t window = 0;
  for (int64_t k = 0; k < d; ++k)
    if (!absent(k)) ++window;
  const Instruction* updates = scatter->operand(scatter->operand_count() - 1);
  return updates->shape().dim((*a.update_window_dims)[window]);
}

bool CanBeCut(const Instruction* scatter, const Ints& limits) {
  const Shape& x = scatter->operand(0)->shape();
  bool cuts = false;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (limits[static_cast<size_t>(d)] == x.dim(d)) continue;
    cuts = true;
    if (UpdateExtent(scatter, d) != 1 || Holds(scatter->attrs().input_batching_dims.value_or(Ints()), d)) return false;
  }
  return cuts;
}

Shape Cut(Shape s, const Ints& limits) {
  if (s.IsTuple()) {
    for (Shape& part : s.mutable_tuple()) part = Cut(part, limits);
    return s;
  }
  return Shape::Array(s.type(), limits);
}

Instruction* CutScatter(Instruction* scatter, const Ints& limits) {
  const int64_t count = (scatter->operand_count() - 1) / 2;
  std::vector<Instruction*> operands = scatter->operands();
  for (int64_t k = 0; k < count; ++k)
    operands[static_cast<size_t>(k)] = SliceOf(scatter->operand(k), Ints(limits.size(), 0), limits).get();
  return scatter->parent()->AddClone(scatter, Cut(scatter->shape(), limits), operands);
}

void Apply(Instruction* scatter, const Region& r) {
  absl::flat_hash_map<Instruction*, Instruction*> cut = {{scatter, CutScatter(scatter, r.limits)}};
  const auto front = [&](Instruction* x) {
    Instruction*& c = cut[x];
    if (!c) c = SliceOf(x, Ints(r.limits.size(), 0), r.limits).get();
    return c;
  };
  // A value is met before what uses it only by another path: each pass takes those whose operands are there.
  std::vector<Instruction*> left = r.values;
  while (!left.empty()) {
    std::vector<Instruction*> later;
    for (Instruction* v : left) {
      const bool ready = std::none_of(v->operands().begin(), v->operands().end(), [&](Instruction* o) {
        return std::find(left.begin(), left.end(), o) != left.end() && !cut.contains(o);
      });
      if (!ready) {
        later.push_back(v);
        continue;
      }
      std::vector<Instruction*> operands;
      for (Instruction* o : v->operands())
        operands.push_back(o->shape().IsScalar() && !v->shape().IsScalar() ? o : front(o));
      Instruction* c = v->parent()->AddClone(v, Cut(v->shape(), r.limits), operands);
      cut[v] = c;
    }
    left = std::move(later);
  }
  for (Instruction* s : r.slices) s->ReplaceAllUsesWith(cut.at(s->operand(0)));
}

// Takes out what Apply has left without users: it would fire again.
void Remove(Instruction* scatter, const Region& r) {
  Computation* c = scatter->parent();
  for (Instruction* s : r.slices) c->Remove(s);
  std::vector<Instruction*> left = r.values;
  while (!left.empty()) {
    const auto used =
        std::stable_partition(left.begin(), left.end(), [](const Instruction* v) { return !v->users().empty(); });
    for (auto dead = used; dead != left.end(); ++dead) c->Remove(*dead);
    left.erase(used, left.end());
  }
  c->Remove(scatter);
}

}  // namespace

absl::StatusOr<bool> ScatterSliceSimplifier(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    std::vector<Instruction*> scatters;
    for (Instruction* i : c->PostOrder())
      if (i->Is(Opcode::Scatter)) scatters.push_back(i);
    for (Instruction* i : scatters) {
      if (i->IsRoot() || i->users().empty() || i->shape().HasDynamic() || i->attrs().sharding ||
          !i->control_predecessors().empty() || !i->control_successors().empty())
        continue;
      const std::optional<Region> region = RegionOf(i);
      if (!region || !CanBeCut(i, region->limits) || !ctx.Take()) continue;
      Apply(i, *region);
      Remove(i, *region);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
