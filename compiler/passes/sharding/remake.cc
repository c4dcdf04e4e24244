#include "compiler/passes/sharding/remake.h"

#include <algorithm>

#include "compiler/passes/sharding/partitioned_op.h"

namespace kiln {
namespace {

constexpr int kMostSteps = 24;

bool CanBeMadeAgain(const Instruction& op) {
  if (!op.shape().IsArray() || op.HasSideEffect()) return false;
  return op.IsElementwise() || op.Is(Opcode::Broadcast) || op.Is(Opcode::Reshape) || op.Is(Opcode::Transpose) ||
         op.Is(Opcode::Iota);
}

bool IsSplat(const Part& p) { return p.value->Is(Opcode::Constant) && p.value->literal().IsSplat(); }

Part SplatOf(const Part& p, const Tiling& target, Resharder* reshard) {
  Literal one(Shape::Scalar(p.whole.type()));
  one.Set(0, p.value->literal().Get(0));
  const Shape local = LocalShape(reshard->mesh(), p.whole, target);
  return {reshard->computation()->AddConstant(Literal::Splat(local, one)), target, p.whole};
}

// An exchange; the value is still the same operation.
Part Move(const Part& p, const Tiling& target, Resharder* reshard) {
  const Part out = reshard->To(p, target);
  if (const auto known = reshard->recipes().find(p.value->id()); known != reshard->recipes().end())
    reshard->recipes().insert({out.value->id(), known->second});
  return out;
}

class Remaker {
 public:
  explicit Remaker(Resharder* reshard) : reshard_(*reshard), mesh_(reshard->mesh()) {}

  // Bytes of the exchange that brings the part there.
  int64_t BytesMoved(const Part& p, const Tiling& target) const {
    if (reshard_.IsFree(p, target) || IsSplat(p) || reshard_.Known(p, target)) return 0;
    return reshard_.BytesTo(p, target);
  }

  // Bytes of the exchanges that bring its operands there, or theirs; more than any exchange where there is no way.
  int64_t BytesMadeAgain(const Part& p, const Tiling& target) {
    const auto plan = PlanOf(p, target);
    if (!plan || ++steps_ > kMostSteps) return INT64_MAX;
    int64_t sum = 0;
    for (size_t k = 0; k < plan->operands.size(); ++k) {
      const Part& o = plan->recipe->operands[k];
      const int64_t moved = BytesMoved(o, plan->operands[k]);
      if (moved > 0) sum += std::min(moved, BytesMadeAgain(o, plan->operands[k]));
    }
    return sum;
  }

  Part MakeAgain(const Part& p, const Tiling& target) {
    const auto plan = PlanOf(p, target);
    LocalOp local{*plan->recipe->op, plan->rule, plan->axes, reshard_, {}, {}, {}};
    for (size_t k = 0; k < plan->operands.size(); ++k) {
      local.parts.push_back(BringOperand(plan->recipe->operands[k], plan->operands[k]));
      local.operands.push_back(local.parts.back().value);
    }
    local.shapes.push_back(LocalShape(mesh_, p.whole, target));
    const Part made{local.Emit()[0], target, p.whole};
    reshard_.Keep(p, made);
    RememberRecipe(*plan->recipe->op, local.parts, made, &reshard_);
    return made;
  }

 private:
  struct Plan {
    const Recipe* recipe;
    OpRule rule;
    std::vector<Axes> axes;        // of factors
    std::vector<Tiling> operands;  // as the operation wants them
  };

  std::optional<Plan> PlanOf(const Part& p, const Tiling& target) const {
    const auto known = reshard_.recipes().find(p.value->id());
    if (known == reshard_.recipes().end() || p.tiling.manual || target.manual ||
        known->second.op->shape().dims() != p.whole.dims() || !CutsEvenly(mesh_, p.whole.dims(), target))
      return std::nullopt;
    Plan plan{&known->second, {}, {}, {}};
    auto rule = RuleOf(*plan.recipe->op);
    if (!rule) return std::nullopt;
    plan.rule = *std::move(rule);
    plan.axes = AxesOfFactors(mesh_, plan.rule, plan.rule.results[0], target);
    const auto result = TilingOfFactors(mesh_, plan.rule, plan.rule.results[0], plan.axes);
    if (!result || result->dims != target.dims) return std::nullopt;
    for (size_t k = 0; k < plan.rule.operands.size(); ++k) {
      const Part& o = plan.recipe->operands[k];
      const auto t = TilingOfFactors(mesh_, plan.rule, plan.rule.operands[k], plan.axes);
      if (!t || o.tiling.manual || !CutsEvenly(mesh_, o.whole.dims(), *t)) return std::nullopt;
      plan.operands.push_back(*t);
    }
    return plan;
  }

  Part BringOperand(const Part& p, const Tiling& target) {
    if (IsSplat(p)) return SplatOf(p, target, &reshard_);
    const int64_t moved = BytesMoved(p, target);
    steps_ = 0;
    return moved > 0 && BytesMadeAgain(p, target) < moved ? MakeAgain(p, target) : Move(p, target, &reshard_);
  }

  Resharder& reshard_;
  const DeviceMesh& mesh_;
  int steps_ = 0;
};

}  // namespace

void RememberRecipe(const Instruction& op, const std::vector<Part>& operands, const Part& value, Resharder* reshard) {
  if (CanBeMadeAgain(op) && !value.tiling.manual) reshard->recipes().insert({value.value->id(), {&op, operands}});
}

Part Bring(const Part& part, const Tiling& target, Resharder* reshard) {
  if (!part.whole.IsArray() || part.tiling.dims == target.dims) return part;
  if (IsSplat(part)) return SplatOf(part, target, reshard);
  Remaker r(reshard);
  const int64_t moved = r.BytesMoved(part, target);
  if (moved < kExchange || r.BytesMadeAgain(part, target) > moved / 2 + kPathExchange)
    return Move(part, target, reshard);
  return r.MakeAgain(part, target);
}

Part BringResult(const Instruction& op, const Part& part, const Tiling& target, Resharder* reshard) {
  const bool alone = op.shape().IsArray() && !op.IsRoot() && op.users().size() == 1 && op.users()[0]->IsElementwise();
  if (!alone || part.tiling.manual || !CutsEvenly(reshard->mesh(), part.whole.dims(), part.tiling))
    return Bring(part, target, reshard);
  const auto bytes = [&](const Tiling& t) { return LocalShape(reshard->mesh(), part.whole, t).ByteSize(); };
  const bool stays = bytes(part.tiling) <= bytes(target) && !reshard->IsFree(part, target);
  return stays ? part : Bring(part, target, reshard);
}

}  // namespace kiln
