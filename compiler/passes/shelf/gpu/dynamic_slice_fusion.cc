// A library call that reads slices lying whole in memory reads them in place: slice and call are one fusion.
//
// A slice lies whole if only its outermost extent other than 1 is cut; its start may be a value of the run.
#include "compiler/hlo/library_calls.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

bool LiesWhole(const Instruction* slice) {
  const Shape &from = slice->operand(0)->shape(), &to = slice->shape();
  if (!from.HasDefaultLayout() || !to.HasDefaultLayout()) return false;
  if (slice->Is(Opcode::Slice))
    for (const SliceDim& s : *slice->attrs().slice)
      if (s.stride != 1) return false;
  // Behind the first cut dimension nothing may be cut; before it extents are 1.
  int64_t cut = -1;
  for (int64_t d = from.rank() - 1; d >= 0; --d)
    if (from.dim(d) != to.dim(d)) cut = d;
  for (int64_t d = cut + 1; cut >= 0 && d < from.rank(); ++d)
    if (from.dim(d) != to.dim(d) && to.dim(cut) != 1) return false;
  int64_t last = -1;
  for (int64_t d = 0; d < from.rank(); ++d)
    if (from.dim(d) != to.dim(d)) last = d;
  for (int64_t d = 0; d < last; ++d)
    if (to.dim(d) != 1) return false;
  return cut >= 0;
}

bool SliceOnlyFor(const Instruction* o, const Instruction* call) {
  return (o->Is(Opcode::Slice) || o->Is(Opcode::DynamicSlice)) && o->users().size() == 1 && o->users()[0] == call &&
         !o->IsRoot() && LiesWhole(o);
}

}  // namespace

absl::StatusOr<bool> DynamicSliceFusion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m))
    for (Instruction* i : c->PostOrder()) {
      if (!IsLibraryCall(i)) continue;
      absl::flat_hash_set<const Instruction*> members = {i};
      for (const Instruction* o : i->operands())
        if (SliceOnlyFor(o, i)) members.insert(o);
      if (members.size() == 1 || !ctx.Take()) continue;
      Instruction* fusion = FuseRegion({i}, members);
      fusion->mutable_attrs().backend_config =
          "{\"fusion_backend_config\":{\"kind\":\"__custom_fusion\",\"custom_fusion_config\":{\"name\":"
          "\"address_computation\"}}}";
      changed = true;
    }
  return changed;
}

}  // namespace kiln
