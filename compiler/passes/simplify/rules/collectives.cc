// Exchanges of what every device has alike.
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/replica_groups.h"
#include "compiler/passes/simplify/rules/pattern.h"
#include "compiler/passes/simplify/rules/reducer.h"
#include "compiler/passes/simplify/rules/rule.h"

namespace kiln {
namespace {

// The operand, if it repeats a constant.
Instruction* RepeatedConstant(const Instruction* i) {
  if (i->operand_count() != 1 || !i->shape().IsArray() || !IsStatic(i)) return nullptr;
  Instruction* x = i->operand(0);
  const bool repeated = x->Is(Opcode::Broadcast) && x->operand(0)->shape().IsScalar() && pattern::SplatOf(x);
  return repeated ? x->operand(0) : nullptr;
}

Instruction* Moved(Instruction* i) {
  Instruction* scalar = RepeatedConstant(i);
  return scalar ? BroadcastTo(scalar, i->shape().dims()).get() : nullptr;
}

// How many devices meet, if that is known; else 0.
int64_t Members(const Instruction* i) {
  if (!i->attrs().replica_groups) return 0;
  const auto groups = ParseReplicaGroups(i->attrs().replica_groups->text);
  if (!groups.ok()) return 0;
  for (const Ints& g : *groups)
    if (g.size() != groups->front().size()) return 0;
  const Module* m = i->parent()->module();
  const GroupMode mode = GroupModeOf(*i);
  const int64_t all = mode == GroupMode::kPartitions ? m->partition_count : m->replica_count;
  const int64_t members = groups->empty() ? all : static_cast<int64_t>(groups->front().size());
  return mode == GroupMode::kReplicasOfAllPartitions ? members * m->partition_count : members;
}

Instruction* Reduced(Instruction* i) {
  Instruction* scalar = RepeatedConstant(i);
  const std::optional<Opcode> op = ReducerOf(i);
  if (!scalar || !op) return nullptr;
  if (*op == Opcode::Maximum || *op == Opcode::Minimum) return BroadcastTo(scalar, i->shape().dims()).get();
  const int64_t members = Members(i);
  const PrimitiveType t = i->shape().type();
  if (*op != Opcode::Add || members == 0 || t == PrimitiveType::Pred) return nullptr;
  Expr count = i->parent()->AddConstant(Literal::Of(t, static_cast<double>(members)));
  return BroadcastTo(Expr(scalar) * count, i->shape().dims()).get();
}

constexpr const char* kOfParameter = "ROOT r = $T[4,6] all-gather(p), dimensions={0}, replica_groups={{0}}";
constexpr const char* kSumOfParameter = "ROOT r = $T[4,6] all-reduce(p), to_apply=sum, replica_groups={{0}}";

const Rule kRules[] = {
    {"all-gather-of-constant",
     {Opcode::AllGather, Opcode::AllToAll},
     kAllTypes,
     Numerics::Exact,
     "c = $T[] constant(1)\n b = $T[4,6] broadcast(c), dimensions={}\n"
     " ROOT r = $T[4,6] all-gather(b), dimensions={0}, replica_groups={{0}}",
     kOfParameter,
     Moved,
     true},
    {"all-reduce-of-constant",
     {Opcode::AllReduce, Opcode::ReduceScatter},
     kInts | kFloats | kComplex,
     Numerics::Rounding,
     "c = $T[] constant(1)\n b = $T[4,6] broadcast(c), dimensions={}\n"
     " ROOT r = $T[4,6] all-reduce(b), to_apply=sum, replica_groups={{0}}",
     kSumOfParameter,
     Reduced,
     true},
};

}  // namespace

absl::Span<const Rule> CollectiveRules() { return kRules; }

}  // namespace kiln
