#include "compiler/passes/loops/carried_exchange.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/hlo/graph_builder.h"

namespace kiln {
namespace {

bool ReadsState(const Computation* body, const Instruction* i) {
  return i->Is(Opcode::GetTupleElement) && i->operand(0) == body->parameter(0);
}

// What an element of a barrier's result is; null: `i` is none.
Instruction* BehindBarrier(const Instruction* i) {
  if (!i->Is(Opcode::GetTupleElement) || !i->operand(0)->Is(Opcode::OptimizationBarrier)) return nullptr;
  const Instruction* tuple = i->operand(0)->operand(0);
  return tuple->Is(Opcode::Tuple) ? tuple->operand(*i->attrs().tuple_index) : nullptr;
}

// The counter, what the loop does not change, and plain operations on them. Barriers keep operations from merging,
// which copies of other iterations do not do.
bool Visit(const Instruction* loop, Instruction* i, const Induction& count,
           absl::flat_hash_set<const Instruction*>* seen, Chain* chain) {
  if (!seen->insert(i).second) return true;
  const Computation* body = *loop->attrs().body;
  if (ReadsState(body, i)) {
    const int64_t k = *i->attrs().tuple_index;
    if (k != count.index && !IsInvariant(loop, k)) return false;
    chain->push_back(i);
    return true;
  }
  if (Instruction* before = BehindBarrier(i)) {
    if (!Visit(loop, before, count, seen, chain)) return false;
    chain->push_back(i);
    return true;
  }
  const bool plain = !i->HasSideEffect() && !i->HasTrait(Async) && !i->Is(Opcode::Parameter) && !i->Is(Opcode::Rng) &&
                     !i->Is(Opcode::CustomCall) && i->shape().IsArray();
  if (!plain) return false;
  for (Instruction* o : i->operands())
    if (!Visit(loop, o, count, seen, chain)) return false;
  chain->push_back(i);
  return true;
}

Chain ChainBefore(const Instruction* loop, Instruction* exchange, const Induction& count) {
  if (!exchange->shape().IsArray()) return {};
  Chain chain;
  absl::flat_hash_set<const Instruction*> seen;
  for (Instruction* o : exchange->operands())
    if (!Visit(loop, o, count, &seen, &chain)) return {};
  chain.push_back(exchange);
  return chain;
}

// What is made of an exchange may be made an iteration later if it takes little time.
bool IsLight(const Instruction* i) {
  const bool moves = i->Is(Opcode::Broadcast) || i->Is(Opcode::DynamicSlice) || i->Is(Opcode::DynamicUpdateSlice) ||
                     i->Is(Opcode::Reshape) || i->Is(Opcode::Slice) || i->Is(Opcode::Transpose);
  return moves || i->Is(Opcode::GetTupleElement) || (i->IsElementwise() && i->shape().IsArray());
}

// All that is made of `exchange`, in order; empty if that is more than what `CarriedExchange::is_stored` says.
Chain TailOf(const Instruction* loop, const Instruction* exchange, const Induction& count,
             const std::vector<Instruction*>& order) {
  const Instruction* root = (*loop->attrs().body)->root();
  Chain tail;
  absl::flat_hash_set<const Instruction*> made = {exchange};
  for (Instruction* i : order) {
    const bool uses =
        std::any_of(i->operands().begin(), i->operands().end(), [&](const Instruction* o) { return made.contains(o); });
    if (!uses || i == root) continue;
    if (!IsLight(i)) return {};
    const std::optional<int64_t> stored = StoredElement(loop, i);
    if (stored.has_value() != i->Is(Opcode::DynamicUpdateSlice)) return {};
    for (int64_t o = 0; o < i->operand_count(); ++o) {
      const bool target = stored && o == 0;
      if (target ? made.contains(i->operand(0))
                 : !made.contains(i->operand(o)) && !KnownChain(loop, i->operand(o), count))
        return {};
    }
    made.insert(i);
    tail.push_back(i);
    if (!stored && std::find(root->operands().begin(), root->operands().end(), i) != root->operands().end()) return {};
  }
  const bool given = std::find(root->operands().begin(), root->operands().end(), exchange) != root->operands().end();
  return given ? Chain() : tail;
}

}  // namespace

std::optional<Chain> KnownChain(const Instruction* loop, Instruction* i, const Induction& count) {
  Chain chain;
  absl::flat_hash_set<const Instruction*> seen;
  if (!Visit(loop, i, count, &seen, &chain)) return std::nullopt;
  return chain;
}

Instruction* CopyChain(const Chain& chain, Computation* c, const std::function<Instruction*(int64_t)>& element) {
  absl::flat_hash_map<const Instruction*, Instruction*> copies;
  for (const Instruction* i : chain) {
    if (const Instruction* before = BehindBarrier(i)) {
      copies[i] = copies.at(before);
      continue;
    }
    if (i->Is(Opcode::GetTupleElement)) {
      copies[i] = element(*i->attrs().tuple_index);
      continue;
    }
    std::vector<Instruction*> operands;
    for (const Instruction* o : i->operands()) operands.push_back(copies.at(o));
    copies[i] = c->AddClone(i, i->shape(), operands);
  }
  return copies.at(chain.back());
}

// Nobody else reads the element, before it is updated or after.
std::optional<int64_t> StoredElement(const Instruction* loop, const Instruction* i) {
  const Computation* body = *loop->attrs().body;
  if (!i->Is(Opcode::DynamicUpdateSlice) || !ReadsState(body, i->operand(0)) || i->users().size() != 1)
    return std::nullopt;
  const int64_t k = *i->operand(0)->attrs().tuple_index;
  const Computation* condition = *loop->attrs().condition;
  const std::vector<Instruction*> readers = ElementReaders(body->parameter(0), k);
  if (readers.size() != 1 || readers[0]->users().size() != 1 || body->root()->operand(k) != i ||
      !ElementReaders(condition->parameter(0), k).empty())
    return std::nullopt;
  return k;
}

std::vector<CarriedExchange> CarriedExchanges(const Instruction* loop, const Induction& count) {
  std::vector<CarriedExchange> out;
  const std::vector<Instruction*> order = (*loop->attrs().body)->PostOrder();
  for (Instruction* i : order) {
    if (!i->HasTrait(Collective)) continue;
    CarriedExchange x;
    x.exchange = i;
    x.before = ChainBefore(loop, i, count);
    if (x.before.empty()) x.tail = TailOf(loop, i, count, order);
    x.is_stored = !x.tail.empty();
    out.push_back(std::move(x));
  }
  return out;
}

Instruction* ZeroOf(Computation* c, const Shape& shape) {
  return BroadcastTo(Expr(c->AddConstant(Literal(Shape::Array(shape.type(), {})))), shape.dims()).get();
}

}  // namespace kiln
