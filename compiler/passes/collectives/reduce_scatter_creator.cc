// A reduction of which each device takes its own slice scatters the reduction instead.
//
// The slice must begin, on each device, at the device's place in its group times the slice's extent, however the
// program computes that. Between the two may stand what computes each element by itself, of it and of numbers, as the
// mean does, and then is computed of the part; and a reshape, which then comes first, or a transpose. A transpose that
// brings the parts to the front comes first too, since exchanges take blocks along dimension 0 and the product behind
// a weight's gradient can be turned; any other comes last and moves one device's part alone.
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/device_values.h"
#include "compiler/passes/collectives/groups.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

bool IsRepeatedScalar(const Instruction* i) { return i->Is(Opcode::Broadcast) && i->operand(0)->shape().IsScalar(); }

// The operand of which, and of numbers besides, each element is computed by itself; -1 of anything else.
int64_t DataOperand(const Instruction* i) {
  if (!i->IsElementwise() || i->users().size() != 1 || i->shape().HasDynamic() || i->HasSideEffect() ||
      !i->control_predecessors().empty() || !i->control_successors().empty())
    return -1;
  int64_t data = -1;
  for (int64_t k = 0; k < i->operand_count(); ++k) {
    if (IsRepeatedScalar(i->operand(k))) continue;
    if (data >= 0 || i->operand(k)->shape().dims() != i->shape().dims()) return -1;
    data = k;
  }
  return data;
}

// What the slice takes a part of, before what is computed of each element.
Instruction* Sliced(const Instruction* slice) {
  Instruction* i = slice->operand(0);
  for (int64_t k = DataOperand(i); k >= 0; k = DataOperand(i)) i = i->operand(k);
  return i;
}

// What is computed between `sliced` and `result`, of a part of it.
Instruction* OfPart(const Instruction* result, const Instruction* sliced, Expr part) {
  if (result == sliced) return part.get();
  const int64_t data = DataOperand(result);
  std::vector<Instruction*> operands;
  for (int64_t k = 0; k < result->operand_count(); ++k) {
    Instruction* o = result->operand(k);
    operands.push_back(k == data ? OfPart(o, sliced, part) : BroadcastTo(o->operand(0), part.shape().dims()).get());
  }
  return part.computation()->AddClone(result, Shape::Array(result->shape().type(), part.shape().dims()), operands);
}

Instruction* ReductionBehind(const Instruction* slice) {
  Instruction* all = Sliced(slice);
  if (all->users().size() != 1) return nullptr;
  if (all->Is(Opcode::Reshape) || all->Is(Opcode::Transpose)) all = all->operand(0);
  return PlainAllReduce(all) && all->users().size() == 1 ? all : nullptr;
}

bool TakesOwnPart(const Module& m, const Instruction* slice) {
  if (!slice->Is(Opcode::DynamicSlice) || slice->operand_count() != 1 + slice->shape().rank()) return false;
  const Instruction* all = ReductionBehind(slice);
  const int64_t d = all ? SlicedDimension(slice) : -1;
  if (d < 0) return false;
  const auto groups = DeviceGroups(*all, m.replica_count, m.partition_count);
  return groups.ok() && TakesPartsInOrder(slice, d, *groups);
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
        const Instruction *all = ReductionBehind(i), *sliced = Sliced(i);
        const int64_t d = SlicedDimension(i);
        Expr x(all->operand(0));
        if (sliced->Is(Opcode::Reshape)) x = ReshapeTo(x, sliced->shape().dims());
        const Ints order = sliced->Is(Opcode::Transpose) ? *sliced->attrs().dimensions : Ints();
        if (!order.empty() && d == 0) x = TransposeBy(x, order);
        const bool turned = order.empty() || d == 0;
        Expr part = Scatter(*all, x, turned ? d : order[static_cast<size_t>(d)], i->shape().dim(d));
        return OfPart(i->operand(0), sliced, turned ? part : TransposeBy(part, order));
      });
}

}  // namespace kiln
