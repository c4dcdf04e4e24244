// Reshapes and transposes move below elementwise operations, where there is one instead of several, or where they meet
// others.
//
// Fires when some operand carries one, the others carry the same or take its operand's shape for free: constants,
// broadcasts of scalars, and below a transpose broadcasts whose dimensions keep their order. Every user of what is
// moved has to be one that moves, else nothing is saved. Source: the choice of XLA's reshape-mover; random numbers are
// not drawn in another shape here.
#include <algorithm>

#include "compiler/hlo/graph_builder.h"
#include "compiler/pass/rewriter.h"

namespace kiln {
namespace {

bool Moves(const Instruction* i) { return i->Is(Opcode::Reshape) || i->Is(Opcode::Transpose); }

// The dimension of a transpose's operand that is dimension `d` of its result.
int64_t Source(const Instruction* transpose, int64_t d) { return (*transpose->attrs().dimensions)[d]; }

// The dimensions of broadcast `b` under the inverse of `mover`; nothing if it is not free to take that shape.
std::optional<Ints> DimensionsBefore(const Instruction* b, const Instruction* mover) {
  if (b->operand(0)->shape().IsScalar()) return Ints();
  const Ints dims = b->attrs().dimensions.value_or(Ints());
  if (!mover->Is(Opcode::Transpose) || !std::is_sorted(dims.begin(), dims.end())) return std::nullopt;
  Ints before;
  for (int64_t d : dims) before.push_back(Source(mover, d));
  return std::is_sorted(before.begin(), before.end()) ? std::optional(before) : std::nullopt;
}

bool TakesAnyShape(const Instruction* i, const Instruction* mover) {
  constexpr int64_t kSmall = 4096;  // what constant-folding folds
  if (i->Is(Opcode::Constant)) return i->literal().IsSplat() || i->shape().ElementCount() <= kSmall;
  return i->Is(Opcode::Broadcast) && DimensionsBefore(i, mover).has_value();
}

// Numbers drawn for one reader may be drawn in its shape: nothing has to move.
bool IsDrawn(const Instruction* i) { return i->Is(Opcode::Rng) && i->users().size() == 1; }

// The operand whose reshape or transpose the others repeat.
const Instruction* Leader(const Instruction* i) {
  for (const Instruction* o : i->operands())
    if (Moves(o) && !TakesAnyShape(o->operand(0), o) && !IsDrawn(o->operand(0))) return o;
  return nullptr;
}

bool Equivalent(const Instruction* a, const Instruction* b) {
  return a->opcode() == b->opcode() && a->operand(0)->shape().dims() == b->operand(0)->shape().dims() &&
         a->shape().dims() == b->shape().dims() && a->attrs().dimensions == b->attrs().dimensions;
}

bool IsPlain(const Shape& s) { return s.IsArray() && !s.HasDynamic() && s.HasDefaultLayout(); }

bool IsCandidate(const Instruction* i) {
  if (!i->IsElementwise() || i->operands().empty() || !IsPlain(i->shape())) return false;
  const Instruction* leader = Leader(i);
  if (!leader || !IsPlain(leader->operand(0)->shape()) || leader->attrs().sharding || i->attrs().sharding) return false;
  return std::all_of(i->operands().begin(), i->operands().end(), [&](const Instruction* o) {
    if (o->shape().dims() != i->shape().dims() || !IsPlain(o->shape())) return false;
    return Moves(o) ? Equivalent(o, leader) && o->control_predecessors().empty() && o->control_successors().empty()
                    : TakesAnyShape(o, leader);
  });
}

// The candidates all of whose moved operands have candidates as users only, in post-order.
std::vector<Instruction*> Candidates(const Computation* c) {
  std::vector<Instruction*> order;
  absl::flat_hash_set<const Instruction*> set;
  for (Instruction* i : c->PostOrder())
    if (IsCandidate(i)) {
      order.push_back(i);
      set.insert(i);
    }
  for (bool removed = true; removed;) {
    removed = false;
    for (const Instruction* i : order) {
      if (!set.contains(i)) continue;
      for (const Instruction* o : i->operands()) {
        const auto stays = [&](const Instruction* u) { return !set.contains(u); };
        if (!Moves(o) || (!o->IsRoot() && std::none_of(o->users().begin(), o->users().end(), stays))) continue;
        for (const Instruction* u : o->users()) removed = set.erase(u) > 0 || removed;
      }
    }
  }
  order.erase(std::remove_if(order.begin(), order.end(), [&](Instruction* i) { return !set.contains(i); }),
              order.end());
  return order;
}

// A candidate whose moved operands nobody else reads.
bool MovesAlone(const Instruction* i) {
  return IsCandidate(i) && std::all_of(i->operands().begin(), i->operands().end(), [&](const Instruction* o) {
           return !Moves(o) || (!o->IsRoot() && o->users().size() == 1);
         });
}

// `o` before `mover`.
Instruction* Before(Instruction* o, const Instruction* mover) {
  const Ints& dims = mover->operand(0)->shape().dims();
  if (Moves(o)) return o->operand(0);
  if (o->Is(Opcode::Broadcast)) return BroadcastTo(o->operand(0), dims, *DimensionsBefore(o, mover)).get();
  if (o->literal().IsSplat()) {
    Literal one(Shape::Scalar(o->shape().type()));
    one.Set(0, o->literal().Get(0));
    return BroadcastTo(o->parent()->AddConstant(one), dims).get();
  }
  if (mover->Is(Opcode::Reshape)) return ReshapeTo(o, dims).get();
  Ints inverse(dims.size());
  for (int64_t d = 0; d < o->shape().rank(); ++d) inverse[Source(mover, d)] = d;
  return TransposeBy(o, inverse).get();
}

Instruction* Sunk(Instruction* i) {
  const Instruction* leader = Leader(i);
  if (!leader) return nullptr;
  std::vector<Instruction*> operands;
  for (Instruction* o : i->operands()) operands.push_back(Before(o, leader));
  Shape shape = leader->operand(0)->shape();
  shape.set_type(i->shape().type());
  Instruction* inner = i->parent()->AddClone(i, shape, operands);
  return i->parent()->AddClone(leader, i->shape(), {inner});
}

}  // namespace

absl::StatusOr<bool> ReshapeMover(Module& m, PassContext& ctx) {
  Rewriter rewriter(ctx);
  for (const auto& c : m.computations())
    for (Instruction* i : Candidates(c.get())) {
      // What moves below one operation goes on through a chain of them.
      while (i) {
        Instruction* reader = i->users().size() == 1 ? i->users()[0] : nullptr;
        ASSIGN_OR_RETURN(const bool replaced, rewriter.Replace(i, Sunk));
        if (!replaced) break;
        c->Remove(i);
        i = reader && MovesAlone(reader) ? reader : nullptr;
      }
    }
  return rewriter.changed();
}

}  // namespace kiln
