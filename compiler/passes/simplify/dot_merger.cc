// Independent dots that share an operand become one dot of the shared operand with the others side by side.
//
// The operand may be shared through transposes and reshapes, and stand on either side: what counts is that the dots
// give the same digits of a place in the shared array the same roles. All dots of a group but one must move at most
// 64 MiB (operands and result), else the gain is nothing and the memory is real.
//
// Compiles merge where the others are constants (weight-dot-merger): constant-folding puts them side by side, so that
// queries, keys and values are one product. Arguments would be copied in every run: cpu-product-grouping and
// gpu-product-grouping have one kernel read them where they lie.
#include <algorithm>
#include <set>

#include "compiler/hlo/reachability.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/simplify/dot_form.h"

namespace kiln {
namespace {

constexpr int64_t kSmall = 64 << 20;

// One digit of a place in an array: (place / stride) % extent.
struct Digit {
  int64_t stride, extent;
  bool operator==(const Digit&) const = default;
  bool operator<(const Digit& o) const { return stride < o.stride; }
};
using Digits = std::vector<Digit>;

// The array that an operand shows in another shape, and the digits that make each of the operand's dimensions, the
// major one first. Extents of 1 have none.
struct Source {
  Instruction* array;
  std::vector<Digits> dims;
};

Source Plain(Instruction* x) {
  Source s{x, std::vector<Digits>(x->shape().dims().size())};
  int64_t stride = 1;
  for (int64_t d = x->shape().rank() - 1; d >= 0; --d) {
    const int64_t extent = x->shape().dim(d);
    if (extent != 1) s.dims[static_cast<size_t>(d)] = {{stride, extent}};
    stride *= extent;
  }
  return s;
}

// The digits of the dimensions behind a reshape, if no digit has to be taken apart unevenly.
std::optional<std::vector<Digits>> Regrouped(const std::vector<Digits>& dims, const Ints& extents) {
  Digits left;  // minor first, so that the next one is the last
  for (auto d = dims.rbegin(); d != dims.rend(); ++d) left.insert(left.end(), d->rbegin(), d->rend());
  std::vector<Digits> out(extents.size());
  for (size_t d = 0; d < extents.size(); ++d) {
    for (int64_t need = extents[d]; need > 1;) {
      if (left.empty()) return std::nullopt;
      Digit& next = left.back();
      if (need % next.extent == 0) {
        need /= next.extent;
        out[d].push_back(next);
        left.pop_back();
      } else if (next.extent % need == 0) {
        next.extent /= need;
        out[d].push_back({next.stride * next.extent, need});
        need = 1;
      } else {
        return std::nullopt;
      }
    }
  }
  return out;
}

Source SourceOf(Instruction* x) {
  std::vector<Instruction*> chain;
  for (; x->Is(Opcode::Transpose) || x->Is(Opcode::Reshape); x = x->operand(0)) chain.push_back(x);
  Source s = Plain(x);
  for (auto step = chain.rbegin(); step != chain.rend(); ++step) {
    if ((*step)->Is(Opcode::Transpose)) {
      const std::vector<Digits> before = s.dims;
      for (size_t d = 0; d < before.size(); ++d)
        s.dims[d] = before[static_cast<size_t>((*(*step)->attrs().dimensions)[d])];
    } else if (auto dims = Regrouped(s.dims, (*step)->shape().dims())) {
      s.dims = std::move(*dims);
    } else {
      s = Plain(*step);
    }
  }
  return s;
}

// A dot, by the operand that it may share.
struct Usage {
  Instruction* dot;
  int64_t side;
  Source source;
  DotSide shared, other;
};

Digits Of(const Usage& u, const Ints& dims) {
  Digits out;
  for (int64_t d : dims) {
    const Digits& digits = u.source.dims[static_cast<size_t>(d)];
    out.insert(out.end(), digits.begin(), digits.end());
  }
  return out;
}

using Cuts = std::set<int64_t>;

void AddCuts(const Usage& u, Cuts* cuts) {
  for (const Digits& digits : u.source.dims)
    for (const Digit& d : digits) {
      cuts->insert(d.stride);
      cuts->insert(d.stride * d.extent);
    }
}

// Each digit as several, cut at the strides named; nothing if a cut divides one unevenly.
std::optional<Digits> Cut(const Digits& digits, const Cuts& cuts) {
  Digits out;
  for (const Digit& d : digits) {
    int64_t top = d.stride * d.extent;
    for (auto cut = cuts.rbegin(); cut != cuts.rend(); ++cut) {
      if (*cut >= top) continue;
      if (*cut < d.stride) break;
      if (top % *cut != 0 || *cut % d.stride != 0) return std::nullopt;
      out.push_back({*cut, top / *cut});
      top = *cut;
    }
  }
  return out;
}

// The digits of a role, sorted; nothing if they cannot be cut.
std::optional<Digits> Role(const Usage& u, const Ints& dims, const Cuts& cuts) {
  std::optional<Digits> digits = Cut(Of(u, dims), cuts);
  if (digits) std::sort(digits->begin(), digits->end());
  return digits;
}

bool SameRoles(const Usage& a, const Usage& b, const Cuts& cuts) {
  for (const auto role : {&DotSide::batch, &DotSide::contracting, &DotSide::free}) {
    const auto x = Role(a, a.shared.*role, cuts), y = Role(b, b.shared.*role, cuts);
    if (!x || !y || *x != *y) return false;
  }
  return true;
}

bool SameKind(const Usage& a, const Usage& b) {
  const Attributes &x = a.dot->attrs(), &y = b.dot->attrs();
  return a.source.array == b.source.array && a.dot->shape().type() == b.dot->shape().type() &&
         a.dot->operand(1 - a.side)->shape().type() == b.dot->operand(1 - b.side)->shape().type() &&
         x.operand_precision == y.operand_precision && x.algorithm == y.algorithm &&
         x.backend_config == y.backend_config && x.frontend_attributes == y.frontend_attributes;
}

bool IsSmall(const Usage& u) {
  return u.dot->shape().ByteSize() + u.dot->operand(0)->shape().ByteSize() + u.dot->operand(1)->shape().ByteSize() <=
         kSmall;
}

struct Group {
  std::vector<Usage> members;
  Cuts cuts;
};

// Takes `u` in, if it fits all members.
bool Join(Group* g, const Usage& u, const Reachability& reach) {
  Cuts cuts = g->cuts;
  AddCuts(u, &cuts);
  for (const Usage& m : g->members)
    if (m.dot == u.dot || !SameKind(m, u) || !SameRoles(m, u, cuts) || reach.Reaches(m.dot, u.dot) ||
        reach.Reaches(u.dot, m.dot))
      return false;
  g->members.push_back(u);
  g->cuts = std::move(cuts);
  return true;
}

// The digits of dimensions of a member, cut as its group is.
Digits Own(const Usage& u, const Ints& dims, const Group& g) { return Cut(Of(u, dims), g.cuts).value_or(Digits()); }

// The order of the merged dot's digits, and where the dimension of all free ones of the others stands.
struct Form {
  Digits batch, contracting, free;
  bool contracting_last;  // [batch, others, contracting] instead of [batch, contracting, others]
};

Form FormOf(const Group& g) {
  const Usage& u = g.members[0];
  Form f{Own(u, u.shared.batch, g), Own(u, u.shared.contracting, g), Own(u, u.shared.free, g), false};
  const int64_t last = u.dot->operand(1 - u.side)->shape().rank() - 1;
  f.contracting_last = Holds(u.other.contracting, last);
  return f;
}

void TakeExtents(const Digits& digits, Ints* extents) {
  for (const Digit& d : digits) extents->push_back(d.extent);
}

int64_t Find(const Digits& digits, const Digit& d) {
  return std::find(digits.begin(), digits.end(), d) - digits.begin();
}

// The shared operand with a dimension for each digit, in the order of the first member.
Expr SharedOperand(const Group& g, const Form& f, DotSide* side) {
  const Usage& u = g.members[0];
  Ints extents;
  for (int64_t d = 0; d < static_cast<int64_t>(u.source.dims.size()); ++d) {
    for (const Digit& digit : Own(u, {d}, g)) {
      const auto at = static_cast<int64_t>(extents.size());
      extents.push_back(digit.extent);
      Ints* role = Holds(u.shared.batch, d)         ? &side->batch
                   : Holds(u.shared.contracting, d) ? &side->contracting
                                                    : &side->free;
      role->push_back(at);
    }
  }
  // As the form has them: in the order of the lists of the dot, not of the operand's dimensions.
  const auto listed = [&](const Digits& wanted, const Ints& dims, Ints* places) {
    Ints ascending = dims;
    std::sort(ascending.begin(), ascending.end());
    const Digits here = Own(u, ascending, g);
    Ints out;
    for (const Digit& d : wanted) out.push_back((*places)[static_cast<size_t>(Find(here, d))]);
    *places = out;
  };
  listed(f.batch, u.shared.batch, &side->batch);
  listed(f.contracting, u.shared.contracting, &side->contracting);
  return ReshapeTo(u.dot->operand(u.side), extents);
}

// The other operand of a member, with the digits in the order of the form and one free dimension.
Expr OtherOperand(const Usage& u, const Group& g, const Form& f) {
  Instruction* x = u.dot->operand(1 - u.side);
  Ints split, free;
  Digits digits;  // of each dimension of `split`; an extent of 0 where it is free
  int64_t count = 1;
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    const auto place = [&](const Ints& dims) {
      return static_cast<size_t>(std::find(dims.begin(), dims.end(), d) - dims.begin());
    };
    if (Holds(u.other.free, d)) {
      free.push_back(static_cast<int64_t>(split.size()));
      split.push_back(x->shape().dim(d));
      digits.push_back({0, 0});
      count *= x->shape().dim(d);
      continue;
    }
    const bool batch = Holds(u.other.batch, d);
    const int64_t pair =
        batch ? u.shared.batch[place(u.other.batch)] : u.shared.contracting[place(u.other.contracting)];
    const Digits own = Own(u, {pair}, g);
    TakeExtents(own, &split);
    digits.insert(digits.end(), own.begin(), own.end());
  }
  Ints order, extents;
  const auto take = [&](const Digits& wanted) {
    for (const Digit& d : wanted) order.push_back(Find(digits, d));
    TakeExtents(wanted, &extents);
  };
  take(f.batch);
  if (!f.contracting_last) take(f.contracting);
  order.insert(order.end(), free.begin(), free.end());
  extents.push_back(count);
  if (f.contracting_last) take(f.contracting);
  return ReshapeTo(TransposeBy(ReshapeTo(x, split), order), extents);
}

DotSide OtherSide(const Form& f) {
  DotSide side;
  const auto batch = static_cast<int64_t>(f.batch.size()), contracting = static_cast<int64_t>(f.contracting.size());
  for (int64_t d = 0; d < batch; ++d) side.batch.push_back(d);
  side.free = {f.contracting_last ? batch : batch + contracting};
  for (int64_t d = 0; d < contracting; ++d) side.contracting.push_back(batch + d + (f.contracting_last ? 1 : 0));
  return side;
}

// What the member gave, from its slice [batch, free of the shared side, others] of the merged dot, the last two in the
// order of the sides.
Expr Restored(const Usage& u, Expr slice, const Group& g, const Form& f, bool shared_first) {
  const auto batch = static_cast<int64_t>(f.batch.size()), free = static_cast<int64_t>(f.free.size());
  const int64_t first_free = shared_first ? batch : batch + 1, others = shared_first ? batch + free : batch;
  Ints order;
  for (const Digit& d : Own(u, u.shared.batch, g)) order.push_back(Find(f.batch, d));
  if (u.side == 1) order.push_back(others);
  for (const Digit& d : Own(u, u.shared.free, g)) order.push_back(first_free + Find(f.free, d));
  if (u.side == 0) order.push_back(others);
  return ReshapeTo(TransposeBy(slice, order), u.dot->shape().dims());
}

void Merge(const Group& g) {
  const Form f = FormOf(g);
  const Usage& first = g.members[0];
  const bool shared_first = first.side == 0;
  DotSide shared_side;
  Expr shared = SharedOperand(g, f, &shared_side);
  const DotSide other_side = OtherSide(f);
  std::vector<Expr> others;
  for (const Usage& u : g.members) others.push_back(OtherOperand(u, g, f));
  Expr joined = ConcatOf(others, other_side.free[0]);
  Expr dot = shared_first ? DotLike(first.dot, shared, shared_side, joined, other_side)
                          : DotLike(first.dot, joined, other_side, shared, shared_side);
  dot.get()->mutable_attrs().metadata = first.dot->attrs().metadata;
  dot.get()->mutable_attrs().backend_config = first.dot->attrs().backend_config;
  dot.get()->mutable_attrs().frontend_attributes = first.dot->attrs().frontend_attributes;
  const size_t at = f.batch.size() + (shared_first ? f.free.size() : 0);
  Ints start(dot.shape().dims().size(), 0), limit = dot.shape().dims();
  for (size_t k = 0; k < g.members.size(); ++k) {
    const Usage& u = g.members[k];
    limit[at] = start[at] + others[k].shape().dim(other_side.free[0]);
    Instruction* part = Restored(u, SliceOf(dot, start, limit), g, f, shared_first).get();
    part->mutable_shape().set_layout(u.dot->shape().layout());
    u.dot->ReplaceAllUsesWith(part);
    start[at] = limit[at];
  }
  for (const Usage& u : g.members) u.dot->parent()->Remove(u.dot);
}

bool IsCandidate(const Instruction* i) {
  return i->Is(Opcode::Dot) && i->operand_count() == 2 && !i->attrs().sparsity && !i->attrs().sharding &&
         !i->shape().HasDynamic() && i->control_predecessors().empty() && i->control_successors().empty() &&
         i->operand(0)->shape().ElementCount() != 0 && i->operand(1)->shape().ElementCount() != 0 &&
         (!i->users().empty() || i->IsRoot());
}

// Whether the other operand is a constant that nothing else reads.
bool OfWeights(const Usage& u) {
  const Instruction* x = u.dot->operand(1 - u.side);
  while ((x->Is(Opcode::Transpose) || x->Is(Opcode::Reshape)) && x->users().size() == 1) x = x->operand(0);
  return x->Is(Opcode::Constant) && x->users().size() == 1 && !x->IsRoot();
}

// One group; what depends on what is stale after it.
bool MergeOnce(Computation* c, bool only_weights, PassContext& ctx) {
  std::vector<Usage> usages;
  for (Instruction* i : c->PostOrder())
    for (int64_t side = 0; side < 2 && IsCandidate(i); ++side) {
      Usage u = {i, side, SourceOf(i->operand(side)), SideOf(i, side), SideOf(i, 1 - side)};
      if (!only_weights || OfWeights(u)) usages.push_back(std::move(u));
    }
  if (usages.size() < 2 || !Reachability::Affordable(c)) return false;
  // Small ones first: a group may have one that is not.
  std::stable_partition(usages.begin(), usages.end(), IsSmall);
  const Reachability reach(c);
  for (size_t k = 0; k < usages.size() && IsSmall(usages[k]); ++k) {
    Group g{{usages[k]}, {}};
    AddCuts(usages[k], &g.cuts);
    for (size_t other = k + 1; other < usages.size(); ++other)
      if (usages[other].source.array == usages[k].source.array && Join(&g, usages[other], reach) &&
          !IsSmall(usages[other]))
        break;
    if (g.members.size() < 2 || !ctx.Take()) continue;
    Merge(g);
    return true;
  }
  return false;
}

bool MergeAll(Module& m, bool only_weights, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations())
    while (MergeOnce(c.get(), only_weights, ctx)) changed = true;
  return changed;
}

}  // namespace

absl::StatusOr<bool> DotMerger(Module& m, PassContext& ctx) { return MergeAll(m, false, ctx); }

absl::StatusOr<bool> WeightDotMerger(Module& m, PassContext& ctx) { return MergeAll(m, true, ctx); }

}  // namespace kiln
