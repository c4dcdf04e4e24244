// Values that a peak of memory carries along without reading them are computed again behind it.
//
// The limit is the module's own (`max_arena_bytes` of its header); without one, or below it, nothing happens. The order
// is the memory scheduler's. At the peak, the candidate that frees most bytes for its cost goes: its readers behind the
// peak read a copy, which a control edge keeps from running before. Candidates are pure, their operands are there
// anyway (arguments, constants, or values that live as long), and no copy is copied again.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "compiler/analysis/live_bytes.h"
#include "compiler/pipeline/registry.h"
#include "compiler/plan/schedule.h"

namespace kiln {
namespace {

int64_t LimitOf(const Module& m) {
  int64_t limit = 0;
  for (const auto& [key, value] : m.extra_header)
    if (key == "max_arena_bytes" && !absl::SimpleAtoi(value, &limit)) return 0;
  return limit;
}

bool Recomputes(const Instruction* i) {
  if (!i->shape().IsArray() || i->HasSideEffect() || i->HasTrait(Collective) || i->HasTrait(Async) ||
      !i->control_predecessors().empty() || !i->control_successors().empty() || i->IsRoot() ||
      absl::StrContains(i->name(), ".remat"))
    return false;
  switch (i->opcode()) {
    case Opcode::Parameter:
    case Opcode::Constant:
    case Opcode::Rng:
    case Opcode::RngGetAndUpdateState:
    case Opcode::While:
    case Opcode::Conditional:
    case Opcode::Call:
    case Opcode::CustomCall:
    case Opcode::GetTupleElement:
    case Opcode::Copy:
    case Opcode::Bitcast:
      return false;
    default:
      return true;
  }
}

int64_t CostOf(const Instruction* i) {
  int64_t n = i->shape().ElementCount();
  for (const Instruction* o : i->operands()) n += o->shape().ElementCount();
  if (i->Is(Opcode::Dot) || i->Is(Opcode::Convolution)) n *= 64;
  if (i->Is(Opcode::Fusion)) n *= (*i->attrs().calls)->instruction_count();
  return std::max<int64_t>(n, 1);
}

// One step; false if nothing at the peak can go.
bool Shrink(Module& m, int64_t limit, PassContext& ctx) {
  Computation* c = m.entry();
  const std::vector<Instruction*> order = ScheduleModule(m).at(c);
  const LiveBytes live(order);
  if (live.peak() <= limit) return false;
  const int64_t peak = live.peak_at();
  Instruction* best = nullptr;
  double best_gain = 0;
  for (Instruction* i : order) {
    const LiveBytes::Range r = live.RangeOf(i);
    if (r.begin >= peak || r.end <= peak || !Recomputes(i)) continue;
    bool read_at_peak = false, there = true;
    int64_t late = INT64_MAX;
    for (const Instruction* u : i->users()) {
      const int64_t at = live.PlaceOf(u);
      read_at_peak = read_at_peak || at == peak;
      if (at > peak) late = std::min(late, at);
    }
    for (const Instruction* o : i->operands())
      there = there && (o->Is(Opcode::Parameter) || o->Is(Opcode::Constant) || live.RangeOf(o).end >= late);
    if (read_at_peak || !there || late == INT64_MAX) continue;
    const double gain = static_cast<double>(i->shape().ByteSize()) / static_cast<double>(CostOf(i)) *
                        static_cast<double>(i->shape().ByteSize());
    if (gain > best_gain) {
      best_gain = gain;
      best = i;
    }
  }
  if (!best || !ctx.Take()) return false;
  Instruction* copy = c->Add(best->opcode(), best->shape(), best->operands(), best->name() + ".remat");
  copy->attrs() = best->attrs();
  copy->set_loc(best->loc());
  for (Instruction* u : std::vector<Instruction*>(best->users()))
    if (live.PlaceOf(u) > peak) best->ReplaceUseWith(u, copy);
  order[static_cast<size_t>(peak)]->AddControlDependencyTo(copy);
  return true;
}

}  // namespace

absl::StatusOr<bool> Rematerialization(Module& m, PassContext& ctx) {
  const int64_t limit = LimitOf(m);
  if (limit <= 0) return false;
  bool changed = false;
  // Every step takes a value out of one peak; there are at most so many values.
  for (int64_t k = m.entry()->instruction_count(); k > 0 && Shrink(m, limit, ctx); --k) changed = true;
  return changed;
}

}  // namespace kiln
