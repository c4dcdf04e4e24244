// Loops that never run are their start, loops that run once their body; what no iteration changes is read from before
// the loop, elements that are always equal become one, constants and counters are computed where they are read,
// comparisons that come out alike in every iteration are constants, nested states become flat, and elements that nobody
// needs leave the state.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/collectives/annotations.h"
#include "compiler/passes/loops/trip_search.h"
#include "compiler/passes/loops/while_simplifications.h"
#include "compiler/passes/loops/while_state.h"
#include "compiler/passes/other_passes.h"
#include "compiler/passes/simplify/inline_body.h"

namespace kiln {
namespace {

// Whether the body or the condition does anything with element `k` but forward it.
bool UsedInside(const Instruction* loop, int64_t k) {
  const Computation *body = *loop->attrs().body, *condition = *loop->attrs().condition;
  for (const Computation* c : {body, condition})
    for (const Instruction* e : ElementReaders(c->parameter(0), k)) {
      if (e->IsRoot()) return true;
      for (const Instruction* u : e->users())
        if (c != body || u != body->root()) return true;
    }
  for (int64_t other = 0; other < body->root()->operand_count(); ++other) {
    const Instruction* next = body->root()->operand(other);
    if (other != k && next->Is(Opcode::GetTupleElement) && next->operand(0) == body->parameter(0) &&
        *next->attrs().tuple_index == k)
      return true;
  }
  return false;
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

// How many instructions call each computation.
absl::flat_hash_map<const Computation*, int64_t> CountCallers(const Module& m) {
  absl::flat_hash_map<const Computation*, int64_t> out;
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions())
      for (const Computation* callee : i->called()) ++out[callee];
  return out;
}

// A state that starts or ends as a whole is taken apart only if an element can leave.
bool WorthExposing(const Instruction* loop) {
  const std::vector<bool> live = LiveElements(loop);
  for (size_t n = 0; n < live.size(); ++n) {
    const int64_t k = static_cast<int64_t>(n);
    if (!live[n] || (IsInvariant(loop, k) && !UsedInside(loop, k))) return true;
    const Instruction *init = InitOf(loop, k), *next = (*loop->attrs().body)->root()->operand(k);
    if (init && init->Is(Opcode::Constant) && next->Is(Opcode::Constant) && init->literal() == next->literal())
      return true;
  }
  return false;
}

// Front ends may ask that the state stays as they wrote it.
bool KeepsItsState(const Instruction* loop) {
  for (const char* key : {"_xla_disable_while_loop_dce", "xla.disable_while_loop_dce", "_xla_preserve_tuple_indices",
                          "xla.preserve_tuple_indices"}) {
    const std::string value = absl::AsciiStrToLower(AnnotationOf(loop, key).value_or(""));
    if (value == "true" || value == "1" || value == "yes") return true;
  }
  return false;
}

bool MayBeEdited(const Instruction* loop) {
  const Computation *body = *loop->attrs().body, *condition = *loop->attrs().condition;
  if (!HasFlatBodies(loop) || !HasNoControlEdges(body, condition)) return false;
  for (const Shape& s : loop->shape().tuple())
    if (!s.IsArray()) return false;
  return true;
}

// The least and the greatest value of a number.
struct Range {
  __int128 low, high;
};

// The range, if every value is one of `t` that 64 bits with a sign hold.
std::optional<Range> Within(const Range& r, PrimitiveType t) {
  const int64_t bits = std::min<int64_t>(BitWidth(t) - (IsSigned(t) ? 1 : 0), 63);
  const __int128 end = static_cast<__int128>(1) << bits;
  return r.low >= (IsSigned(t) ? -end : 0) && r.high < end ? std::optional(r) : std::nullopt;
}

// Of a sum, difference, product, maximum or minimum.
Range Combined(Opcode op, const Range& a, const Range& b) {
  if (op == Opcode::Add) return {a.low + b.low, a.high + b.high};
  if (op == Opcode::Subtract) return {a.low - b.high, a.high - b.low};
  if (op == Opcode::Maximum) return {std::max(a.low, b.low), std::max(a.high, b.high)};
  if (op == Opcode::Minimum) return {std::min(a.low, b.low), std::min(a.high, b.high)};
  const auto [low, high] = std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return {low, high};
}

// What integer `i` of the body may be while the loop runs, as far as it is made of the counter and constants and does
// not wrap.
std::optional<Range> RangeOf(const Instruction* i, const Instruction* state, const Induction& v, int depth = 8) {
  const PrimitiveType t = i->shape().type();
  if (depth == 0 || !i->shape().IsScalar() || !IsIntegral(t)) return std::nullopt;
  if (i->Is(Opcode::Constant)) {
    const __int128 value = i->literal().Get(0).i;
    return Within({value, value}, t);
  }
  if (i->Is(Opcode::GetTupleElement)) {
    if (i->operand(0) != state || *i->attrs().tuple_index != v.index) return std::nullopt;
    const __int128 first = v.init, last = first + static_cast<__int128>(v.step) * (v.trips - 1);
    return Within({std::min(first, last), std::max(first, last)}, t);
  }
  if (i->Is(Opcode::Convert)) {
    const auto r = RangeOf(i->operand(0), state, v, depth - 1);
    return r ? Within(*r, t) : std::nullopt;
  }
  if (!i->Is(Opcode::Add) && !i->Is(Opcode::Subtract) && !i->Is(Opcode::Multiply) && !i->Is(Opcode::Maximum) &&
      !i->Is(Opcode::Minimum))
    return std::nullopt;
  const auto a = RangeOf(i->operand(0), state, v, depth - 1), b = RangeOf(i->operand(1), state, v, depth - 1);
  return a && b ? Within(Combined(i->opcode(), *a, *b), t) : std::nullopt;
}

// Whether `a` is below `b`, and so on, if that is so, or is not, for all their values.
std::optional<bool> Decided(Direction d, const Range& a, const Range& b) {
  if (d == Direction::GT || d == Direction::GE) return Decided(Mirrored(d), b, a);
  if (d == Direction::LT || d == Direction::LE) {
    if (a.high < b.low || (d == Direction::LE && a.high == b.low)) return true;
    if (a.low > b.high || (d == Direction::LT && a.low == b.high)) return false;
    return std::nullopt;
  }
  if (a.high < b.low || a.low > b.high) return d == Direction::NE;
  if (a.low == a.high && b.low == b.high) return d == Direction::EQ;
  return std::nullopt;
}

// Comparisons that come out alike in every iteration are constants.
bool FoldDecided(Instruction* loop) {
  const std::optional<Induction> v = FindInduction(loop);
  if (!v || v->trips < 1) return false;
  Computation* body = *loop->attrs().body;
  bool changed = false;
  for (Instruction* i : OfOpcode(body, Opcode::Compare)) {
    const auto a = RangeOf(i->operand(0), body->parameter(0), *v), b = RangeOf(i->operand(1), body->parameter(0), *v);
    const std::optional<bool> answer = a && b ? Decided(*i->attrs().direction, *a, *b) : std::nullopt;
    if (!answer || !i->control_predecessors().empty() || !i->control_successors().empty()) continue;
    i->ReplaceAllUsesWith(body->AddConstant(Literal::Int(PrimitiveType::Pred, *answer)));
    body->Remove(i);
    changed = true;
  }
  return changed;
}

class Simplifier {
 public:
  Simplifier(Module& m, PassContext& ctx) : m_(m), ctx_(ctx), callers_(CountCallers(m)) {}

  bool Run(Computation* c) {
    bool changed = false;
    for (Instruction* loop : OfOpcode(c, Opcode::While)) {
      if (!loop->control_predecessors().empty() || !loop->control_successors().empty()) continue;
      if (ctx_.fuel == 0 || KeepsItsState(loop)) continue;
      bool did = false;
      if (Instruction* flat = FlattenState(loop)) {
        loop = flat;
        callers_ = CountCallers(m_);
        did = true;
      }
      did = TakeApart(loop) || (MayBeEdited(loop) && Shrink(loop)) || did;
      if (did) ctx_.Take();
      changed |= did;
    }
    return changed;
  }

 private:
  bool TakeApart(Instruction* loop) {
    if (!loop->operand(0)->Is(Opcode::Tuple) || !pure_.Contains(*loop->attrs().condition)) return false;
    const std::optional<Induction> v = FindInduction(loop);
    const std::optional<int64_t> trips = v ? v->trips : CountTrips(loop, 1);
    if (!trips || *trips > 1 || (*trips == 1 && !pure_.Contains(*loop->attrs().body))) return false;
    if (*trips == 1 && AnnotationOf(loop, "skip-simplify-while-loops_trip-count-one") == "true") return false;
    Computation* c = loop->parent();
    loop->ReplaceAllUsesWith(*trips == 0 ? loop->operand(0)
                                         : InlineBody(c, *loop->attrs().body, {loop->operand(0)}, loop));
    c->Remove(loop);
    callers_ = CountCallers(m_);
    return true;
  }

  bool Shrink(Instruction* loop) {
    bool did = false;
    // Bodies may be shared by loops that differ in what they start with.
    const bool owned = callers_[*loop->attrs().body] == 1 && callers_[*loop->attrs().condition] == 1;
    if (owned && !HasFlatState(loop) && WorthExposing(loop)) {
      ExposeState(loop);
      did = true;
    }
    const bool flat = HasFlatState(loop);
    if (flat) did = ReadInvariantsOutside(loop) || did;
    if (owned && loop->operand(0)->Is(Opcode::Tuple)) {
      did = UnifyDuplicates(loop) || did;
      did = ReadConstantsInside(loop) || did;
      did = FoldDecided(loop) || did;
      if (flat) {
        did = ForwardConstants(loop) || did;
        did = MergeInductions(loop) || did;
      }
    }
    if (!flat) return did;
    const std::vector<bool> live = LiveElements(loop);
    const int64_t kept = std::count(live.begin(), live.end(), true);
    if (kept == 0 || kept == static_cast<int64_t>(live.size())) return did;
    ShrinkLoop(loop, live);
    return true;
  }

  Module& m_;
  PassContext& ctx_;
  PureComputations pure_;
  absl::flat_hash_map<const Computation*, int64_t> callers_;
};

}  // namespace

absl::StatusOr<bool> SimplifyWhileLoops(Module& m, PassContext& ctx) {
  bool changed = false;
  Simplifier simplifier(m, ctx);
  const std::vector<Computation*> all = m.PostOrder();
  for (Computation* c : all) changed |= simplifier.Run(c);
  if (changed) {
    m.RemoveUnreachableComputations();
    RETURN_IF_ERROR(Dce(m, ctx).status());
  }
  return changed;
}

}  // namespace kiln
