#include "compiler/passes/loops/trip_search.h"

#include <algorithm>
#include <set>

#include "compiler/eval/evaluator.h"
#include "compiler/passes/loops/while_state.h"

namespace kiln {
namespace {

using State = std::vector<std::optional<Literal>>;

bool IsElement(const Instruction* i) { return i->Is(Opcode::GetTupleElement) && i->operand(0)->Is(Opcode::Parameter); }

bool IsNumber(const Shape& s) { return s.IsScalar() && (IsIntegral(s.type()) || s.type() == PrimitiveType::Pred); }

// What an element is computed from: scalar integers and predicates, operands first; nothing if there is more to it.
std::optional<std::vector<const Instruction*>> ScalarsBehind(const Instruction* root) {
  constexpr size_t kMost = 64;
  std::vector<const Instruction*> order, open = {root};
  absl::flat_hash_set<const Instruction*> begun, done;
  while (!open.empty()) {
    const Instruction* i = open.back();
    if (done.contains(i)) {
      open.pop_back();
      continue;
    }
    const bool leaf = IsElement(i) || i->Is(Opcode::Constant);
    if (!IsNumber(i->shape()) || order.size() == kMost || (!leaf && !i->IsElementwise()) || i->HasSideEffect())
      return std::nullopt;
    if (leaf || !begun.insert(i).second) {
      open.pop_back();
      done.insert(i);
      order.push_back(i);
      continue;
    }
    for (const Instruction* o : i->operands()) open.push_back(o);
  }
  return order;
}

// The elements of the state among them.
std::set<int64_t> ElementsIn(const std::vector<const Instruction*>& scalars) {
  std::set<int64_t> out;
  for (const Instruction* i : scalars)
    if (IsElement(i)) out.insert(*i->attrs().tuple_index);
  return out;
}

std::optional<Literal> ValueOf(const Instruction* root, const State& state) {
  const auto scalars = ScalarsBehind(root);
  if (!scalars) return std::nullopt;
  absl::flat_hash_map<const Instruction*, Literal> values;
  for (const Instruction* i : *scalars) {
    if (i->Is(Opcode::Constant)) {
      values[i] = i->literal();
    } else if (IsElement(i)) {
      const size_t k = static_cast<size_t>(*i->attrs().tuple_index);
      if (k >= state.size() || !state[k]) return std::nullopt;
      values[i] = *state[k];
    } else {
      std::vector<const Literal*> operands;
      for (const Instruction* o : i->operands()) operands.push_back(&values.at(o));
      absl::StatusOr<Literal> value = EvaluateInstruction(*i, operands);
      if (!value.ok()) return std::nullopt;
      values[i] = std::move(*value);
    }
  }
  return values.at(root);
}

// The elements that decide how often the loop runs, with those that they are made of; empty if more than numbers does.
std::set<int64_t> Deciding(const Instruction* loop) {
  const Computation *body = *loop->attrs().body, *condition = *loop->attrs().condition;
  const auto asked = ScalarsBehind(condition->root());
  if (!asked) return {};
  std::set<int64_t> found = ElementsIn(*asked);
  std::vector<int64_t> open(found.begin(), found.end());
  while (!open.empty()) {
    const auto behind = ScalarsBehind(body->root()->operand(open.back()));
    open.pop_back();
    if (!behind) return {};
    for (int64_t k : ElementsIn(*behind))
      if (found.insert(k).second) open.push_back(k);
  }
  return found;
}

State Next(const Instruction* loop, const std::set<int64_t>& deciding, const State& state) {
  State next(state.size());
  for (int64_t k : deciding) next[static_cast<size_t>(k)] = ValueOf((*loop->attrs().body)->root()->operand(k), state);
  return next;
}

std::optional<bool> GoesOn(const Instruction* loop, const State& state) {
  const std::optional<Literal> answer = ValueOf((*loop->attrs().condition)->root(), state);
  return answer ? std::optional(answer->Get(0).i != 0) : std::nullopt;
}

}  // namespace

std::optional<int64_t> CountTrips(const Instruction* loop, int64_t most) {
  if (!HasFlatBodies(loop) || !loop->operand(0)->Is(Opcode::Tuple)) return std::nullopt;
  const std::set<int64_t> deciding = Deciding(loop);
  if (deciding.empty()) return std::nullopt;
  State state(loop->shape().tuple().size());
  for (int64_t k : deciding) {
    state[static_cast<size_t>(k)] = ValueOf(InitOf(loop, k), {});
    if (!state[static_cast<size_t>(k)]) return std::nullopt;
  }
  for (int64_t trips = 0; trips <= most; ++trips) {
    const std::optional<bool> on = GoesOn(loop, state);
    if (!on) return std::nullopt;
    if (!*on) return trips;
    state = Next(loop, deciding, state);
  }
  return std::nullopt;
}

bool RunsAtMostOnce(const Instruction* loop) {
  if (!HasFlatBodies(loop)) return false;
  if (loop->operand(0)->Is(Opcode::Tuple)) {
    if (const auto v = FindInduction(loop); v && v->trips <= 1) return true;
    if (CountTrips(loop, 1)) return true;
  }
  const std::set<int64_t> deciding = Deciding(loop);
  return !deciding.empty() && GoesOn(loop, Next(loop, deciding, State(loop->shape().tuple().size()))) == false;
}

int64_t DecidingElement(const Instruction* loop) {
  if (!HasFlatBodies(loop)) return -1;
  const std::set<int64_t> deciding = Deciding(loop);
  if (deciding.size() != 1) return -1;
  const auto next = ScalarsBehind((*loop->attrs().body)->root()->operand(*deciding.begin()));
  return next && ElementsIn(*next).size() == 1 ? *deciding.begin() : -1;
}

}  // namespace kiln
