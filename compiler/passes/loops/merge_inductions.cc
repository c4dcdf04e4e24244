#include "compiler/hlo/graph_builder.h"
#include "compiler/passes/loops/while_simplifications.h"
#include "compiler/passes/loops/while_state.h"

namespace kiln {
namespace {

struct Counter {
  int64_t index = 0;
  PrimitiveType type = PrimitiveType::S32;
  std::optional<int64_t> init;  // if it is a constant
  int64_t step = 0;
};

// An integer to which the body adds a constant.
std::optional<Counter> CounterAt(const Instruction* loop, int64_t k) {
  const Instruction *init = InitOf(loop, k), *body_root = (*loop->attrs().body)->root(), *next = body_root->operand(k);
  if (!init->shape().IsScalar() || !IsIntegral(init->shape().type()) || !next->Is(Opcode::Add)) return std::nullopt;
  for (int64_t p = 0; p < 2; ++p) {
    const Instruction *own = next->operand(p), *by = next->operand(1 - p);
    if (!own->Is(Opcode::GetTupleElement) || !own->operand(0)->Is(Opcode::Parameter) ||
        *own->attrs().tuple_index != k || !by->Is(Opcode::Constant))
      continue;
    Counter c{k, init->shape().type(), std::nullopt, by->literal().Get(0).i};
    if (init->Is(Opcode::Constant)) c.init = init->literal().Get(0).i;
    return c.step == 0 ? std::nullopt : std::optional(c);
  }
  return std::nullopt;
}

// What `of`, which starts at `start`, is when `base` has the value `now`. Exact in arithmetic that wraps: after n
// iterations base has grown by n * base.step, and a multiple of that is n * of.step.
Instruction* From(const Counter& base, const Counter& of, Instruction* now, Instruction* start) {
  Computation* c = now->parent();
  Expr v = now;
  const auto constant = [&](int64_t x) { return IntegerIn(c, of.type, WrapInt(of.type, x)); };
  const int64_t ratio = of.step / base.step;
  if (ratio != 1) v = v * constant(ratio);
  const uint64_t offset =
      static_cast<uint64_t>(of.init.value_or(0)) - static_cast<uint64_t>(*base.init) * static_cast<uint64_t>(ratio);
  if (WrapInt(of.type, static_cast<int64_t>(offset)) != 0) v = v + constant(static_cast<int64_t>(offset));
  return of.init ? v.get() : (v + Expr(start)).get();
}

// Every reader of the element, in `state`'s computation, computes it from `base`.
void Replace(Instruction* state, const Counter& base, const Counter& of) {
  Instruction* value = nullptr;
  const auto element = [&](int64_t k, const Shape& shape) {
    Instruction* e = state->parent()->Add(Opcode::GetTupleElement, shape, {state});
    e->mutable_attrs().tuple_index = k;
    return e;
  };
  for (Instruction* e : ElementReaders(state, of.index)) {
    if (e->users().empty() && !e->IsRoot()) continue;
    if (!value)
      value = From(base, of, element(base.index, e->shape()), of.init ? nullptr : element(of.index, e->shape()));
    e->ReplaceAllUsesWith(value);
  }
}

}  // namespace

bool MergeInductions(Instruction* loop) {
  std::vector<Counter> counters;
  for (size_t k = 0; k < loop->shape().tuple().size(); ++k)
    if (const auto c = CounterAt(loop, static_cast<int64_t>(k))) counters.push_back(*c);
  if (counters.size() < 2) return false;
  // The one that the condition compares with a constant stays: it tells how often the loop runs.
  const std::optional<Induction> known = FindInduction(loop);
  const auto divides = [](const Counter& a, const Counter& b) {
    return a.index != b.index && a.type == b.type && a.step != INT64_MIN && b.step != INT64_MIN && b.step % a.step == 0;
  };
  for (const Counter& base : counters) {
    if (!base.init || (known && base.index != known->index)) continue;
    bool changed = false;
    for (const Counter& of : counters) {
      if (!divides(base, of)) continue;
      Computation *body = *loop->attrs().body, *condition = *loop->attrs().condition;
      for (Instruction* state : {body->parameter(0), condition->parameter(0), loop}) Replace(state, base, of);
      Instruction* own = body->Add(Opcode::GetTupleElement, Shape::Scalar(of.type), {body->parameter(0)});
      own->mutable_attrs().tuple_index = of.index;
      body->root()->ReplaceOperand(of.index, own);
      changed = true;
    }
    if (changed) return true;
  }
  return false;
}

}  // namespace kiln
