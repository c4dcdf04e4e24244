#include "compiler/plan/flight.h"

#include <algorithm>
#include <deque>

#include "compiler/plan/alias.h"
#include "compiler/plan/held_order.h"

namespace kiln {
namespace {

bool IsFree(const Instruction* i) { return InfoOf(i->opcode()).lowering == Lowering::Free; }

bool IsExchange(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::AllGather:
    case Opcode::AllReduce:
    case Opcode::AllToAll:
    case Opcode::CollectivePermute:
    case Opcode::ReduceScatter:
      return true;
    default:
      return false;
  }
}

int64_t OperandBytes(const Instruction* i) {
  int64_t bytes = 0;
  for (const Instruction* o : i->operands()) bytes += o->shape().ByteSize();
  return bytes;
}

// What reads the results of `i`, and only names for them in between.
std::vector<Instruction*> Readers(Instruction* i) {
  std::vector<Instruction*> out;
  ForEachLeaf(i->shape(), [&](const ShapeIndex& idx, const Shape& s) {
    if (!s.IsArray()) return;
    const std::vector<Instruction*> uses = UsesOf({i, idx});
    out.insert(out.end(), uses.begin(), uses.end());
  });
  return out;
}

// Nothing that an exchange may move past but other exchanges.
bool IsFence(const Instruction* i) { return !IsExchange(i) && (i->HasTrait(Collective) || Communicates(i)); }

// What stands before `i`.
std::vector<Instruction*> Before(const Instruction* i) {
  std::vector<Instruction*> out = i->operands();
  out.insert(out.end(), i->control_predecessors().begin(), i->control_predecessors().end());
  return out;
}

// A part of what a computation begins with.
bool IsGiven(const Instruction* i) {
  return i->Is(Opcode::Parameter) || (i->Is(Opcode::GetTupleElement) && IsGiven(i->operand(0)));
}

// Work that is done for an exchange alone may begin with it: a slice, a conversion.
bool IsPreparation(const Instruction* i, int64_t most_bytes) {
  switch (i->opcode()) {
    case Opcode::Fusion:
      if (UpdatesInPlace(i)) return false;
      for (const auto& x : (*i->attrs().calls)->instructions())
        if (x->Is(Opcode::Dot) || x->Is(Opcode::Convolution) || x->Is(Opcode::Reduce)) return false;
      break;
    case Opcode::Copy:
    case Opcode::Slice:
    case Opcode::DynamicSlice:
    case Opcode::Transpose:
    case Opcode::Reshape:
    case Opcode::Constant:
      break;
    default:
      return IsFree(i);
  }
  return i->shape().IsArray() && i->shape().ByteSize() <= most_bytes;
}

class Mover {
 public:
  Mover(const Order& order, int64_t least_bytes) : order_(order) {
    for (size_t k = 0; k < order.size(); ++k) at_[order[k]] = k;
    for (Instruction* i : order) {
      if (!IsLargeExchange(i, least_bytes)) continue;
      const Instruction* first = nullptr;
      const bool given = std::all_of(i->operands().begin(), i->operands().end(), IsGiven);
      for (Instruction* r : Readers(i)) {
        readers_.insert(r);
        if (given) late_.insert(r);
        if (at_.contains(r) && (!first || at_.at(r) < at_.at(first))) first = r;
      }
      if (given) given_.push_back(exchanges_.size());
      const std::vector<Instruction*> readers = Readers(i);
      if (!given && !readers.empty() && std::all_of(readers.begin(), readers.end(), UpdatesInPlace))
        stored_.push_back(exchanges_.size());
      if (first)
        lands_[first].push_back(exchanges_.size());
      else
        carried_.push_back(exchanges_.size());
      exchanges_.push_back(i);
    }
  }

  bool any() const { return !exchanges_.empty(); }

  // Each begins when the one before it is taken, or behind the fence that kept it from that, or if its results are only
  // stored, once what it gives can be made; those of what the computation begins with begin with it, and those whose
  // results nothing here reads as soon as they can, since their memory is theirs all the time.
  Order Ahead() {
    size_t fence = NextFence(0);
    Hoist(0, fence);
    for (const size_t number : given_) Hoist(number, fence);
    for (size_t k = 0; k < order_.size(); ++k) {
      Instruction* i = order_[k];
      if (done_.contains(i)) continue;
      if (const auto lands = lands_.find(i); lands != lands_.end()) {
        if (const size_t next = Next(); next > lands->second.front()) Hoist(next, fence);
      }
      Put(i);
      if (k == fence) {
        fence = NextFence(k + 1);
        Hoist(Next(), fence);
      }
      Try(&carried_, fence, 0);
      Try(&stored_, fence, 1);
    }
    return std::move(out_);
  }

  // What reads results waits until something needs it, or until two exchanges more have begun; what reads those of
  // exchanges that the computation begins with, as long as it can.
  Order Behind() {
    HeldOrder held;
    std::deque<size_t> begun_before;  // of each held: exchanges that had begun
    const auto release = [&](size_t count) {
      held.Release(count);
      begun_before.erase(begun_before.begin(), begun_before.begin() + static_cast<std::ptrdiff_t>(count));
    };
    size_t begun = 0;
    for (Instruction* i : order_) {
      const bool exchange = std::find(exchanges_.begin(), exchanges_.end(), i) != exchanges_.end();
      const size_t needed = IsFence(i) ? held.held().size() : held.Needed(Before(i));
      const bool reads = readers_.contains(i) && !exchange && !IsFence(i) && !i->Is(Opcode::While) && !i->IsRoot();
      if (reads || (IsFree(i) && needed > 0 && !i->IsRoot())) {
        held.Hold(i);
        begun_before.push_back(begun);
        continue;
      }
      release(needed);
      held.Put(i);
      if (!exchange) continue;
      ++begun;
      size_t old = 0;
      while (old < begun_before.size() && begun_before[old] < begun && !late_.contains(held.held()[old])) ++old;
      release(old);
    }
    return held.Take();
  }

 private:
  void Put(Instruction* i) {
    if (done_.insert(i).second) out_.push_back(i);
  }

  // The first exchange that has not begun.
  size_t Next() const {
    size_t next = 0;
    while (next < exchanges_.size() && done_.contains(exchanges_[next])) ++next;
    return next;
  }

  size_t NextFence(size_t from) const {
    while (from < order_.size() && !IsFence(order_[from])) ++from;
    return from;
  }

  // The next few of them, as far as they can begin.
  void Try(std::vector<size_t>* numbers, size_t fence, int kernels) {
    constexpr size_t kNext = 8;
    for (size_t k = 0; k < std::min(kNext, numbers->size()); ++k)
      if (!done_.contains(exchanges_[(*numbers)[k]])) Hoist((*numbers)[k], fence, kernels);
    std::erase_if(*numbers, [&](size_t number) { return done_.contains(exchanges_[number]); });
  }

  // Exchange `number` with what is done for it alone, if that is little but for so many kernels, and no fence stands
  // before it.
  void Hoist(size_t number, size_t fence, int kernels = 0) {
    constexpr size_t kMost = 24;
    if (number >= exchanges_.size() || at_.at(exchanges_[number]) > fence) return;
    Instruction* exchange = exchanges_[number];
    const int64_t bytes = OperandBytes(exchange);
    std::vector<Instruction*> needs, work = {exchange};
    absl::flat_hash_set<const Instruction*> seen = {exchange};
    while (!work.empty()) {
      Instruction* i = work.back();
      work.pop_back();
      needs.push_back(i);
      for (Instruction* b : Before(i)) {
        if (done_.contains(b) || !seen.insert(b).second) continue;
        if (needs.size() + work.size() >= kMost || lands_.contains(b)) return;
        if (!IsPreparation(b, bytes) && --kernels < 0) return;
        work.push_back(b);
      }
    }
    std::sort(needs.begin(), needs.end(), [&](auto* a, auto* b) { return at_.at(a) < at_.at(b); });
    for (Instruction* i : needs) Put(i);
  }

  const Order& order_;
  absl::flat_hash_map<const Instruction*, size_t> at_;
  std::vector<Instruction*> exchanges_;
  std::vector<size_t> carried_, given_;  // those that nothing in the order reads; those of what it begins with
  std::vector<size_t> stored_;           // those whose results are only stored
  absl::flat_hash_map<const Instruction*, std::vector<size_t>> lands_;  // by the first reader
  absl::flat_hash_set<const Instruction*> readers_, late_, done_;
  Order out_;
};

// Bytes of all leaves of its operands and of its result.
int64_t BytesTouched(const Instruction* i) { return OperandBytes(i) + i->shape().ByteSize(); }

}  // namespace

bool IsLargeExchange(const Instruction* i, int64_t least_bytes) {
  return IsExchange(i) && OperandBytes(i) >= least_bytes;
}

Order InFlight(const Order& order, const FlightRule& rule) {
  Order out = order;
  if (rule.ahead)
    if (Mover m(order, rule.least_bytes); m.any()) out = m.Ahead();
  if (!rule.behind) return out;
  const Order ahead = out;
  if (Mover m(ahead, rule.least_bytes); m.any()) out = m.Behind();
  return out;
}

Order SmallResultsLate(const Order& order, int64_t small_bytes) {
  HeldOrder held;
  absl::flat_hash_set<const Instruction*> late;  // readers of results of small exchanges
  for (Instruction* i : order) {
    if (IsExchange(i) && !IsLargeExchange(i, small_bytes)) {
      const std::vector<Instruction*> readers = Readers(i);
      late.insert(readers.begin(), readers.end());
    }
    const size_t needed = i->IsRoot() ? held.held().size() : held.Needed(Before(i));
    if (!i->IsRoot() && !Communicates(i) && (needed > 0 || late.contains(i)) && BytesTouched(i) < small_bytes) {
      held.Hold(i);
      continue;
    }
    held.Release(needed);
    held.Put(i);
  }
  return held.Take();
}

Flights FlightsOf(const Schedule& schedule, int64_t least_bytes) {
  Flights out;
  for (const auto& [c, order] : schedule) {
    absl::flat_hash_map<const Instruction*, size_t> at;
    for (size_t k = 0; k < order.size(); ++k) at[order[k]] = k;
    for (Instruction* i : order) {
      if (!IsLargeExchange(i, least_bytes)) continue;
      const Instruction* first = nullptr;
      for (const Instruction* r : Readers(i))
        if (at.contains(r) && (!first || at.at(r) < at.at(first))) first = r;
      out[i] = first;
    }
  }
  return out;
}

}  // namespace kiln
