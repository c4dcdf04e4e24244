// Choices between flags, by known or negated flags, and of what was updated.
#include "compiler/passes/simplify/rules/rule.h"
#include "compiler/passes/simplify/rules/terms.h"

namespace kiln {
namespace {

using namespace pattern;

bool IsWhole(const Instruction* select) { return select->operand(0)->shape().dims() == select->shape().dims(); }

// Between true and false.
Instruction* BetweenFlags(Instruction* i) {
  if (!IsWhole(i)) return nullptr;
  if (IsAll(i->operand(1), 1) && IsAll(i->operand(2), 0)) return i->operand(0);
  if (IsAll(i->operand(1), 0) && IsAll(i->operand(2), 1)) return Unary(Opcode::Not, i->operand(0)).get();
  return nullptr;
}

// select(a > b, a, b) and the like, of flags.
Instruction* BetweenCompared(Instruction* i) {
  const Instruction* c = i->operand(0);
  Instruction *a = i->operand(1), *b = i->operand(2);
  if (!c->Is(Opcode::Compare) || c->operand(0) != a || c->operand(1) != b) return nullptr;
  if (IsDirection(c, Direction::GT) || IsDirection(c, Direction::GE)) return (Expr(a) | b).get();
  if (IsDirection(c, Direction::LT) || IsDirection(c, Direction::LE)) return (Expr(a) & b).get();
  return IsDirection(c, Direction::EQ) ? b : a;
}

// select(flag, x, update(x, u, at)) updates with select(flag, what x has there, u): the update stays in place.
Instruction* OfUpdate(Instruction* i) {
  if (HasOwnLayout(i)) return nullptr;
  for (int64_t k = 1; k <= 2; ++k) {
    Instruction *update = i->operand(k), *x = i->operand(3 - k);
    if (!update->Is(Opcode::DynamicUpdateSlice) || update->operand(0) != x || !HasOneUser(update)) continue;
    std::vector<Expr> starts;
    for (int64_t o = 2; o < update->operand_count(); ++o) starts.emplace_back(update->operand(o));
    const Expr u = update->operand(1);
    const Ints& sizes = u.shape().dims();
    const Expr flag = i->operand(0), there = DynamicSliceOf(x, starts, sizes);
    const Expr flags = flag.shape().rank() == 0 ? flag : DynamicSliceOf(flag, starts, sizes);
    return UpdateOf(x, k == 1 ? SelectExpr(flags, u, there) : SelectExpr(flags, there, u), starts).get();
  }
  return nullptr;
}

#define UPDATE "u = $T[2,3] slice(q), slice={[0:2], [0:3]}\n n = s32[] constant(1)\n "

const Rule kRules[] = {
    {"select-by-not",
     {Opcode::Select},
     kAllTypes,
     Numerics::Exact,
     "n = pred[4,6] not(k)\n ROOT r = $T[4,6] select(n, p, q)",
     "ROOT r = $T[4,6] select(k, p, q)",
     [](Instruction* i) {
       Instruction* n = i->operand(0);
       return n->Is(Opcode::Not) ? Over(i, {n->operand(0), i->operand(2), i->operand(1)}) : nullptr;
     }},
    {"select-flags",
     {Opcode::Select},
     kPred,
     Numerics::Exact,
     "f = pred[] constant(false)\n a = pred[4,6] broadcast(f), dimensions={}\n t = pred[] constant(true)\n"
     " b = pred[4,6] broadcast(t), dimensions={}\n ROOT r = pred[4,6] select(k, a, b)",
     "f = pred[] constant(false)\n a = pred[4,6] broadcast(f), dimensions={}\n ROOT r = pred[4,6] select(k, a, p)",
     BetweenFlags},
    {"select-compared-flags",
     {Opcode::Select},
     kPred,
     Numerics::Exact,
     "c = pred[4,6] compare(p, q), direction=GE\n ROOT r = pred[4,6] select(c, p, q)",
     "c = pred[4,6] compare(p, q), direction=GE\n ROOT r = pred[4,6] select(c, q, p)",
     BetweenCompared},
    {"select-of-update",
     {Opcode::Select},
     kAllTypes,
     Numerics::Exact,
     UPDATE "d = $T[4,6] dynamic-update-slice(p, u, n, n)\n ROOT r = $T[4,6] select(k, p, d)",
     UPDATE "d = $T[4,6] dynamic-update-slice(q, u, n, n)\n ROOT r = $T[4,6] select(k, p, d)",
     OfUpdate},
};

}  // namespace

absl::Span<const Rule> SelectRules() { return kRules; }

}  // namespace kiln
