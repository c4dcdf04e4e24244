#include "compiler/plan/rematerialize.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/plan/rematerialize_steps.h"

namespace kiln {
namespace {

constexpr int kMostTrials = 300;
constexpr size_t kAtOnce = 8;  // steps between two plans, at first

// A plan and the copy of the module that it is for.
struct Planned {
  std::unique_ptr<Module> module;
  MemoryPlan memory;
  int64_t excess = 0;  // bytes above the target, summed over time
  int64_t peak = 0;
};

class Fitter {
 public:
  Fitter(Module* m, const RematerializeOptions& o) : m_(m), o_(o), target_(o.limit) {}

  absl::StatusOr<RematerializeReport> Run() {
    RematerializeReport report;
    ASSIGN_OR_RETURN(Planned now, Plan(*m_, nullptr));
    report.before = report.after = now.memory.buffers.temp_bytes();
    if (report.before <= o_.limit) return report;
    std::unique_ptr<Module> best = m_->Clone();
    GiveEachReaderItsBitcast(best.get());
    NamedOrder order = NamesOf(now.memory.schedule);
    int trials = 0;
    while (now.memory.buffers.temp_bytes() > o_.limit && trials < kMostTrials) {
      if (now.excess == 0) {
        // The values fit but their places do not: aim lower.
        if (target_ < o_.limit / 2) break;
        target_ -= std::max<int64_t>(target_ / 32, 1);
        Measure(&now);
        continue;
      }
      // Many steps at once while that works, since a plan costs more than a step; one at a time where it does not.
      std::vector<Candidate> open;
      for (Candidate& c : Candidates(*best, now))
        if (!failed_.contains(c.Key())) open.push_back(std::move(c));
      if (open.empty()) break;
      for (size_t many = std::min(open.size(), kAtOnce);; many = std::max<size_t>(many / 2, 1)) {
        if (++trials > kMostTrials) break;
        std::unique_ptr<Module> trial = best->Clone();
        NamedOrder trial_order = order;
        std::vector<RematerializeStep> steps;
        absl::flat_hash_set<std::string> values;
        for (size_t k = 0; k < open.size() && steps.size() < many; ++k)
          if (values.insert(open[k].value).second && (!o_.take || o_.take()) &&
              Apply(trial.get(), open[k], &trial_order[open[k].computation]))
            steps.push_back(open[k].step);
        if (!steps.empty()) {
          ASSIGN_OR_RETURN(Planned planned, Plan(*trial, &trial_order));
          if (planned.excess < now.excess && planned.memory.buffers.slow_bytes() <= o_.slow_capacity) {
            now = std::move(planned);
            best = std::move(trial);
            order = std::move(trial_order);
            report.steps.insert(report.steps.end(), steps.begin(), steps.end());
            report.after = now.memory.buffers.temp_bytes();
            break;
          }
        }
        if (many > 1) continue;
        failed_.insert(open[0].Key());
        open.erase(open.begin());
        if (open.empty()) break;
      }
    }
    if (!report.steps.empty()) m_->TakeComputationsOf(std::move(best));
    report.order = std::move(order);
    return report;
  }

 private:
  // A bitcast that is read on both sides of a peak would hide that its operand could go.
  static void GiveEachReaderItsBitcast(Module* m) {
    for (const auto& c : m->computations()) {
      std::vector<Instruction*> order = c->PostOrder();
      for (auto it = order.rbegin(); it != order.rend(); ++it) {
        Instruction* b = *it;
        if (!b->Is(Opcode::Bitcast) || b->IsRoot()) continue;
        const std::vector<Instruction*> users = b->users();
        for (size_t k = 1; k < users.size(); ++k)
          b->ReplaceUseWith(users[k], c->AddClone(b, b->shape(), b->operands()));
      }
    }
  }

  absl::StatusOr<Planned> Plan(const Module& m, const NamedOrder* like) {
    Planned p;
    p.module = m.Clone();
    RETURN_IF_ERROR(o_.prepare(*p.module));
    ASSIGN_OR_RETURN(p.memory, PlanMemory(*p.module, {.scratch = o_.scratch, .like = like}));
    Measure(&p);
    return p;
  }

  void Measure(Planned* p) const {
    p->excess = p->peak = 0;
    for (int64_t n : p->memory.buffers.ArenaUse()) {
      p->peak = std::max(p->peak, n);
      p->excess += std::max<int64_t>(0, n - target_);
    }
  }

  // Every way to relieve the first tick of the highest peak, the best first.
  std::vector<Candidate> Candidates(const Module& base, const Planned& now) {
    std::vector<Candidate> out;
    const BufferAssignment& buffers = now.memory.buffers;
    const std::vector<int64_t> use = buffers.ArenaUse();
    const size_t tick = static_cast<size_t>(std::max_element(use.begin(), use.end()) - use.begin());
    // The instruction at the peak, and the loops and branches around it.
    const Instruction* at = buffers.timeline()[tick];
    while (at) {
      CollectCandidates(base, now.memory, at, now.peak, o_.slow_capacity, &out);
      const Instruction* caller = nullptr;
      for (const auto& [c, order] : now.memory.schedule)
        for (const Instruction* i : order)
          if (i->Is(Opcode::While) || i->Is(Opcode::Conditional))
            for (const Computation* callee : i->called())
              if (callee == at->parent()) caller = i;
      at = caller;
    }
    std::stable_sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) {
      const double x = a.gain * b.cost, y = b.gain * a.cost;
      return x != y ? x > y : a.gain > b.gain;
    });
    return out;
  }

  Module* m_;
  const RematerializeOptions& o_;
  int64_t target_;
  absl::flat_hash_set<std::string> failed_;
};

}  // namespace

const char* ToText(RematerializeStep::Kind kind) {
  static const char* const kNames[] = {"recompute", "compress", "offload"};
  return kNames[kind];
}

absl::StatusOr<RematerializeReport> Rematerialize(Module* m, const RematerializeOptions& options) {
  return Fitter(m, options).Run();
}

std::string OwnersOfPeak(const BufferAssignment& buffers, size_t most) {
  const std::vector<int64_t> use = buffers.ArenaUse();
  if (use.empty()) return "";
  const int64_t tick = std::max_element(use.begin(), use.end()) - use.begin();
  const std::vector<const Allocation*> owners = buffers.InArenaAt(tick);
  std::string out = absl::StrCat("at %", buffers.timeline()[static_cast<size_t>(tick)]->name(), ", ",
                                 use[static_cast<size_t>(tick)], " bytes are taken by");
  for (size_t k = 0; k < std::min(most, owners.size()); ++k) {
    const Allocation& a = *owners[k];
    absl::StrAppend(&out, "\n  ", a.slice.size, " bytes  %", a.owner, "  ", a.ShapeText());
    if (a.value->loc().line > 0) absl::StrAppend(&out, "  line ", a.value->loc().line);
  }
  if (owners.size() > most) absl::StrAppend(&out, "\n  and ", owners.size() - most, " smaller values");
  return out;
}

}  // namespace kiln
