// Arrays travel in the narrow type: a conversion to fewer bits, with the scaling and clamping in front of it, moves
// before the collective that it follows; a conversion to more bits, with the scaling behind it, moves behind. What only
// moves elements may stand between: it stays on its side of the collective.
//
// Exact, but for zeros that are scaled by what makes no zero of them (KeepZeros): what moves is elementwise, and its
// scales are the same on all devices of a group.
#include <algorithm>
#include <cmath>

#include "compiler/hlo/replica_groups.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/replication.h"
#include "compiler/passes/expand/expand_each.h"

namespace kiln {
namespace {

bool MovesData(const Instruction* i) {
  return (i->Is(Opcode::AllGather) || (i->Is(Opcode::AllToAll) && i->attrs().dimensions) ||
          i->Is(Opcode::CollectivePermute) || i->Is(Opcode::CollectiveBroadcast)) &&
         i->operand_count() == 1 && i->shape().IsArray() && !i->attrs().constrain_layout.value_or(false);
}

bool MovesElements(const Instruction* i) {
  return i->Is(Opcode::Reshape) || i->Is(Opcode::Slice) || i->Is(Opcode::Transpose) || i->Is(Opcode::Copy);
}

bool IsRepeatedScalar(const Instruction* i) {
  return i->shape().IsScalar() || (i->Is(Opcode::Broadcast) && i->operand(0)->shape().ElementCount() == 1);
}

const Instruction* ScalarOf(const Instruction* i) { return i->Is(Opcode::Broadcast) ? i->operand(0) : i; }

class Quantizer {
 public:
  Quantizer(const Module& m, Algebra algebra) : m_(m), algebra_(algebra), replication_(m) {}

  // The collective that `convert` follows and the operations between, last first; null if they cannot move.
  Instruction* Behind(const Instruction* convert, std::vector<Instruction*>* between) const {
    if (!convert->Is(Opcode::Convert) || !Narrows(convert->operand(0)->shape().type(), convert->shape().type()))
      return nullptr;
    Instruction* i = convert->operand(0);
    for (; i->users().size() == 1 && Depth(i) >= 0; i = i->operand(Depth(i))) between->push_back(i);
    if (!MovesData(i) || i->users().size() != 1 || !i->control_predecessors().empty() ||
        !i->control_successors().empty() || !ScalesAgree(i, *between))
      return nullptr;
    return EveryDeviceReceives(i) || KeepZeros(*between) ? i : nullptr;
  }

  // The widening conversion that `collective` follows and the operations between, last first.
  Instruction* Before(const Instruction* collective, std::vector<Instruction*>* between) const {
    if (!MovesData(collective)) return nullptr;
    Instruction* i = collective->operand(0);
    for (; !i->Is(Opcode::Clamp) && Depth(i) >= 0; i = i->operand(Depth(i))) between->push_back(i);
    if (!i->Is(Opcode::Convert) || !Narrows(i->shape().type(), i->operand(0)->shape().type()) ||
        !ScalesAgree(collective, *between))
      return nullptr;
    return EveryDeviceReceives(collective) || KeepZeros(*between) ? i : nullptr;
  }

 private:
  static bool Narrows(PrimitiveType from, PrimitiveType to) {
    return IsFloat(from) && (IsFloat(to) || IsIntegral(to)) && BitWidth(to) < BitWidth(from);
  }

  // Which operand of what moves elements, scales or clamps is the data; -1 of anything else, or if it is not by
  // scalars.
  static int64_t Depth(const Instruction* i) {
    if (MovesElements(i)) return i->shape().HasDynamic() ? -1 : 0;
    if (i->Is(Opcode::Clamp)) return IsRepeatedScalar(i->operand(0)) && IsRepeatedScalar(i->operand(2)) ? 1 : -1;
    if (i->Is(Opcode::Divide)) return IsRepeatedScalar(i->operand(1)) ? 0 : -1;
    if (!i->Is(Opcode::Multiply)) return -1;
    return IsRepeatedScalar(i->operand(1)) ? 0 : IsRepeatedScalar(i->operand(0)) ? 1 : -1;
  }

  // The devices that exchange data, as groups.
  std::optional<std::vector<Ints>> Meeting(const Instruction* i) const {
    std::vector<Ints> out;
    if (!i->Is(Opcode::CollectivePermute)) {
      const auto groups = DeviceGroups(*i, m_.replica_count, m_.partition_count);
      return groups.ok() ? std::optional(*groups) : std::nullopt;
    }
    const auto pairs = DevicePairs(*i, m_.replica_count, m_.partition_count);
    if (!pairs.ok()) return std::nullopt;
    for (const auto& [from, to] : *pairs) out.push_back({from, to});
    return out;
  }

  bool EveryDeviceReceives(const Instruction* collective) const {
    const int64_t devices = m_.replica_count * m_.partition_count;
    if (collective->Is(Opcode::CollectivePermute)) {
      const auto pairs = DevicePairs(*collective, m_.replica_count, m_.partition_count);
      return pairs.ok() && static_cast<int64_t>(pairs->size()) == devices;
    }
    if (!collective->Is(Opcode::CollectiveBroadcast)) return true;
    const auto groups = Meeting(collective);
    int64_t receivers = 0;
    if (groups)
      for (const Ints& g : *groups) receivers += static_cast<int64_t>(g.size());
    return receivers == devices;
  }

  // Devices that receive nothing get zeros. Scaling keeps them, unless by a number known to be none, or, which only
  // exact algebra minds, by one that is zero, infinite or not a number when it comes; clamping does between bounds
  // around them.
  bool KeepZeros(const std::vector<Instruction*>& between) const {
    const auto value = [](const Instruction* i) {
      const Instruction* scalar = ScalarOf(i);
      return scalar->Is(Opcode::Constant) ? std::optional(scalar->literal().Get(0).re) : std::nullopt;
    };
    return std::all_of(between.begin(), between.end(), [&](const Instruction* i) {
      if (MovesElements(i)) return true;
      if (algebra_ == Algebra::kExact) return false;
      if (i->Is(Opcode::Clamp)) return value(i->operand(0)).value_or(1) <= 0 && value(i->operand(2)).value_or(-1) >= 0;
      const double scale = value(i->operand(1 - Depth(i))).value_or(1);
      return std::isfinite(scale) && scale != 0;
    });
  }

  bool ScalesAgree(const Instruction* collective, const std::vector<Instruction*>& between) const {
    const auto groups = Meeting(collective);
    if (!groups) return false;
    for (const Instruction* i : between)
      for (int64_t k = 0; k < i->operand_count(); ++k)
        if (k != Depth(i) && !replication_.SameWithin(*groups, ScalarOf(i->operand(k)))) return false;
    return true;
  }

  const Module& m_;
  const Algebra algebra_;
  Replication replication_;
};

int64_t DataOperand(const Instruction* i) {
  if (i->Is(Opcode::Clamp)) return 1;
  return i->Is(Opcode::Multiply) && !IsRepeatedScalar(i->operand(1)) ? 1 : 0;
}

// The operations of `between`, last first, that move elements of `x`.
Instruction* Moved(const std::vector<Instruction*>& between, Instruction* x) {
  for (auto it = between.rbegin(); it != between.rend(); ++it) {
    if (!MovesElements(*it)) continue;
    Shape s = (*it)->shape();
    s.set_type(x->shape().type());
    x = x->parent()->AddClone(*it, s, {x});
  }
  return x;
}

// Those that scale and clamp, on `x`, which may have other extents.
Instruction* Scaled(const std::vector<Instruction*>& between, Instruction* x) {
  Computation* c = x->parent();
  for (auto it = between.rbegin(); it != between.rend(); ++it) {
    if (MovesElements(*it)) continue;
    std::vector<Instruction*> operands = (*it)->operands();
    for (int64_t k = 0; k < (*it)->operand_count(); ++k) {
      Instruction*& o = operands[static_cast<size_t>(k)];
      if (k == DataOperand(*it)) {
        o = x;
      } else if (!o->shape().IsScalar()) {
        o = BroadcastTo(ReshapeTo(o->operand(0), {}), x->shape().dims()).get();
      }
    }
    Shape s = x->shape();
    s.set_type((*it)->shape().type());
    x = c->AddClone(*it, s, operands);
  }
  return x;
}

Instruction* Converted(Instruction* x, const Instruction* convert) {
  Shape s = x->shape();
  s.set_type(convert->shape().type());
  return x->parent()->AddClone(convert, s, {x});
}

}  // namespace

absl::StatusOr<bool> CollectiveQuantizer(Module& m, PassContext& ctx) {
  const Quantizer quantizer(m, ctx.algebra);
  return ExpandEach(
      m, ctx,
      [&](const Instruction* i) {
        std::vector<Instruction*> a, b;
        return quantizer.Behind(i, &a) || quantizer.Before(i, &b);
      },
      [&](Instruction* i) -> absl::StatusOr<Instruction*> {
        std::vector<Instruction*> between;
        if (const Instruction* collective = quantizer.Behind(i, &between)) {
          Instruction* narrow = Converted(Scaled(between, collective->operand(0)), i);
          Shape received = collective->shape();
          received.set_type(narrow->shape().type());
          return Moved(between, i->parent()->AddClone(collective, received, {narrow}));
        }
        between.clear();
        const Instruction* convert = quantizer.Before(i, &between);
        Instruction* sent = Moved(between, convert->operand(0));
        Shape received = i->shape();
        received.set_type(sent->shape().type());
        return Scaled(between, Converted(i->parent()->AddClone(i, received, {sent}), convert));
      });
}

}  // namespace kiln
