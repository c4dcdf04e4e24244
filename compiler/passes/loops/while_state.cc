#include "compiler/passes/loops/while_state.h"

#include <algorithm>

namespace kiln {
namespace {

size_t Elements(const Instruction* loop) { return loop->shape().tuple().size(); }

bool ReadByElement(const Instruction* state) {
  return std::all_of(state->users().begin(), state->users().end(),
                     [](const Instruction* u) { return u->Is(Opcode::GetTupleElement); }) &&
         !state->IsRoot();
}

std::optional<int64_t> ConstantInteger(const Instruction* i) {
  while (i->operand_count() == 1) {
    if (i->Is(Opcode::Copy) || i->Is(Opcode::Bitcast))
      i = i->operand(0);
    else if (i->Is(Opcode::GetTupleElement) && i->operand(0)->Is(Opcode::Tuple))
      i = i->operand(0)->operand(*i->attrs().tuple_index);
    else
      break;
  }
  if (!i->Is(Opcode::Constant) || !i->shape().IsScalar() || !IsIntegral(i->shape().type())) return std::nullopt;
  return i->literal().Get(0).i;
}

// The constant behind `i` in the body or condition: one of its own, or an invariant element that starts as one.
std::optional<int64_t> ConstantInLoop(const Instruction* loop, const Instruction* i) {
  if (i->Is(Opcode::GetTupleElement) && i->operand(0)->Is(Opcode::Parameter)) {
    const int64_t k = *i->attrs().tuple_index;
    if (!IsInvariant(loop, k) || !InitOf(loop, k)) return std::nullopt;
    return ConstantInteger(InitOf(loop, k));
  }
  return ConstantInteger(i);
}

void RemoveDead(Computation* c) {
  for (bool again = true; again;) {
    again = false;
    std::vector<Instruction*> order = c->PostOrder();
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      Instruction* i = *it;
      if (!i->users().empty() || i->IsRoot() || i->Is(Opcode::Parameter) || i->HasSideEffect()) continue;
      c->Remove(i);
      again = true;
    }
  }
}

// Everything that `i` is computed from.
void Behind(const Instruction* i, absl::flat_hash_set<const Instruction*>* out) {
  std::vector<const Instruction*> work = {i};
  while (!work.empty()) {
    const Instruction* x = work.back();
    work.pop_back();
    if (!out->insert(x).second) continue;
    for (const Instruction* o : x->operands()) work.push_back(o);
  }
}

// Puts `with` in place of `loop`, whose first elements have the places `place` in it (-1: nobody reads them).
void TakePlace(Instruction* loop, Instruction* with, const std::vector<int64_t>& place) {
  Computation* c = loop->parent();
  for (Instruction* u : std::vector<Instruction*>(loop->users())) {
    const int64_t k = *u->attrs().tuple_index;
    if (place[static_cast<size_t>(k)] < 0) {
      if (u->users().empty() && !u->IsRoot()) c->Remove(u);
      continue;
    }
    Instruction* e = c->Add(Opcode::GetTupleElement, u->shape(), {with});
    e->mutable_attrs().tuple_index = place[static_cast<size_t>(k)];
    u->ReplaceAllUsesWith(e);
    c->Remove(u);
  }
  c->Remove(loop);
}

}  // namespace

bool HasFlatState(const Instruction* loop) {
  if (!loop->Is(Opcode::While) || !loop->shape().IsTuple() || !loop->control_predecessors().empty() ||
      !loop->control_successors().empty() || !loop->operand(0)->Is(Opcode::Tuple))
    return false;
  for (const Shape& s : loop->shape().tuple())
    if (!s.IsArray()) return false;
  const Computation *body = *loop->attrs().body, *condition = *loop->attrs().condition;
  return ReadByElement(loop) && ReadByElement(body->parameter(0)) && ReadByElement(condition->parameter(0)) &&
         body->root()->Is(Opcode::Tuple);
}

bool HasFlatBodies(const Instruction* loop) {
  if (!loop->Is(Opcode::While) || !loop->shape().IsTuple()) return false;
  const Computation *body = *loop->attrs().body, *condition = *loop->attrs().condition;
  return ReadByElement(body->parameter(0)) && ReadByElement(condition->parameter(0)) && body->root()->Is(Opcode::Tuple);
}

bool HasNoControlEdges(const Computation* body, const Computation* condition) {
  for (const Computation* c : {body, condition})
    for (const auto& i : c->instructions())
      if (!i->control_predecessors().empty()) return false;
  return true;
}

// The verifier bounds how deep calls nest.
bool PureComputations::Contains(const Computation* c) {
  if (const auto known = known_.find(c); known != known_.end()) return known->second;
  bool pure = true;
  for (const auto& i : c->instructions()) {
    const bool control = i->Is(Opcode::While) || i->Is(Opcode::Conditional) || i->Is(Opcode::Call);
    pure = i->control_predecessors().empty() && (control || !i->HasSideEffect());
    for (const Computation* callee : i->called()) pure = pure && Contains(callee);
    if (!pure) break;
  }
  return known_[c] = pure;
}

bool IsPlainLoop(const Instruction* loop, PureComputations* pure) {
  return HasFlatState(loop) && pure->Contains(*loop->attrs().body) && pure->Contains(*loop->attrs().condition);
}

bool IsInvariant(const Instruction* loop, int64_t k) {
  const Computation* body = *loop->attrs().body;
  if (!body->root()->Is(Opcode::Tuple)) return false;
  const Instruction* e = body->root()->operand(k);
  return e->Is(Opcode::GetTupleElement) && e->operand(0) == body->parameter(0) && *e->attrs().tuple_index == k;
}

Instruction* InitOf(const Instruction* loop, int64_t k) {
  return loop->operand(0)->Is(Opcode::Tuple) ? loop->operand(0)->operand(k) : nullptr;
}

std::vector<Instruction*> ElementReaders(const Instruction* state, int64_t k) {
  std::vector<Instruction*> out;
  for (Instruction* u : state->users())
    if (u->Is(Opcode::GetTupleElement) && *u->attrs().tuple_index == k) out.push_back(u);
  return out;
}

std::optional<Induction> FindInduction(const Instruction* loop) {
  const Computation *body = *loop->attrs().body, *condition = *loop->attrs().condition;
  const Instruction* test = condition->root();
  if (!loop->shape().IsTuple() || !test->Is(Opcode::Compare) || !body->root()->Is(Opcode::Tuple)) return std::nullopt;
  const Direction direction = *test->attrs().direction;
  for (int side = 0; side < 2; ++side) {
    const Instruction* e = test->operand(side);
    if (!e->Is(Opcode::GetTupleElement) || !e->operand(0)->Is(Opcode::Parameter)) continue;
    Induction v;
    v.index = *e->attrs().tuple_index;
    const std::optional<int64_t> limit = ConstantInLoop(loop, test->operand(1 - side));
    const Instruction* start = InitOf(loop, v.index);
    const std::optional<int64_t> init = start ? ConstantInteger(start) : std::nullopt;
    if (!limit || !init || IsInvariant(loop, v.index)) continue;
    const Instruction* next = body->root()->operand(v.index);
    const bool down = next->Is(Opcode::Subtract);
    if (!down && !next->Is(Opcode::Add)) continue;
    for (int p = 0; p < 2; ++p) {
      const Instruction* own = next->operand(p);
      if (!own->Is(Opcode::GetTupleElement) || own->operand(0) != body->parameter(0) ||
          *own->attrs().tuple_index != v.index || (down && p == 1))
        continue;
      const std::optional<int64_t> step = ConstantInLoop(loop, next->operand(1 - p));
      if (!step || *step == 0) continue;
      v.init = *init;
      v.step = down ? -*step : *step;
      // As value DIRECTION limit.
      const Direction d = side == 0 ? direction : Mirrored(direction);
      __int128 distance = static_cast<__int128>(*limit) - v.init;
      const __int128 by = v.step;
      if (d == Direction::LE) distance += 1;
      if (d == Direction::GE) distance -= 1;
      if (d == Direction::NE && distance % by != 0) return std::nullopt;
      const bool up = d == Direction::LT || d == Direction::LE || (d == Direction::NE && by > 0);
      const bool falls = d == Direction::GT || d == Direction::GE || (d == Direction::NE && by < 0);
      if (!up && !falls) return std::nullopt;
      if (up ? distance <= 0 : distance >= 0) {
        if (d == Direction::NE && distance != 0) return std::nullopt;  // only after a wrap
        v.trips = 0;
        return v;
      }
      if (up != (by > 0)) return std::nullopt;  // runs until it wraps
      const __int128 trips = (distance + by - (by > 0 ? 1 : -1)) / by;
      // The last value must still fit the type.
      const int64_t bits = BitWidth(start->shape().type());
      const __int128 last = v.init + trips * by, one = 1;
      const bool is_signed = IsSigned(start->shape().type());
      const __int128 most = is_signed ? (one << (bits - 1)) - 1 : (one << bits) - 1;
      if (last > most || last < (is_signed ? -most - 1 : 0) || trips > INT64_MAX) return std::nullopt;
      v.trips = static_cast<int64_t>(trips);
      return v;
    }
  }
  return std::nullopt;
}

void ExposeState(Instruction* loop) {
  Computation* c = loop->parent();
  const auto element = [&](Instruction* tuple, size_t k) {
    Instruction* e = c->Add(Opcode::GetTupleElement, tuple->shape().tuple()[k], {tuple});
    e->mutable_attrs().tuple_index = static_cast<int64_t>(k);
    return e;
  };
  const auto elements = [&](Instruction* tuple) {
    std::vector<Instruction*> out;
    for (size_t k = 0; k < Elements(loop); ++k) out.push_back(element(tuple, k));
    return c->Add(Opcode::Tuple, loop->shape(), out);
  };
  if (!loop->operand(0)->Is(Opcode::Tuple)) loop->ReplaceOperand(0, elements(loop->operand(0)));
  if (ReadByElement(loop)) return;
  const std::vector<Instruction*> users = loop->users();
  Instruction* whole = elements(loop);
  for (Instruction* u : users)
    if (!u->Is(Opcode::GetTupleElement)) loop->ReplaceUseWith(u, whole);
  if (loop->IsRoot()) c->set_root(whole);
}

std::vector<bool> LiveElements(const Instruction* loop) {
  std::vector<bool> live(Elements(loop), false);
  std::vector<int64_t> work;
  const auto mark = [&](int64_t k) {
    if (live[static_cast<size_t>(k)]) return;
    live[static_cast<size_t>(k)] = true;
    work.push_back(k);
  };
  if (!ReadByElement(loop))
    for (size_t k = 0; k < live.size(); ++k) mark(static_cast<int64_t>(k));
  else
    for (const Instruction* u : loop->users())
      if (!u->users().empty() || u->IsRoot()) mark(*u->attrs().tuple_index);
  const Computation *body = *loop->attrs().body, *condition = *loop->attrs().condition;
  for (const Instruction* u : condition->parameter(0)->users())
    if (!u->users().empty() || u->IsRoot()) mark(*u->attrs().tuple_index);
  absl::flat_hash_set<const Instruction*> shown;
  for (const auto& i : body->instructions())
    if (i->HasSideEffect()) Behind(i.get(), &shown);
  for (const Instruction* u : body->parameter(0)->users())
    if (shown.contains(u)) mark(*u->attrs().tuple_index);
  while (!work.empty()) {
    const int64_t k = work.back();
    work.pop_back();
    absl::flat_hash_set<const Instruction*> behind;
    Behind(body->root()->operand(k), &behind);
    for (const Instruction* u : body->parameter(0)->users())
      if (behind.contains(u)) mark(*u->attrs().tuple_index);
  }
  return live;
}

Instruction* ShrinkLoop(Instruction* loop, const std::vector<bool>& kept) {
  Computation* c = loop->parent();
  Module* m = c->module();
  std::vector<int64_t> place(kept.size(), -1);
  std::vector<Shape> shapes;
  std::vector<Instruction*> inits;
  for (size_t k = 0; k < kept.size(); ++k) {
    if (!kept[k]) continue;
    place[k] = static_cast<int64_t>(shapes.size());
    shapes.push_back(loop->shape().tuple()[k]);
    inits.push_back(InitOf(loop, static_cast<int64_t>(k)));
  }
  const Shape state = Shape::Tuple(shapes);
  Computation *body = m->CloneComputation(*loop->attrs().body),
              *condition = m->CloneComputation(*loop->attrs().condition);
  std::vector<Instruction*> next;
  for (size_t k = 0; k < kept.size(); ++k)
    if (kept[k]) next.push_back(body->root()->operand(static_cast<int64_t>(k)));
  Instruction* old = body->root();
  body->set_root(body->Add(Opcode::Tuple, state, next));
  body->Remove(old);
  for (Computation* f : {body, condition}) {
    RemoveDead(f);
    f->parameter(0)->mutable_shape() = state;
    for (Instruction* u : f->parameter(0)->users())
      u->mutable_attrs().tuple_index = place[static_cast<size_t>(*u->attrs().tuple_index)];
  }
  Instruction* n = c->AddClone(loop, state, {c->Add(Opcode::Tuple, state, inits)});
  n->mutable_attrs().body = body;
  n->mutable_attrs().condition = condition;
  TakePlace(loop, n, place);
  return n;
}

Instruction* ExtendLoop(Instruction* loop, const std::vector<Instruction*>& values) {
  Computation* c = loop->parent();
  Module* m = c->module();
  std::vector<Instruction*> inits = loop->operand(0)->operands();
  std::vector<Shape> shapes = loop->shape().tuple();
  std::vector<int64_t> place;
  for (size_t k = 0; k < shapes.size(); ++k) place.push_back(static_cast<int64_t>(k));
  for (Instruction* v : values) {
    inits.push_back(v);
    shapes.push_back(v->shape());
  }
  const Shape state = Shape::Tuple(shapes);
  Computation *body = m->CloneComputation(*loop->attrs().body),
              *condition = m->CloneComputation(*loop->attrs().condition);
  body->parameter(0)->mutable_shape() = state;
  condition->parameter(0)->mutable_shape() = state;
  std::vector<Instruction*> next = body->root()->operands();
  for (size_t k = next.size(); k < shapes.size(); ++k) {
    next.push_back(body->Add(Opcode::GetTupleElement, shapes[k], {body->parameter(0)}));
    next.back()->mutable_attrs().tuple_index = static_cast<int64_t>(k);
  }
  Instruction* old = body->root();
  body->set_root(body->Add(Opcode::Tuple, state, next));
  body->Remove(old);
  Instruction* n = c->AddClone(loop, state, {c->Add(Opcode::Tuple, state, inits)});
  n->mutable_attrs().body = body;
  n->mutable_attrs().condition = condition;
  TakePlace(loop, n, place);
  return n;
}

}  // namespace kiln
