// A loop that adds a reduction between devices to an element of its state in every iteration adds what each device has,
// and reduces once behind the loop; one that fills an array with reductions, piece by piece, reduces the array.
//
// Between the reduction and the sum may stand what is linear and the same on all devices that meet. Sums of floats are
// taken in another order, as by every pass that reassociates.
#include <algorithm>
#include <numeric>

#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/of_opcode.h"
#include "compiler/hlo/replica_groups.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/groups.h"
#include "compiler/passes/collectives/replication.h"
#include "compiler/passes/loops/while_state.h"
#include "compiler/passes/simplify/rules/reducer.h"

namespace kiln {
namespace {

struct Motion {
  Instruction* reduction = nullptr;
  Ints elements;       // several where several sums take what is reduced
  bool fills = false;  // the one element; otherwise it adds
  Ints start, limit;   // what is filled of it
};

bool IsZero(const Instruction* i) {
  if (i->Is(Opcode::Broadcast)) return IsZero(i->operand(0));
  return i->Is(Opcode::Constant) && i->shape().IsScalar() && i->literal() == Literal::Of(i->shape().type(), 0);
}

// The element of the state that `i` is, if nothing else in the body reads it: -1 otherwise.
int64_t ElementReadOnce(const Instruction* i, size_t uses) {
  if (!i->Is(Opcode::GetTupleElement) || !i->operand(0)->Is(Opcode::Parameter) || i->users().size() != uses) return -1;
  const int64_t k = *i->attrs().tuple_index;
  return ElementReaders(i->operand(0), k).size() == 1 ? k : -1;
}

const Instruction* OnlyUser(const Instruction* i) {
  return i->users().size() == 1 && !i->IsRoot() ? i->users()[0] : nullptr;
}

class Finder {
 public:
  explicit Finder(const Instruction* loop)
      : loop_(loop), body_(*loop->attrs().body), module_(*loop->parent()->module()), replication_(module_) {}

  std::optional<Motion> Find() const {
    for (Instruction* i : body_->PostOrder()) {
      if (!PlainAllReduce(i) || !ReducerOf(i)) continue;
      const auto groups = DeviceGroups(*i, module_.replica_count, module_.partition_count);
      if (!groups.ok()) continue;
      Motion m{i, {}, false};
      if (Follow(i, true, *groups, m) && !m.elements.empty() && (!m.fills || m.elements.size() == 1)) return m;
    }
    return std::nullopt;
  }

 private:
  // Whether all that reads `x`, which is the reduction or made of it, may take what each device has; adds the elements
  // that it ends in.
  bool Follow(const Instruction* x, bool moved_only, const std::vector<Ints>& groups, Motion& m) const {
    const PrimitiveType type = m.reduction->shape().type();
    const bool adds = ReducerOf(m.reduction) == Opcode::Add && (IsFloat(type) || IsIntegral(type));
    return !x->IsRoot() && std::all_of(x->users().begin(), x->users().end(), [&](const Instruction* u) {
      if (!u->control_predecessors().empty() || !u->control_successors().empty()) return false;
      if (u->Is(Opcode::Add) || u->Is(Opcode::DynamicUpdateSlice)) {
        int64_t k = -1;
        if (u->Is(Opcode::DynamicUpdateSlice)) {
          k = moved_only && u->operand(1) == x ? Fills(u, m) : -1;
          m.fills = true;
        } else if (adds) {
          k = Accumulates(u, u->operand(0) == x ? 1 : 0, groups);
        }
        m.elements.push_back(k);
        return k >= 0;
      }
      const bool keeps = u->Is(Opcode::Reshape) || Widens(u);
      return (keeps || (adds && IsLinear(u, x, groups))) && Follow(u, moved_only && keeps, groups, m);
    });
  }

  static bool Widens(const Instruction* i) {
    if (!i->Is(Opcode::Convert)) return false;
    const PrimitiveType from = i->operand(0)->shape().type(), to = i->shape().type();
    return IsFloat(from) && IsFloat(to) && BitWidth(to) > BitWidth(from);
  }

  bool IsLinear(const Instruction* u, const Instruction* x, const std::vector<Ints>& groups) const {
    switch (u->opcode()) {
      case Opcode::Transpose:
      case Opcode::Slice:
      case Opcode::Broadcast:
        return true;
      case Opcode::Select: {
        const int64_t data = u->operand(1) == x ? 1 : 2;
        return u->operand(0) != x && IsZero(u->operand(3 - data)) && replication_.SameWithin(groups, u->operand(0));
      }
      case Opcode::Multiply: {
        const Instruction* factor = u->operand(u->operand(0) == x ? 1 : 0);
        return factor != x && factor->Is(Opcode::Broadcast) && factor->operand(0)->shape().IsScalar() &&
               replication_.SameWithin(groups, factor);
      }
      default:
        return false;
    }
  }

  // What may stand between an element and the sum with it.
  static bool KeepsSums(const Instruction* i) {
    if (i->Is(Opcode::Convert)) return IsFloat(i->shape().type()) && IsFloat(i->operand(0)->shape().type());
    return i->Is(Opcode::Reshape) || i->Is(Opcode::Transpose);
  }

  // Whether each part of the element is where it was when the sum is put back.
  static bool EndInPlace(const std::vector<const Instruction*>& in, const std::vector<const Instruction*>& out) {
    std::vector<const Instruction*> path(in.rbegin(), in.rend());
    path.insert(path.end(), out.begin(), out.end());
    const auto is = [&](Opcode op) {
      return std::any_of(path.begin(), path.end(), [&](const Instruction* i) { return i->Is(op); });
    };
    if (!is(Opcode::Transpose)) return true;
    if (is(Opcode::Reshape)) return false;
    Ints from((*path.begin())->shape().dims().size());
    std::iota(from.begin(), from.end(), 0);
    for (const Instruction* i : path) {
      if (!i->Is(Opcode::Transpose)) continue;
      Ints next;
      for (int64_t d : *i->attrs().dimensions) next.push_back(from[static_cast<size_t>(d)]);
      from = next;
    }
    return std::is_sorted(from.begin(), from.end());
  }

  // The element that `add` adds to and that its sum becomes, or -1.
  int64_t Accumulates(const Instruction* add, int64_t buffer, const std::vector<Ints>& groups) const {
    const Instruction *in = add->operand(buffer), *out = add;
    const Instruction* slice = in->Is(Opcode::DynamicSlice) && in->users().size() == 1 ? in : nullptr;
    std::vector<const Instruction*> before, behind;
    if (slice) in = slice->operand(0);
    for (; KeepsSums(in) && in->users().size() == 1; in = in->operand(0)) before.push_back(in);
    const int64_t k = ElementReadOnce(in, slice ? 2 : 1);
    const Instruction* u = OnlyUser(out);
    if (slice) {
      if (!u || !u->Is(Opcode::DynamicUpdateSlice) || u->operand(0) != in || slice->operand(0) != in ||
          u->operand(1) != out || !SamePlace(slice, u, groups))
        return -1;
      out = u;
      u = OnlyUser(out);
    }
    for (; u && KeepsSums(u); u = OnlyUser(out)) {
      behind.push_back(u);
      out = u;
    }
    return k >= 0 && u == body_->root() && EndInPlace(before, behind) && Becomes(out, k) ? k : -1;
  }

  bool SamePlace(const Instruction* slice, const Instruction* update, const std::vector<Ints>& groups) const {
    if (slice->operand_count() + 1 != update->operand_count()) return false;
    for (int64_t o = 1; o < slice->operand_count(); ++o)
      if (slice->operand(o) != update->operand(o + 1) || !replication_.SameWithin(groups, slice->operand(o)))
        return false;
    return true;
  }

  // The element of which `update` writes one part after another, or -1; and all that it writes.
  int64_t Fills(const Instruction* update, Motion& m) const {
    const int64_t k = ElementReadOnce(update->operand(0), 1);
    const std::optional<Induction> v = FindInduction(loop_);
    if (k < 0 || !v || OnlyUser(update) != body_->root() || !Becomes(update, k)) return -1;
    bool counted = false;
    m.start.assign(static_cast<size_t>(update->shape().rank()), 0);
    m.limit = update->shape().dims();
    for (int64_t d = 0; d < update->shape().rank(); ++d) {
      const int64_t whole = update->shape().dim(d), part = update->operand(1)->shape().dim(d);
      if (part == whole) continue;
      const Instruction* at = update->operand(2 + d);
      int64_t& start = m.start[static_cast<size_t>(d)];
      if (at->Is(Opcode::Constant)) {
        start = std::clamp<int64_t>(at->literal().Get(0).i, 0, whole - part);
        m.limit[static_cast<size_t>(d)] = start + part;
        continue;
      }
      const std::optional<int64_t> first = FirstPlace(at, *v);
      if (counted || !first || part != v->step || v->trips < 1 || v->trips > whole / part || *first < 0 ||
          *first > whole - part * v->trips)
        return -1;
      counted = true;
      start = *first;
      m.limit[static_cast<size_t>(d)] = *first + part * v->trips;
    }
    return counted ? k : -1;
  }

  // The least value of `at`, which is the counter or, for single steps, a constant less the counter.
  std::optional<int64_t> FirstPlace(const Instruction* at, const Induction& v) const {
    const bool back = at->Is(Opcode::Subtract) && at->operand(0)->Is(Opcode::Constant) && v.step == 1;
    const Instruction* counter = back ? at->operand(1) : at;
    if (!counter->Is(Opcode::GetTupleElement) || counter->operand(0) != body_->parameter(0) ||
        *counter->attrs().tuple_index != v.index)
      return std::nullopt;
    return back ? at->operand(0)->literal().Get(0).i - v.init - (v.trips - 1) : v.init;
  }

  // `i` is the next value of element `k`, of no other, and the condition does not read that.
  bool Becomes(const Instruction* i, int64_t k) const {
    const std::vector<Instruction*>& next = body_->root()->operands();
    return next[static_cast<size_t>(k)] == i && std::count(next.begin(), next.end(), i) == 1 &&
           ElementReaders((*loop_->attrs().condition)->parameter(0), k).empty();
  }

  const Instruction* loop_;
  const Computation* body_;
  const Module& module_;
  Replication replication_;
};

// In the type of the element.
void Reduce(Instruction* loop, const Motion& motion, int64_t element) {
  Computation* c = loop->parent();
  const Shape shape = loop->shape().tuple()[static_cast<size_t>(element)];
  Instruction* init = InitOf(loop, element);
  Instruction* last = c->Add(Opcode::GetTupleElement, shape, {loop});
  last->mutable_attrs().tuple_index = element;
  const bool whole = !motion.fills || (motion.limit == shape.dims() &&
                                       std::count(motion.start.begin(), motion.start.end(), 0) == shape.rank());
  Instruction* local = whole ? last : SliceOf(last, motion.start, motion.limit).get();
  Instruction* result = c->AddClone(motion.reduction, local->shape(), {local});
  if (shape.type() != motion.reduction->shape().type())
    result->mutable_attrs().to_apply = ScalarFunction(c->module(), *ReducerOf(motion.reduction), shape.type());
  if (!motion.fills) {
    std::vector<Instruction*> inits = loop->operand(0)->operands();
    inits[static_cast<size_t>(element)] = BroadcastTo(c->AddConstant(Literal::Of(shape.type(), 0)), shape.dims()).get();
    loop->ReplaceOperand(0, c->Add(Opcode::Tuple, loop->shape(), inits));
    result = Binary(Opcode::Add, result, init).get();
  } else if (!whole) {
    std::vector<Expr> starts;
    for (int64_t start : motion.start) starts.push_back(IntegerIn(c, PrimitiveType::S32, start));
    result = UpdateOf(last, result, starts).get();
  }
  for (Instruction* u : ElementReaders(loop, element))
    if (u != last) u->ReplaceAllUsesWith(result);
}

void Move(Instruction* loop, const Motion& motion) {
  for (int64_t element : motion.elements) Reduce(loop, motion, element);
  motion.reduction->ReplaceAllUsesWith(motion.reduction->operand(0));
  motion.reduction->parent()->Remove(motion.reduction);
}

bool MayBeEdited(const Instruction* loop) {
  if (!HasFlatBodies(loop) || !loop->control_predecessors().empty() || !loop->control_successors().empty())
    return false;
  return std::all_of(loop->shape().tuple().begin(), loop->shape().tuple().end(),
                     [](const Shape& s) { return s.IsArray() && !s.HasDynamic(); });
}

}  // namespace

absl::StatusOr<bool> WhileLoopAllReduceCodeMotion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : m.PostOrder())
    for (Instruction* loop : OfOpcode(c, Opcode::While)) {
      if (!MayBeEdited(loop) || !Finder(loop).Find() || ctx.fuel == 0) continue;
      ExposeState(loop);
      loop->mutable_attrs().body = m.CloneComputation(*loop->attrs().body);
      while (const std::optional<Motion> motion = Finder(loop).Find()) {
        if (!ctx.Take()) break;
        Move(loop, *motion);
        changed = true;
      }
    }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
