// Loops that never run are their start, loops that run once their body; what no iteration changes is read from before
// the loop, elements that are always equal become one, and elements that nobody needs leave the state.
#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/loops/while_state.h"
#include "compiler/passes/other_passes.h"
#include "compiler/passes/simplify/inline_body.h"

namespace kiln {
namespace {

// Readers of `state`'s element `from` read `to` instead.
bool Redirect(Instruction* state, int64_t from, int64_t to) {
  bool changed = false;
  for (Instruction* u : ElementReaders(state, from)) {
    u->mutable_attrs().tuple_index = to;
    changed = true;
  }
  return changed;
}

bool ReadInvariantsOutside(Instruction* loop) {
  bool changed = false;
  for (size_t k = 0; k < loop->shape().tuple().size(); ++k) {
    if (!IsInvariant(loop, static_cast<int64_t>(k))) continue;
    for (Instruction* u : ElementReaders(loop, static_cast<int64_t>(k))) {
      if (u->users().empty() && !u->IsRoot()) continue;
      u->ReplaceAllUsesWith(InitOf(loop, static_cast<int64_t>(k)));
      changed = true;
    }
  }
  return changed;
}

// Elements that start equal and go on equal: readers of the later one read the first.
bool UnifyDuplicates(Instruction* loop) {
  bool changed = false;
  const Computation* body = *loop->attrs().body;
  const auto next = [&](int64_t k) { return body->root()->operand(k); };
  const int64_t n = static_cast<int64_t>(loop->shape().tuple().size());
  for (int64_t b = 1; b < n; ++b)
    for (int64_t a = 0; a < b; ++a) {
      if (InitOf(loop, a) != InitOf(loop, b) || loop->shape().tuple()[a] != loop->shape().tuple()[b]) continue;
      const bool both_stay = IsInvariant(loop, a) && IsInvariant(loop, b);
      if (!both_stay && next(a) != next(b)) continue;
      bool did = Redirect(loop, b, a);
      did = Redirect((*loop->attrs().condition)->parameter(0), b, a) || did;
      // The body's root may go on forwarding the element itself.
      for (Instruction* u : ElementReaders(body->parameter(0), b)) {
        const bool only_forwarded = u->users().size() == 1 && u->users()[0] == body->root() && next(b) == u;
        if (only_forwarded) continue;
        Instruction* first = (*loop->attrs().body)->Add(Opcode::GetTupleElement, u->shape(), {u->operand(0)});
        first->mutable_attrs().tuple_index = a;
        for (Instruction* user : std::vector<Instruction*>(u->users()))
          if (user != body->root()) u->ReplaceUseWith(user, first);
        did = true;
      }
      changed = changed || did;
      break;
    }
  return changed;
}

// How many instructions call each computation.
absl::flat_hash_map<const Computation*, int64_t> CountCallers(const Module& m) {
  absl::flat_hash_map<const Computation*, int64_t> out;
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions())
      for (const Computation* callee : i->called()) ++out[callee];
  return out;
}

}  // namespace

absl::StatusOr<bool> SimplifyWhileLoops(Module& m, PassContext& ctx) {
  bool changed = false;
  PureComputations pure;
  absl::flat_hash_map<const Computation*, int64_t> callers = CountCallers(m);
  std::vector<Computation*> all = m.PostOrder();
  for (Computation* c : all) {
    for (Instruction* i : OfOpcode(c, Opcode::While)) {
      if (!IsPlainLoop(i, &pure)) continue;
      const std::optional<Induction> v = FindInduction(i);
      if (v && v->trips <= 1) {
        if (!ctx.Take()) continue;
        i->ReplaceAllUsesWith(v->trips == 0 ? i->operand(0) : InlineBody(c, *i->attrs().body, {i->operand(0)}, i));
        c->Remove(i);
        callers = CountCallers(m);
        changed = true;
        continue;
      }
      if (!ctx.Take()) continue;
      bool did = ReadInvariantsOutside(i);
      // Bodies may be shared by loops that differ in what they start with.
      const bool own = callers[*i->attrs().body] == 1 && callers[*i->attrs().condition] == 1;
      if (own) did = UnifyDuplicates(i) || did;
      const std::vector<bool> live = LiveElements(i);
      if (std::find(live.begin(), live.end(), false) != live.end() &&
          std::find(live.begin(), live.end(), true) != live.end()) {
        ShrinkLoop(i, live);
        did = true;
      }
      changed = changed || did;
    }
  }
  if (changed) {
    m.RemoveUnreachableComputations();
    RETURN_IF_ERROR(Dce(m, ctx).status());
  }
  return changed;
}

}  // namespace kiln
