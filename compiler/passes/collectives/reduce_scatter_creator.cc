// A reduction of which each device takes its own slice scatters the reduction instead.
//
// The slice must begin, on each device, at the device's place in its group times the slice's extent, however the
// program computes that. Between the two may stand a reshape, which then comes first, or a transpose. A transpose that
// brings the parts to the front comes first too, since exchanges take blocks along dimension 0 and the product behind
// a weight's gradient can be turned; any other comes last and moves one device's part alone.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/device_values.h"
#include "compiler/passes/collectives/groups.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

Instruction* ReductionBehind(const Instruction* slice) {
  Instruction* all = slice->operand(0);
  if (all->users().size() != 1) return nullptr;
  if (all->Is(Opcode::Reshape) || all->Is(Opcode::Transpose)) all = all->operand(0);
  return PlainAllReduce(all) && all->users().size() == 1 ? all : nullptr;
}

// The only dimension that the slice does not take whole, or -1.
int64_t SlicedDimension(const Instruction* slice) {
  int64_t found = -1;
  for (int64_t d = 0; d < slice->shape().rank(); ++d) {
    if (slice->shape().dim(d) == slice->operand(0)->shape().dim(d)) continue;
    if (found >= 0) return -1;
    found = d;
  }
  return found;
}

bool TakesOwnPart(const Module& m, const Instruction* slice) {
  if (!slice->Is(Opcode::DynamicSlice) || slice->operand_count() != 1 + slice->shape().rank()) return false;
  const Instruction* all = ReductionBehind(slice);
  const int64_t d = all ? SlicedDimension(slice) : -1;
  if (d < 0) return false;
  const auto groups = DeviceGroups(*all, m.replica_count, m.partition_count);
  const std::optional<Ints> starts = SliceStarts(slice, d);
  if (!groups.ok() || !starts) return false;
  const int64_t part = slice->shape().dim(d), whole = slice->operand(0)->shape().dim(d);
  size_t devices = 0;
  for (const Ints& g : *groups) {
    const int64_t n = static_cast<int64_t>(g.size());
    if (n < 2 || part * n != whole) return false;
    for (int64_t k = 0; k < n; ++k)
      if ((*starts)[static_cast<size_t>(g[static_cast<size_t>(k)])] != k * part) return false;
    devices += g.size();
  }
  return devices == starts->size();
}

// `x` reduced as `all` reduces it, of which each device takes `part` along dimension `d`.
Instruction* Scatter(const Instruction& all, Expr x, int64_t d, int64_t part) {
  Ints dims = x.shape().dims();
  dims[static_cast<size_t>(d)] = part;
  Instruction* scatter = x.computation()->Add(Opcode::ReduceScatter, Shape::Array(x.type(), dims), {x.get()});
  scatter->mutable_attrs() = all.attrs();
  scatter->mutable_attrs().dimensions = Ints{d};
  return scatter;
}

}  // namespace

absl::StatusOr<bool> ReduceScatterCreator(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [&](const Instruction* i) { return TakesOwnPart(m, i); },
      [&](Instruction* i) -> absl::StatusOr<Instruction*> {
        const Instruction *all = ReductionBehind(i), *sliced = i->operand(0);
        const int64_t d = SlicedDimension(i);
        Expr x(all->operand(0));
        if (sliced->Is(Opcode::Reshape)) x = ReshapeTo(x, sliced->shape().dims());
        if (!sliced->Is(Opcode::Transpose)) return Scatter(*all, x, d, i->shape().dim(d));
        const Ints& order = *sliced->attrs().dimensions;
        if (d == 0) return Scatter(*all, TransposeBy(x, order), d, i->shape().dim(d));
        return TransposeBy(Scatter(*all, x, order[static_cast<size_t>(d)], i->shape().dim(d)), order).get();
      });
}

}  // namespace kiln
