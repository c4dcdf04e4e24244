// Random loops, choices, calls and tuples; their bodies are random programs over what is handed to them.
#include "tests/random/growth.h"

namespace kiln {
namespace {

// Values of the calling computation, nested as a random tuple: parts, then a tuple of the rest.
Instruction* Nest(Growth& g, Computation* c, const std::vector<Expr>& values) {
  std::vector<Instruction*> parts;
  std::vector<Shape> shapes;
  for (size_t k = 0; k < values.size(); ++k) {
    Instruction* part = values[k].get();
    if (k > 0 && k + 1 < values.size() && g.Chance(40)) {
      part = Nest(g, c, {values.begin() + static_cast<int64_t>(k), values.end()});
      k = values.size();
    }
    parts.push_back(part);
    shapes.push_back(part->shape());
  }
  return c->Add(Opcode::Tuple, Shape::Tuple(shapes), parts);
}

// The array leaves of a tuple, in order.
void Unnest(Expr tuple, std::vector<Expr>* out) {
  for (size_t k = 0; k < tuple.shape().tuple().size(); ++k) {
    Expr part = PartOf(tuple, static_cast<int64_t>(k));
    if (part.shape().IsTuple())
      Unnest(part, out);
    else
      out->push_back(part);
  }
}

// A tuple of the structure of `like` from leaves in order.
Instruction* Renest(Computation* c, const Shape& like, const std::vector<Expr>& leaves, size_t* next) {
  if (!like.IsTuple()) return leaves[(*next)++].get();
  std::vector<Instruction*> parts;
  for (const Shape& s : like.tuple()) parts.push_back(Renest(c, s, leaves, next));
  return c->Add(Opcode::Tuple, like, parts);
}

// Runs `body` with another pool, one level deeper.
template <typename Fn>
void Within(Growth& g, std::vector<Expr> pool, bool diverging, const Fn& body) {
  std::swap(g.pool, pool);
  const bool before = g.diverging;
  g.diverging = before || diverging;
  ++g.depth;
  body();
  --g.depth;
  g.diverging = before;
  std::swap(g.pool, pool);
}

std::vector<Expr> Some(Growth& g, Expr x) {
  std::vector<Expr> out = {g.Tame(x)};
  const int64_t more = g.Between(0, 3);
  for (int64_t k = 0; k < more; ++k) out.push_back(g.Chance(20) ? out[0] : g.Tame(g.Any()));
  return out;
}

// `x` with a part of it replaced: in its place, where nobody else needs the old elements.
Expr Updated(Growth& g, Computation* c, Expr x) {
  Ints extents = x.shape().dims();
  for (int64_t& d : extents) d = g.Between(std::min<int64_t>(1, d), d);
  std::vector<Expr> starts;
  for (size_t d = 0; d < extents.size(); ++d) starts.push_back(g.Index(c));
  return UpdateOf(x, g.Fit(c, x.type(), extents), starts);
}

std::optional<Expr> Loop(Growth& g, Computation* c, Expr x) {
  if (g.depth >= 2) return std::nullopt;
  std::vector<Expr> values = Some(g, x);
  values.insert(values.begin(), IntegerIn(c, PrimitiveType::S32, 0));
  Instruction* init = Nest(g, c, values);
  Computation* again = g.module->AddComputation("again");
  std::vector<Expr> state;
  Unnest(again->AddParameter(0, init->shape(), "state"), &state);
  again->set_root(CompareExpr(Direction::LT, state[0], IntegerIn(again, PrimitiveType::S32, g.Between(0, 3))).get());
  Computation* body = g.module->AddComputation("body");
  std::vector<Expr> now, next;
  Unnest(body->AddParameter(0, init->shape(), "state"), &now);
  Within(g, now, false, [&] {
    g.Grow(body, 2 + g.Pick(6));
    next.push_back(now[0] + 1);
    // Values that stay, move to another place, or are computed.
    for (size_t k = 1; k < now.size(); ++k) {
      Expr other = now[1 + g.Pick(now.size() - 1)];
      if (g.Chance(15))
        next.push_back(now[k]);
      else if (g.Chance(40) && other.shape() == now[k].shape())
        next.push_back(g.Chance(50) ? Updated(g, body, other) : other);
      else
        next.push_back(g.Fit(body, now[k].type(), now[k].shape().dims()));
    }
  });
  size_t at = 0;
  body->set_root(Renest(body, init->shape(), next, &at));
  Instruction* loop = c->Add(Opcode::While, init->shape(), {init});
  loop->mutable_attrs().condition = again;
  loop->mutable_attrs().body = body;
  std::vector<Expr> results;
  Unnest(loop, &results);
  return results[1 + g.Pick(results.size() - 1)];
}

std::optional<Expr> Choice(Growth& g, Computation* c, Expr x) {
  if (g.depth >= 2) return std::nullopt;
  const bool indexed = g.Chance(40);
  const int64_t branches = indexed ? g.Between(1, 3) : 2;
  Expr which = indexed ? g.Index(c) : g.Fit(c, PrimitiveType::Pred, {});
  std::vector<Instruction*> operands = {which.get()};
  std::vector<Computation*> bodies;
  std::vector<Expr> outputs = {x};
  if (g.Chance(40)) outputs.push_back(g.Any());
  std::vector<Shape> shapes;
  for (const Expr& e : outputs) shapes.push_back(Shape::Array(e.type(), e.shape().dims()));
  for (int64_t k = 0; k < branches; ++k) {
    std::vector<Expr> values = Some(g, x);
    operands.push_back(Nest(g, c, values));
    Computation* branch = g.module->AddComputation("branch");
    std::vector<Expr> given;
    Unnest(branch->AddParameter(0, operands.back()->shape(), "given"), &given);
    Within(g, given, true, [&] {
      g.Grow(branch, 1 + g.Pick(5));
      std::vector<Expr> results;
      for (const Shape& s : shapes) results.push_back(g.Fit(branch, s.type(), s.dims()));
      branch->set_root(shapes.size() == 1 ? results[0].get() : TupleOf(results));
    });
    bodies.push_back(branch);
  }
  Instruction* i = c->Add(Opcode::Conditional, shapes.size() == 1 ? shapes[0] : Shape::Tuple(shapes), operands);
  if (indexed) {
    i->mutable_attrs().branch_computations = bodies;
  } else {
    i->mutable_attrs().true_computation = bodies[0];
    i->mutable_attrs().false_computation = bodies[1];
  }
  return shapes.size() == 1 ? Expr(i) : PartOf(i, g.Between(0, 1));
}

std::optional<Expr> Called(Growth& g, Computation* c, Expr x) {
  if (g.depth >= 2) return std::nullopt;
  std::vector<Instruction*> operands;
  Computation* body = g.module->AddComputation("called");
  std::vector<Expr> given;
  for (const Expr& e : Some(g, x)) {
    given.emplace_back(body->AddParameter(static_cast<int64_t>(given.size()), e.shape(), "given"));
    operands.push_back(e.get());
  }
  Within(g, given, false, [&] {
    g.Grow(body, 1 + g.Pick(5));
    body->set_root(g.Fit(body, x.type(), x.shape().dims()).get());
  });
  Instruction* i = c->Add(Opcode::Call, body->root()->shape(), operands);
  i->mutable_attrs().to_apply = body;
  return i;
}

std::optional<Expr> Held(Growth& g, Computation* c, Expr x) {
  Instruction* tuple = Nest(g, c, Some(g, x));
  Instruction* i = c->Add(Opcode::OptimizationBarrier, tuple->shape(), {tuple});
  std::vector<Expr> parts;
  Unnest(i, &parts);
  return parts[g.Pick(parts.size())];
}

}  // namespace

std::vector<Maker> ControlMakers() { return {{5, Loop, true}, {4, Choice, true}, {2, Called, true}, {2, Held, true}}; }

}  // namespace kiln
