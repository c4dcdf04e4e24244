// Work that is the same in every iteration moves before the loop.
//
// It may then run although the loop does not: only pure operations move, calls of pure computations and functions among
// them, exchanges between devices, and only those whose result is not larger than what they read, or so small that it
// does not matter, so that the state does not grow. Loops that run once at most have nothing to gain. Constants,
// broadcasts and what only moves elements stay: inside, they become a part of what reads them.
#include <algorithm>

#include "compiler/hlo/annotation.h"
#include "compiler/hlo/exchange.h"
#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/annotations.h"
#include "compiler/passes/loops/trip_search.h"
#include "compiler/passes/loops/while_state.h"
#include "compiler/passes/other_passes.h"

namespace kiln {
namespace {

bool Cheap(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::Constant:
    case Opcode::Broadcast:
    case Opcode::Iota:
    case Opcode::Reshape:
    case Opcode::Transpose:
    case Opcode::Reverse:
    case Opcode::Slice:
    case Opcode::Bitcast:
    case Opcode::Tuple:
    case Opcode::GetTupleElement:
    case Opcode::Parameter:
      return true;
    default:
      return false;
  }
}

// A function that may fail must not run where the program would not have run it; and notes of front ends say something
// about where they stand.
bool IsFixedCall(const Instruction* i) {
  if (!i->Is(Opcode::CustomCall)) return false;
  const auto& api = i->attrs().api_version;
  return (api && *api != ApiVersion::API_VERSION_ORIGINAL) || IsAnnotation(*i) || BoundaryOf(*i) != Boundary::kNone;
}

// All devices that meet make as many iterations: whoever waited inside waits before the loop.
bool IsPlainExchange(const Instruction* i) { return IsSynchronousCollective(i) && !HasSchedulingGroup(i); }

bool Stays(const Instruction* i) {
  if (!i->control_predecessors().empty() || !i->control_successors().empty()) return true;
  if (!i->shape().IsArray() || i->shape().HasDynamic()) return true;
  return !IsPlainExchange(i) && (i->HasTrait(Collective) || i->HasTrait(Async) || i->Is(Opcode::Rng) ||
                                 IsFixedCall(i) || i->Is(Opcode::While) || i->Is(Opcode::Conditional) ||
                                 i->Is(Opcode::Domain) || i->Is(Opcode::OptimizationBarrier) || i->HasSideEffect());
}

// The instructions of the body that do not depend on the iteration, in order.
std::vector<Instruction*> Invariant(const Instruction* loop) {
  const Computation* body = *loop->attrs().body;
  absl::flat_hash_set<const Instruction*> same;
  std::vector<Instruction*> out;
  for (Instruction* i : body->PostOrder()) {
    if (i->Is(Opcode::GetTupleElement) && i->operand(0) == body->parameter(0)) {
      if (IsInvariant(loop, *i->attrs().tuple_index)) same.insert(i);
      continue;
    }
    if (i->Is(Opcode::Parameter) || Stays(i)) continue;
    bool all = true;
    for (const Instruction* o : i->operands()) all = all && same.contains(o);
    if (!all) continue;
    same.insert(i);
    out.push_back(i);
  }
  return out;
}

bool Grows(const Instruction* i) {
  constexpr int64_t kAnyway = 64;  // bytes that a state may well hold
  int64_t in = i->operands().empty() || i->Is(Opcode::CustomCall) ? kAnyway : 0;
  for (const Instruction* o : i->operands())
    if (!Cheap(o) || o->Is(Opcode::GetTupleElement)) in += o->shape().ByteSize();
  return i->shape().ByteSize() > in;
}

// What moves: work whose value the loop goes on reading, be it by way of what stays inside.
std::vector<Instruction*> WorkToMove(const std::vector<Instruction*>& invariant) {
  const absl::flat_hash_set<const Instruction*> set(invariant.begin(), invariant.end());
  absl::flat_hash_set<const Instruction*> read;
  std::vector<Instruction*> moved;
  const auto stays = [](const Instruction* i) { return Cheap(i) || Grows(i); };
  for (auto it = invariant.rbegin(); it != invariant.rend(); ++it) {
    Instruction* i = *it;
    const bool is_read = i->IsRoot() || std::any_of(i->users().begin(), i->users().end(), [&](const Instruction* u) {
                           return !set.contains(u) || (stays(u) && read.contains(u));
                         });
    if (!is_read) continue;
    read.insert(i);
    if (!stays(i)) moved.push_back(i);
  }
  std::reverse(moved.begin(), moved.end());
  return moved;
}

// Loops whose program asks that nothing leaves them are left alone.
bool MayBeEdited(const Instruction* loop) {
  if (!HasFlatBodies(loop) || !loop->control_predecessors().empty() || !loop->control_successors().empty())
    return false;
  if (AnnotationOf(loop, "_xla_disable_loop_instr_hoisting") == "true") return false;
  if (RunsAtMostOnce(loop)) return false;
  return std::all_of(loop->shape().tuple().begin(), loop->shape().tuple().end(),
                     [](const Shape& s) { return s.IsArray(); });
}

}  // namespace

absl::StatusOr<bool> WhileLoopInvariantCodeMotion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : m.PostOrder()) {
    for (Instruction* loop : OfOpcode(c, Opcode::While)) {
      if (!MayBeEdited(loop)) continue;
      const std::vector<Instruction*> moved = WorkToMove(Invariant(loop));
      if (moved.empty() || !ctx.Take()) continue;
      ExposeState(loop);
      absl::flat_hash_map<const Instruction*, Instruction*> outside;
      const std::function<Instruction*(const Instruction*)> hoist = [&](const Instruction* i) -> Instruction* {
        if (i->Is(Opcode::GetTupleElement) && i->operand(0)->Is(Opcode::Parameter))
          return InitOf(loop, *i->attrs().tuple_index);
        if (const auto it = outside.find(i); it != outside.end()) return it->second;
        std::vector<Instruction*> operands;
        for (const Instruction* o : i->operands()) operands.push_back(hoist(o));
        return outside[i] = c->AddClone(i, i->shape(), operands);
      };
      std::vector<Instruction*> values;
      std::vector<std::string> names;
      for (const Instruction* i : moved) {
        values.push_back(hoist(i));
        names.push_back(i->name());
      }
      const size_t before = loop->shape().tuple().size();
      const std::vector<Instruction*> old_order = (*loop->attrs().body)->PostOrder();
      std::vector<size_t> at;
      for (const Instruction* i : moved)
        at.push_back(static_cast<size_t>(std::find(old_order.begin(), old_order.end(), i) - old_order.begin()));
      // The same edit in the body, before it is cloned into the longer loop.
      Computation* body = m.CloneComputation(*loop->attrs().body);
      loop->mutable_attrs().body = body;
      const std::vector<Instruction*> order = body->PostOrder();
      std::vector<Shape> shapes = loop->shape().tuple();
      for (const Instruction* v : values) shapes.push_back(v->shape());
      body->parameter(0)->mutable_shape() = Shape::Tuple(shapes);
      for (size_t k = 0; k < moved.size(); ++k) {
        Instruction* e = body->Add(Opcode::GetTupleElement, values[k]->shape(), {body->parameter(0)});
        e->mutable_attrs().tuple_index = static_cast<int64_t>(before + k);
        order[at[k]]->ReplaceAllUsesWith(e);
      }
      ExtendLoop(loop, values);
      changed = true;
    }
  }
  if (changed) {
    m.RemoveUnreachableComputations();
    RETURN_IF_ERROR(Dce(m, ctx).status());
  }
  return changed;
}

}  // namespace kiln
