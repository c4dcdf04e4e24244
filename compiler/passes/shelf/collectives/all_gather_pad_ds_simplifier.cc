// A gathered array is padded, and each device slices its part: if every part holds either the whole array at one place
// or nothing but padding, each device pads the array to the size of its part, or fills it.
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/device_values.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

struct Parts {
  int64_t dim = -1;
  int64_t holder = 0;  // where the parts with the array begin
  int64_t low = 0, high = 0;
  bool filled = false;  // some device has padding only
};

// The only dimension that is padded, or -1.
int64_t PaddedDimension(const Instruction* pad) {
  int64_t found = -1;
  for (int64_t d = 0; d < pad->shape().rank(); ++d) {
    const PadDim& p = (*pad->attrs().padding)[static_cast<size_t>(d)];
    if (p.low == 0 && p.high == 0 && p.interior == 0) continue;
    if (found >= 0 || p.low < 0 || p.high < 0 || p.interior != 0) return -1;
    found = d;
  }
  return found;
}

std::optional<Parts> PartsOf(const Instruction* slice) {
  if (!slice->Is(Opcode::DynamicSlice) || slice->operand_count() != 1 + slice->shape().rank()) return std::nullopt;
  const Instruction* pad = slice->operand(0);
  if (!pad->Is(Opcode::Pad) || !pad->operand(0)->Is(Opcode::AllGather) || !pad->operand(0)->shape().IsArray() ||
      pad->users().size() != 1)
    return std::nullopt;
  Parts p;
  p.dim = PaddedDimension(pad);
  for (int64_t d = 0; d < slice->shape().rank(); ++d)
    if (d != p.dim && slice->shape().dim(d) != pad->shape().dim(d)) return std::nullopt;
  if (p.dim < 0) return std::nullopt;
  const std::optional<Ints> starts = SliceStarts(slice, p.dim), written = ValuesOnDevices(slice->operand(1 + p.dim));
  if (!starts || starts != written) return std::nullopt;
  const int64_t low = (*pad->attrs().padding)[static_cast<size_t>(p.dim)].low;
  const int64_t high = low + pad->operand(0)->shape().dim(p.dim), part = slice->shape().dim(p.dim);
  bool found = false;
  for (int64_t s : *starts) {
    if (s + part <= low || s >= high) {
      p.filled = true;
      continue;
    }
    if (s > low || s + part < high || (found && s != p.holder)) return std::nullopt;
    p.holder = s;
    found = true;
  }
  p.low = low - p.holder;
  p.high = part - p.low - (high - low);
  return found ? std::optional(p) : std::nullopt;
}

}  // namespace

absl::StatusOr<bool> AllGatherPadDsSimplifier(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](const Instruction* i) { return PartsOf(i).has_value(); },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        Computation* c = i->parent();
        const Parts p = *PartsOf(i);
        Instruction* pad = i->operand(0);
        Instruction* own = c->AddClone(pad, i->shape(), pad->operands());
        (*own->mutable_attrs().padding)[static_cast<size_t>(p.dim)] = PadDim{p.low, p.high, 0};
        if (!p.filled) return own;
        Expr start = i->operand(1 + p.dim);
        Expr holds =
            BroadcastTo(CompareExpr(Direction::EQ, start, IntegerIn(c, start.type(), p.holder)), i->shape().dims());
        return SelectExpr(holds, own, BroadcastTo(pad->operand(1), i->shape().dims())).get();
      });
}

}  // namespace kiln
