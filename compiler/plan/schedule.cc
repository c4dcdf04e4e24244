#include "compiler/plan/schedule.h"

#include <algorithm>
#include <bitset>
#include <queue>
#include <tuple>
#include <unordered_map>

#include "compiler/plan/alias.h"
#include "compiler/plan/overlap.h"

namespace kiln {
namespace {

bool TakesStorage(const Instruction* i) {
  if (InfoOf(i->opcode()).lowering == Lowering::Free || i->Is(Opcode::While)) return false;
  return !UpdatesInPlace(i) && !i->shape().LiesInSlowMemory();
}

class ComputationScheduler {
 public:
  ComputationScheduler(const Computation* c, const absl::flat_hash_map<const Computation*, int64_t>& callee_peaks,
                       ResultMemory results)
      : c_(c), peaks_(callee_peaks) {
    post_ = c->PostOrder();
    for (Instruction* i : post_) {
      bytes_[i] = TakesStorage(i) ? i->shape().ByteSize() : 0;
      // Storage that each use keeps alive, through tuples and bitcasts.
      std::vector<Instruction*>& reads = reads_[i];
      for (Instruction* o : i->operands()) {
        const std::vector<Instruction*>& of_operand = storage_.at(o);
        reads.insert(reads.end(), of_operand.begin(), of_operand.end());
      }
      std::sort(reads.begin(), reads.end(), [](auto* a, auto* b) { return a->id() < b->id(); });
      reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
      storage_[i] = StorageOf(i);
    }
    for (Instruction* i : post_) {
      for (Instruction* r : reads_[i]) ++readers_[r];
      // Operands whose memory a result may take over.
      for (int64_t k = 0; k < i->operand_count(); ++k) {
        if (!i->operand(k)->shape().IsArray() || !MayShareWithOperand(i, k, i->Is(Opcode::AllReduce) ? k : 0)) continue;
        Instruction* r = SourceOf({i->operand(k), {}}).instruction;
        auto& over = takes_over_[i];
        if (bytes_.contains(r) && r->shape().IsArray() && std::find(over.begin(), over.end(), r) == over.end())
          over.push_back(r);
      }
    }
    for (Instruction* r : storage_.at(c->root())) ++readers_[r];
    if (results == ResultMemory::kFree)
      ForEachLeaf(c->root()->shape(), [&](const ShapeIndex& idx, const Shape& s) {
        if (s.IsArray()) LiesInResult({c->root(), idx}, s.ByteSize());
      });
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
    std::vector<Instruction*> order = Search(*peak);
    if (!order.empty()) best = std::move(order);
    best = Overlapped(std::move(best), [this](const Order& o) { return Peak(o); });
    *peak = Peak(best);
    return best;
  }

  int64_t Peak(const std::vector<Instruction*>& order) const {
    auto left = readers_;
    int64_t live = 0, peak = 0;
    for (Instruction* i : order) {
      for (Instruction* r : reads_.at(i)) --left[r];
      int64_t over = 0;
      if (auto it = takes_over_.find(i); it != takes_over_.end())
        for (Instruction* r : it->second)
          if (left[r] == 0) over += bytes_.at(r);
      live += bytes_.at(i);
      peak = std::max(peak, live - std::min(over, bytes_.at(i)) + Extra(i));
      for (Instruction* r : reads_.at(i))
        if (left[r] == 0) live -= bytes_.at(r);
      if (auto it = left.find(i); it == left.end() || it->second == 0) live -= bytes_.at(i);
    }
    return peak;
  }

 private:
  // Follows a result to the instruction that first writes its memory, which costs the arena nothing.
  void LiesInResult(Leaf leaf, int64_t bytes) {
    for (int guard = 0; guard < 10000; ++guard) {
      leaf = SourceOf(leaf);
      Instruction* i = leaf.instruction;
      if (i->Is(Opcode::While)) {
        leaf = {i->operand(0), leaf.index};
        continue;
      }
      const int64_t k = InPlaceOperand(i, leaf.index.empty() ? 0 : leaf.index[0]);
      if (k < 0) break;
      leaf = {i->operand(k), {}};
    }
    if (auto it = bytes_.find(leaf.instruction); it != bytes_.end())
      it->second = std::max<int64_t>(0, it->second - bytes);
  }

  // The instructions whose memory holds the value of `i`; those of its operands are known.
  std::vector<Instruction*> StorageOf(Instruction* i) const {
    std::vector<Instruction*> out;
    const auto add = [&](const Instruction* o) {
      const std::vector<Instruction*>& of_operand = storage_.at(o);
      out.insert(out.end(), of_operand.begin(), of_operand.end());
    };
    switch (i->opcode()) {
      case Opcode::Tuple:
        for (Instruction* o : i->operands()) add(o);
        return out;
      case Opcode::GetTupleElement: {
        const Instruction* tuple = i->operand(0)->Is(Opcode::While) ? i->operand(0)->operand(0) : i->operand(0);
        add(tuple->Is(Opcode::Tuple) ? tuple->operand(*i->attrs().tuple_index) : i->operand(0));
        return out;
      }
      case Opcode::Bitcast:
      case Opcode::AddDependency:
      case Opcode::Domain:
      case Opcode::While:
        add(i->operand(0));
        return out;
      default:
        break;
    }
    if (bytes_.at(i) > 0) out.push_back(i);
    const int64_t outputs = i->shape().IsTuple() ? static_cast<int64_t>(i->shape().tuple().size()) : 1;
    for (int64_t o = 0; o < outputs; ++o)
      if (const int64_t k = InPlaceOperand(i, o); k >= 0) add(i->operand(k));  // works in its operand's storage
    return out;
  }

  int64_t Extra(const Instruction* i) const {
    int64_t n = 0;
    if (i->Is(Opcode::While) || i->Is(Opcode::Conditional))
      for (const Computation* f : i->called()) n = std::max(n, peaks_.contains(f) ? peaks_.at(f) : 0);
    return n;
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

  // An order with a peak below `bound`, the smallest there is; empty if there is none or the search gave up.
  std::vector<Instruction*> Search(int64_t bound) {
    constexpr size_t kMostInstructions = 512, kMostStates = 20000;
    using Set = std::bitset<kMostInstructions>;
    const size_t n = post_.size();
    if (n > kMostInstructions) return {};
    absl::flat_hash_map<const Instruction*, size_t> place;
    for (size_t k = 0; k < n; ++k) place[post_[k]] = k;
    std::vector<Set> needs(n), readers(n);
    std::vector<std::vector<size_t>> reads(n), over(n);
    std::vector<int64_t> bytes(n), extra(n);
    Set live_out;
    int64_t least = 0;  // no order can do with less than its hungriest instruction
    for (size_t k = 0; k < n; ++k) {
      for (auto* list : {&post_[k]->operands(), &post_[k]->control_predecessors()})
        for (const Instruction* o : *list) needs[k].set(place.at(o));
      bytes[k] = bytes_.at(post_[k]);
      extra[k] = Extra(post_[k]);
      int64_t both = bytes[k] + extra[k];
      for (const Instruction* r : reads_.at(post_[k])) {
        const size_t p = place.at(r);
        reads[k].push_back(p);
        readers[p].set(k);
        both += bytes[p];
      }
      int64_t taken = 0;
      if (auto it = takes_over_.find(post_[k]); it != takes_over_.end())
        for (const Instruction* r : it->second) {
          over[k].push_back(place.at(r));
          taken += bytes[over[k].back()];
        }
      least = std::max(least, both - std::min(taken, bytes[k]));
    }
    if (least >= bound) return {};
    for (const Instruction* r : storage_.at(c_->root())) live_out.set(place.at(r));

    struct State {
      Set done;
      int64_t live, peak;
      size_t from, step;
    };
    std::vector<State> states;
    std::unordered_map<Set, int64_t> peaks;  // the smallest by which a set was reached
    // The smallest peak first; among those the one that came furthest, then the oldest.
    using Entry = std::tuple<int64_t, int64_t, size_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    auto extend = [&](State s, size_t from, size_t k) {
      s.done.set(k);
      auto dies = [&](size_t r) { return !live_out[r] && (readers[r] & ~s.done).none(); };
      int64_t taken = 0;
      for (size_t r : over[k])
        if (dies(r)) taken += bytes[r];
      s.live += bytes[k];
      s.peak = std::max(s.peak, s.live - std::min(taken, bytes[k]) + extra[k]);
      for (size_t r : reads[k])
        if (dies(r)) s.live -= bytes[r];
      if (dies(k)) s.live -= bytes[k];
      s.from = from;
      s.step = k;
      return s;
    };
    auto add = [&](State s) {
      if (s.peak >= bound) return;
      const auto [known, fresh] = peaks.insert({s.done, s.peak});
      if (!fresh && known->second <= s.peak) return;
      known->second = s.peak;
      queue.push({s.peak, -static_cast<int64_t>(s.done.count()), states.size()});
      states.push_back(std::move(s));
    };
    add({Set(), 0, 0, SIZE_MAX, SIZE_MAX});
    while (!queue.empty() && states.size() < kMostStates) {
      const size_t at = std::get<2>(queue.top());
      queue.pop();
      if (peaks[states[at].done] < states[at].peak) continue;  // reached better since
      if (states[at].done.count() == n) {
        std::vector<Instruction*> order;
        for (size_t s = at; states[s].from != SIZE_MAX; s = states[s].from) order.push_back(post_[states[s].step]);
        std::reverse(order.begin(), order.end());
        return order;
      }
      std::vector<size_t> ready;
      bool free = false;
      for (size_t k = 0; k < n && !free; ++k) {
        if (states[at].done[k] || (needs[k] & ~states[at].done).any()) continue;
        // What takes nothing can only help: no other choice need be looked at.
        free = bytes[k] == 0 && extra[k] == 0;
        if (free) ready.clear();
        ready.push_back(k);
      }
      for (size_t k : ready) add(extend(states[at], at, k));
    }
    return {};
  }

  const Computation* c_;
  const absl::flat_hash_map<const Computation*, int64_t>& peaks_;
  std::vector<Instruction*> post_;
  absl::flat_hash_map<const Instruction*, int64_t> bytes_;
  absl::flat_hash_map<const Instruction*, std::vector<Instruction*>> reads_, storage_;
  absl::flat_hash_map<const Instruction*, std::vector<Instruction*>> takes_over_;
  absl::flat_hash_map<Instruction*, int64_t> readers_;
};

}  // namespace

int64_t ScheduledPeak(const Computation* c, const std::vector<Instruction*>& order) {
  return ComputationScheduler(c, {}, ResultMemory::kFree).Peak(order);
}

namespace {

std::vector<Instruction*> OrderLike(const Computation* c, const std::vector<std::string>& names) {
  const std::vector<Instruction*> post = c->PostOrder();
  absl::flat_hash_map<std::string, int64_t> place;
  for (const std::string& n : names) place.insert({n, static_cast<int64_t>(place.size())});
  absl::flat_hash_map<const Instruction*, int64_t> key;
  for (auto it = post.rbegin(); it != post.rend(); ++it) {
    if (auto p = place.find((*it)->name()); p != place.end()) {
      key[*it] = p->second;
      continue;
    }
    int64_t first = static_cast<int64_t>(names.size());
    for (auto* list : {&(*it)->users(), &(*it)->control_successors()})
      for (const Instruction* u : *list)
        if (auto k = key.find(u); k != key.end()) first = std::min(first, k->second);
    key[*it] = first;
  }
  // Ties go to the post-order: what an unnamed instruction's reader needs comes before that reader.
  using Entry = std::pair<int64_t, size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  absl::flat_hash_map<const Instruction*, size_t> at;
  absl::flat_hash_map<const Instruction*, int64_t> waiting;
  for (size_t k = 0; k < post.size(); ++k) at[post[k]] = k;
  for (Instruction* i : post) {
    int64_t& n = waiting[i];
    absl::flat_hash_set<const Instruction*> before(i->operands().begin(), i->operands().end());
    before.insert(i->control_predecessors().begin(), i->control_predecessors().end());
    n = static_cast<int64_t>(before.size());
    if (n == 0) ready.push({key.at(i), at.at(i)});
  }
  std::vector<Instruction*> order;
  while (!ready.empty()) {
    Instruction* i = post[ready.top().second];
    ready.pop();
    order.push_back(i);
    absl::flat_hash_set<const Instruction*> next(i->users().begin(), i->users().end());
    next.insert(i->control_successors().begin(), i->control_successors().end());
    for (const Instruction* u : next)
      if (--waiting.at(u) == 0) ready.push({key.at(u), at.at(u)});
  }
  return order.size() == post.size() ? order : post;
}

}  // namespace

NamedOrder NamesOf(const Schedule& schedule) {
  NamedOrder out;
  for (const auto& [c, order] : schedule)
    for (const Instruction* i : order) out[c->name()].push_back(i->name());
  return out;
}

Schedule ScheduleModule(const Module& m, ResultMemory results, const NamedOrder* like) {
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
    if (like && like->contains(c->name())) {
      out[c] = OrderLike(c, like->at(c->name()));
      continue;
    }
    out[c] = ComputationScheduler(c, peaks, c == m.entry() ? results : ResultMemory::kFree).Best(&peaks[c]);
  }
  return out;
}

}  // namespace kiln
