// A loop starts the next iteration's collective in this one, so that it can travel while this one computes.
//
// What moves: all-gather, all-reduce and reduce-scatter of what depends on the induction variable and on values that
// the loop does not change (the weights of layer i, say). The first goes before the loop, each iteration makes its
// successor's and carries it in the state, and the last iteration, which has no successor, follows behind the loop.
#include <functional>

#include "absl/container/flat_hash_set.h"
#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/loops/carried_exchange.h"
#include "compiler/passes/loops/while_state.h"
#include "compiler/passes/simplify/inline_body.h"

namespace kiln {
namespace {

bool Moves(const Instruction* i) {
  return (i->Is(Opcode::AllGather) || i->Is(Opcode::AllReduce) || i->Is(Opcode::ReduceScatter)) &&
         i->shape().IsArray() && i->control_predecessors().empty() && i->control_successors().empty();
}

// What `collective` is made of, down to the loop's state; empty if that changes in ways that nobody foresees.
Chain ChainOf(const Instruction* loop, Instruction* collective, int64_t counter) {
  const Computation* body = *loop->attrs().body;
  Chain chain;
  absl::flat_hash_set<Instruction*> seen;
  bool counts = false;
  std::function<bool(Instruction*)> visit = [&](Instruction* i) {
    if (!seen.insert(i).second) return true;
    if (i->Is(Opcode::GetTupleElement) && i->operand(0) == body->parameter(0)) {
      const int64_t k = *i->attrs().tuple_index;
      counts = counts || k == counter;
      if (k != counter && !IsInvariant(loop, k)) return false;
      chain.push_back(i);
      return true;
    }
    const bool plain = (i == collective || !i->HasSideEffect()) && !i->HasTrait(Async) && !i->Is(Opcode::Parameter) &&
                       !i->Is(Opcode::Rng) && !i->Is(Opcode::While) && !i->Is(Opcode::Conditional) &&
                       !i->Is(Opcode::CustomCall) && i->shape().IsArray();
    if (!plain) return false;
    for (Instruction* o : i->operands())
      if (!visit(o)) return false;
    chain.push_back(i);
    return true;
  };
  if (!visit(collective) || !counts) return {};
  return chain;
}

std::vector<Chain> Chains(const Instruction* loop, int64_t counter) {
  std::vector<Chain> out;
  for (Instruction* i : (*loop->attrs().body)->PostOrder()) {
    if (!Moves(i)) continue;
    Chain chain = ChainOf(loop, i, counter);
    if (!chain.empty()) out.push_back(std::move(chain));
  }
  return out;
}

// Nothing but collectives reaches out of the loop, and its state is taken apart and put together in the open.
bool Served(const Instruction* loop) {
  if (!loop->Is(Opcode::While) || !HasFlatState(loop)) return false;
  for (const Computation* c : {*loop->attrs().body, *loop->attrs().condition})
    for (const auto& i : c->instructions())
      if (i->HasSideEffect() && !i->HasTrait(Collective)) return false;
  return true;
}

void PipelineLoop(Instruction* loop, const Induction& count) {
  Computation* c = loop->parent();
  const auto elements = static_cast<int64_t>(loop->shape().tuple().size());
  std::vector<Instruction*> first;
  for (const Chain& chain : Chains(loop, count.index))
    first.push_back(CopyChain(chain, c, [&](int64_t k) { return InitOf(loop, k); }));
  loop = ExtendLoop(loop, first);
  Computation *body = *loop->attrs().body, *condition = *loop->attrs().condition;
  const std::vector<Chain> chains = Chains(loop, count.index);
  for (size_t k = 0; k < chains.size(); ++k)
    chains[k].back()->ReplaceAllUsesWith(PartOf(body->parameter(0), elements + static_cast<int64_t>(k)).get());

  // The last iteration, without a successor to start.
  const std::vector<Instruction*> readers = loop->users();
  Instruction* last = InlineBody(c, body, {loop}, loop);
  for (Instruction* u : readers) {
    u->ReplaceAllUsesWith(last->operand(*u->attrs().tuple_index));
    c->Remove(u);
  }

  std::vector<Instruction*> next = body->root()->operands();
  for (size_t k = 0; k < chains.size(); ++k)
    next[static_cast<size_t>(elements) + k] = CopyChain(chains[k], body, [&](int64_t e) {
      return e == count.index ? body->root()->operand(e) : PartOf(body->parameter(0), e).get();
    });
  Instruction* old = body->root();
  body->set_root(body->Add(Opcode::Tuple, loop->shape(), next));
  body->Remove(old);
  const PrimitiveType t = loop->shape().tuple()[static_cast<size_t>(count.index)].type();
  Expr counter = PartOf(condition->parameter(0), count.index);
  condition->set_root(
      CompareExpr(Direction::NE, counter, IntegerIn(condition, t, count.init + count.step * (count.trips - 1))).get());
}

}  // namespace

absl::StatusOr<bool> CollectivePipeliner(Module& m, PassContext& ctx) {
  bool changed = false;
  std::vector<Instruction*> loops;
  for (Computation* c : m.PostOrder())
    for (Instruction* i : c->PostOrder())
      if (Served(i)) loops.push_back(i);
  for (Instruction* loop : loops) {
    const std::optional<Induction> count = FindInduction(loop);
    if (!count || count->trips < 2 || Chains(loop, count->index).empty() || !ctx.Take()) continue;
    PipelineLoop(loop, *count);
    changed = true;
  }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
