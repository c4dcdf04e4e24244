#include "compiler/plan/schedule.h"

#include <algorithm>
#include <set>

#include "compiler/plan/alias.h"

namespace kiln {
namespace {

bool TakesStorage(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::Parameter:
    case Opcode::Constant:
    case Opcode::Tuple:
    case Opcode::GetTupleElement:
    case Opcode::Bitcast:
    case Opcode::While:
      return false;
    default:
      return InPlaceOperand(i) < 0;
  }
}

class ComputationScheduler {
 public:
  ComputationScheduler(const Computation* c, const absl::flat_hash_map<const Computation*, int64_t>& callee_peaks)
      : c_(c), peaks_(callee_peaks) {
    post_ = c->PostOrder();
    for (Instruction* i : post_) {
      bytes_[i] = TakesStorage(i) ? i->shape().ByteSize() : 0;
      // Storage that each use keeps alive, through tuples and bitcasts.
      for (Instruction* o : i->operands()) Sources(o, &reads_[i]);
      std::sort(reads_[i].begin(), reads_[i].end(), [](auto* a, auto* b) { return a->id() < b->id(); });
      reads_[i].erase(std::unique(reads_[i].begin(), reads_[i].end()), reads_[i].end());
    }
    for (Instruction* i : post_)
      for (Instruction* r : reads_[i]) ++readers_[r];
    std::vector<Instruction*> live_out;
    Sources(c->root(), &live_out);
    for (Instruction* r : live_out) ++readers_[r];
  }

  std::vector<Instruction*> Best(int64_t* peak) {
    std::vector<Instruction*> best = post_;
    *peak = Peak(post_);
    for (auto make : {&ComputationScheduler::DepthFirst, &ComputationScheduler::List}) {
      std::vector<Instruction*> order = (this->*make)();
      const int64_t p = Peak(order);
      if (p < *peak) {
        *peak = p;
        best = std::move(order);
      }
    }
    return best;
  }

 private:
  void Sources(Instruction* i, std::vector<Instruction*>* out) {
    switch (i->opcode()) {
      case Opcode::Tuple:
        for (Instruction* o : i->operands()) Sources(o, out);
        return;
      case Opcode::GetTupleElement:
        if (i->operand(0)->Is(Opcode::Tuple)) return Sources(i->operand(0)->operand(*i->attrs().tuple_index), out);
        [[fallthrough]];
      case Opcode::Bitcast:
        return Sources(i->operand(0), out);
      default:
        break;
    }
    const int64_t k = InPlaceOperand(i);
    out->push_back(i);
    if (k >= 0) Sources(i->operand(k), out);  // works in its operand's storage
    if (i->Is(Opcode::While)) Sources(i->operand(0), out);
  }

  int64_t Extra(const Instruction* i) const {
    int64_t n = 0;
    if (i->Is(Opcode::While) || i->Is(Opcode::Conditional))
      for (const Computation* f : i->called()) n = std::max(n, peaks_.contains(f) ? peaks_.at(f) : 0);
    return n;
  }

  int64_t Peak(const std::vector<Instruction*>& order) const {
    auto left = readers_;
    int64_t live = 0, peak = 0;
    for (Instruction* i : order) {
      live += bytes_.at(i);
      peak = std::max(peak, live + Extra(i));
      for (Instruction* r : reads_.at(i))
        if (--left[r] == 0) live -= bytes_.at(r);
      if (auto it = left.find(i); it == left.end() || it->second == 0) live -= bytes_.at(i);
    }
    return peak;
  }

  std::vector<Instruction*> DepthFirst() {
    // Operands with the most memory behind them first, so that what they free is freed early.
    absl::flat_hash_map<const Instruction*, int64_t> weight;
    for (Instruction* i : post_) {
      int64_t w = bytes_[i];
      for (Instruction* o : i->operands()) w = std::max(w, weight[o]);
      weight[i] = w;
    }
    std::vector<Instruction*> order;
    absl::flat_hash_map<const Instruction*, int> state;
    auto visit = [&](Instruction* start) {
      std::vector<std::pair<Instruction*, bool>> stack = {{start, false}};
      while (!stack.empty()) {
        auto [i, done] = stack.back();
        stack.pop_back();
        if (done) {
          if (state[i] != 2) {
            state[i] = 2;
            order.push_back(i);
          }
          continue;
        }
        if (state[i]) continue;
        state[i] = 1;
        stack.push_back({i, true});
        std::vector<Instruction*> preds = i->operands();
        preds.insert(preds.end(), i->control_predecessors().begin(), i->control_predecessors().end());
        std::stable_sort(preds.begin(), preds.end(), [&](auto* a, auto* b) { return weight[a] < weight[b]; });
        for (Instruction* o : preds)  // pushed last is visited first
          if (!state[o]) stack.push_back({o, false});
      }
    };
    visit(c_->root());
    for (Instruction* i : post_) visit(i);
    return order.size() == post_.size() && Valid(order) ? order : post_;
  }

  bool Valid(const std::vector<Instruction*>& order) const {
    absl::flat_hash_set<const Instruction*> seen;
    for (Instruction* i : order) {
      for (auto* list : {&i->operands(), &i->control_predecessors()})
        for (Instruction* o : *list)
          if (!seen.contains(o)) return false;
      seen.insert(i);
    }
    return true;
  }

  std::vector<Instruction*> List() {
    if (post_.size() > 20000) return post_;  // quadratic behaviour is not worth it there
    absl::flat_hash_map<Instruction*, int> waiting;
    auto left = readers_;
    auto gain = [&](Instruction* i) {
      int64_t g = -bytes_[i];
      for (Instruction* r : reads_[i])
        if (left[r] == 1) g += bytes_[r];
      return g;
    };
    absl::flat_hash_map<const Instruction*, int64_t> position;
    for (size_t k = 0; k < post_.size(); ++k) position[post_[k]] = static_cast<int64_t>(k);
    std::vector<Instruction*> ready, order;
    for (Instruction* i : post_) {
      absl::flat_hash_set<Instruction*> preds(i->operands().begin(), i->operands().end());
      preds.insert(i->control_predecessors().begin(), i->control_predecessors().end());
      waiting[i] = static_cast<int>(preds.size());
      if (preds.empty()) ready.push_back(i);
    }
    while (!ready.empty()) {
      size_t pick = 0;
      int64_t best = INT64_MIN;
      for (size_t k = 0; k < ready.size(); ++k) {
        const int64_t g = gain(ready[k]);
        if (g > best || (g == best && position[ready[k]] < position[ready[pick]])) {
          best = g;
          pick = k;
        }
      }
      Instruction* i = ready[pick];
      ready.erase(ready.begin() + static_cast<int64_t>(pick));
      order.push_back(i);
      for (Instruction* r : reads_[i]) --left[r];
      absl::flat_hash_set<Instruction*> next(i->users().begin(), i->users().end());
      next.insert(i->control_successors().begin(), i->control_successors().end());
      std::vector<Instruction*> sorted(next.begin(), next.end());
      std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->id() < b->id(); });
      for (Instruction* u : sorted)
        if (--waiting[u] == 0) ready.push_back(u);
    }
    return order.size() == post_.size() ? order : post_;
  }

  const Computation* c_;
  const absl::flat_hash_map<const Computation*, int64_t>& peaks_;
  std::vector<Instruction*> post_;
  absl::flat_hash_map<const Instruction*, int64_t> bytes_;
  absl::flat_hash_map<const Instruction*, std::vector<Instruction*>> reads_;
  absl::flat_hash_map<Instruction*, int64_t> readers_;
};

}  // namespace

Schedule ScheduleModule(const Module& m) {
  Schedule out;
  absl::flat_hash_map<const Computation*, int64_t> peaks;
  absl::flat_hash_set<const Computation*> runs = {m.entry()};
  const auto order = m.PostOrder();
  for (auto it = order.rbegin(); it != order.rend(); ++it)
    if (runs.contains(*it))
      for (const auto& i : (*it)->instructions())
        if (i->Is(Opcode::While) || i->Is(Opcode::Conditional))
          for (const Computation* f : i->called()) runs.insert(f);
  for (Computation* c : order) {
    if (!runs.contains(c)) continue;
    out[c] = ComputationScheduler(c, peaks).Best(&peaks[c]);
  }
  return out;
}

}  // namespace kiln
