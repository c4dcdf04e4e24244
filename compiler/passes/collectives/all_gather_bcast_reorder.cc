// What was repeated before it is gathered is gathered first, so that less travels.
#include <algorithm>

#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

// Of a gather along a dimension of the broadcast's operand.
Instruction* AlongOwnDimension(Instruction* gather, int64_t place) {
  Instruction* b = gather->operand(0);
  Shape gathered = b->operand(0)->shape();
  gathered.mutable_dims()[static_cast<size_t>(place)] = gather->shape().dim((*gather->attrs().dimensions)[0]);
  Instruction* first = b->parent()->AddClone(gather, gathered, {b->operand(0)});
  first->mutable_attrs().dimensions = Ints{place};
  return b->parent()->AddClone(b, gather->shape(), {first});
}

// Of a gather along a dimension that is a repetition: each device repeats its own value there. The values of all are
// gathered side by side, and each is repeated.
Instruction* AlongRepetition(Instruction* gather) {
  const Instruction* b = gather->operand(0);
  const int64_t d = (*gather->attrs().dimensions)[0], devices = gather->shape().dim(d) / b->shape().dim(d);
  Ints one = b->operand(0)->shape().dims();
  one.insert(one.begin(), 1);
  Expr value = ReshapeTo(gather->operand(0)->operand(0), one);
  Shape all = value.shape();
  all.mutable_dims()[0] = devices;
  Instruction* values = gather->parent()->AddClone(gather, all, {value.get()});
  values->mutable_attrs().dimensions = Ints{0};
  Ints split = b->shape().dims(), mapped = {d};
  split.insert(split.begin() + d, devices);
  for (int64_t m : *b->attrs().dimensions) mapped.push_back(m < d ? m : m + 1);
  if (!std::is_sorted(mapped.begin(), mapped.end())) {
    // A broadcast keeps the order of dimensions: the devices' dimension goes where it belongs first.
    Ints order(mapped.size());
    for (size_t k = 0; k < order.size(); ++k) order[k] = static_cast<int64_t>(k);
    std::sort(order.begin(), order.end(),
              [&](int64_t x, int64_t y) { return mapped[static_cast<size_t>(x)] < mapped[static_cast<size_t>(y)]; });
    std::sort(mapped.begin(), mapped.end());
    return ReshapeTo(BroadcastTo(TransposeBy(values, order), split, mapped), gather->shape().dims()).get();
  }
  return ReshapeTo(BroadcastTo(values, split, mapped), gather->shape().dims()).get();
}

}  // namespace

absl::StatusOr<bool> AllGatherBcastReorder(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx,
      [](const Instruction* i) {
        if (!i->Is(Opcode::AllGather) || i->operand_count() != 1 || !i->shape().IsArray()) return false;
        const Instruction* b = i->operand(0);
        return b->Is(Opcode::Broadcast) && b->operand(0)->shape().ElementCount() < b->shape().ElementCount() &&
               b->shape().ElementCount() > 0;
      },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        const Ints& mapped = *i->operand(0)->attrs().dimensions;
        const auto at = std::find(mapped.begin(), mapped.end(), (*i->attrs().dimensions)[0]);
        return at == mapped.end() ? AlongRepetition(i) : AlongOwnDimension(i, at - mapped.begin());
      });
}

}  // namespace kiln
