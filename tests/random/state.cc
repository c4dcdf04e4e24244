// Random loops over arrays of one shape that are written in place, handed on, swapped and held twice, with choices and
// loops inside.
#include "tests/random/growth.h"

namespace kiln {
namespace {

// A row of `x`, or a part of it, replaced at a place that the step counts.
Expr Written(Growth& g, Computation* c, Expr x, Expr step, const std::vector<Expr>& state) {
  const Ints dims = x.shape().dims();
  Ints extents = dims;
  std::vector<Expr> starts;
  const size_t along = g.Pick(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    if (d == along || g.Chance(20))
      extents[d] = g.Between(std::min<int64_t>(1, dims[d]), std::min<int64_t>(2, dims[d]));
    starts.push_back(d == along ? step * static_cast<double>(g.Between(1, 2)) : IntegerIn(c, PrimitiveType::S32, 0));
  }
  Expr other = state[g.Pick(state.size())];
  std::vector<Expr> from = starts;
  if (g.Chance(50)) from[along] = from[along] + static_cast<double>(g.Between(-1, 2));
  Expr part = g.Chance(75) ? DynamicSliceOf(other, from, extents) : g.Fit(c, x.type(), extents);
  if (x.type() == PrimitiveType::Pred)
    part = Unary(Opcode::Not, part);
  else if (g.Chance(60))
    part = g.Folded(part + g.Fit(c, x.type(), extents));
  return UpdateOf(x, part, starts);
}

Expr Changed(Growth& g, Computation* c, Expr x, Expr step, const std::vector<Expr>& state);

// One of two ways to change it, or none, by the step.
Expr Chosen(Growth& g, Computation* c, Expr x, Expr step, const std::vector<Expr>& state) {
  std::vector<Expr> given = {step};
  given.insert(given.end(), state.begin(), state.end());
  given.push_back(x);
  Instruction* all = TupleOf(given);
  Attributes attrs;
  attrs.branch_computations = std::vector<Computation*>();
  const int64_t ways = g.Between(2, 3);
  std::vector<Expr> operands = {Binary(Opcode::Remainder, step, step.Like(static_cast<double>(ways)))};
  for (int64_t k = 0; k < ways; ++k) {
    Computation* branch = g.module->AddComputation("way");
    Expr all_given = branch->AddParameter(0, all->shape(), "given");
    std::vector<Expr> inner;
    for (size_t s = 0; s < state.size(); ++s) inner.push_back(PartOf(all_given, static_cast<int64_t>(s) + 1));
    Expr now = PartOf(all_given, static_cast<int64_t>(state.size()) + 1);
    std::vector<Expr> pool = inner;
    std::swap(g.pool, pool);
    ++g.depth;
    Expr then = g.Chance(40) ? now : Changed(g, branch, now, PartOf(all_given, 0), inner);
    --g.depth;
    std::swap(g.pool, pool);
    branch->set_root(TupleOf({then, g.Chance(50) ? now : inner[g.Pick(inner.size())]}));
    attrs.branch_computations->push_back(branch);
    operands.emplace_back(all);
  }
  Expr both = *Inferred(c, Opcode::Conditional, operands, attrs);
  return PartOf(both, g.Chance(80) ? 0 : 1);
}

// A loop of its own over the array and another.
Expr Looped(Growth& g, Computation* c, Expr x, const std::vector<Expr>& state) {
  Expr other = state[g.Pick(state.size())];
  const bool swaps = g.Chance(40);
  const std::vector<Expr> after =
      LoopOf(c, g.Between(1, 3), {x, other}, [&](Expr step, const std::vector<Expr>& v) -> std::vector<Expr> {
        std::vector<Expr> pool = v;
        std::swap(g.pool, pool);
        ++g.depth;
        Expr next = Written(g, step.computation(), v[0], step, v);
        --g.depth;
        std::swap(g.pool, pool);
        if (swaps) return {v[1], next};
        return {next, v[1]};
      });
  return after[g.Chance(80) ? 0 : 1];
}

Expr Changed(Growth& g, Computation* c, Expr x, Expr step, const std::vector<Expr>& state) {
  const bool deep = g.depth < 3;
  switch (g.Pick(deep ? 8 : 5)) {
    case 0:
      return state[g.Pick(state.size())];
    case 1:
      return x.type() == PrimitiveType::Pred ? Unary(Opcode::Not, x) : g.Folded(x + state[g.Pick(state.size())]);
    case 2:
    case 3:
    case 4:
      return Written(g, c, x, step, state);
    case 5:
    case 6:
      return Chosen(g, c, x, step, state);
    default:
      return Looped(g, c, x, state);
  }
}

std::optional<Expr> Evolved(Growth& g, Computation* c, Expr x) {
  if (g.depth >= 2 || x.shape().rank() == 0 || x.shape().ElementCount() == 0) return std::nullopt;
  std::vector<Expr> init = {g.Tame(x)};
  const int64_t more = g.Between(1, 3);
  for (int64_t k = 0; k < more; ++k)
    init.push_back(g.Chance(25)   ? init[g.Pick(init.size())]
                   : g.Chance(30) ? BroadcastTo(c->AddConstant(Literal::Of(x.type(), 1)), x.shape().dims())
                                  : g.Fit(c, x.type(), x.shape().dims()));
  if (g.Chance(20)) init[0] = x;  // a parameter itself
  const std::vector<Expr> after = LoopOf(c, g.Between(0, 4), init, [&](Expr step, const std::vector<Expr>& v) {
    std::vector<Expr> pool = v, next = v;
    std::swap(g.pool, pool);
    ++g.depth;
    const int64_t changes = g.Between(1, 4);
    for (int64_t k = 0; k < changes; ++k) {
      const size_t at = g.Pick(next.size());
      // Of the old values or of what they have become.
      next[at] = Changed(g, step.computation(), next[at], step, g.Chance(50) ? v : next);
    }
    if (g.Chance(40)) std::swap(next[0], next[1 + g.Pick(next.size() - 1)]);
    --g.depth;
    std::swap(g.pool, pool);
    return next;
  });
  for (size_t k = 1; k < after.size(); ++k)
    if (g.Chance(50)) g.pool.push_back(after[k]);
  return after[0];
}

}  // namespace

std::vector<Maker> StateMakers() { return {{6, Evolved, true}}; }

}  // namespace kiln
