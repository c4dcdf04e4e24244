// What may leave the arena at a peak, by which way, and what that costs.
#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "compiler/plan/alias.h"
#include "compiler/plan/rematerialize_steps.h"

namespace kiln {
namespace {

constexpr size_t kLongestChain = 12;   // instructions that one value may have computed again
constexpr int64_t kLeastShare = 1000;  // a value below this part of the peak is not worth a plan

bool FetchesFromSlowMemory(const Instruction* i) {
  return i->Is(Opcode::Copy) && i->operand(0)->shape().LiesInSlowMemory();
}

bool MayRunTwice(const Instruction* i) {
  if (FetchesFromSlowMemory(i)) return true;
  if (i->HasSideEffect() || i->HasTrait(Collective) || i->HasTrait(Async) || i->IsRoot() ||
      InfoOf(i->opcode()).lowering == Lowering::Control || absl::StrContains(i->name(), ".remat"))
    return false;
  for (const Opcode op : {Opcode::Parameter, Opcode::CustomCall, Opcode::Copy, Opcode::Tuple})
    if (i->Is(op)) return false;
  return !UpdatesInPlace(i);
}

// Time of an instruction, as the bytes that could be moved in it.
double CostOf(const Instruction* i) {
  if (PassesThrough(i)) return 0;
  double bytes = static_cast<double>(i->shape().ByteSize());
  for (const Instruction* o : i->operands()) bytes += static_cast<double>(o->shape().ByteSize());
  if (i->Is(Opcode::Fusion)) {
    const double each = static_cast<double>((*i->attrs().calls)->instruction_count());
    return bytes * (1 + each / 16);
  }
  if (i->Is(Opcode::Dot) && i->shape().ElementCount() > 0) {
    const double inner = static_cast<double>(i->operand(0)->shape().ElementCount()) *
                         static_cast<double>(i->operand(1)->shape().ElementCount()) /
                         static_cast<double>(i->shape().ElementCount());
    return bytes + static_cast<double>(i->shape().ElementCount()) * std::sqrt(std::max(inner, 1.0)) / 4;
  }
  if (i->Is(Opcode::Convolution))
    return bytes + static_cast<double>(i->shape().ElementCount()) *
                       static_cast<double>(i->operand(1)->shape().ElementCount()) /
                       static_cast<double>(std::max<int64_t>(i->shape().dims().back(), 1)) / 4;
  return 2 * bytes;
}

// What lives in one computation across `at`, which runs at the peak.
class Collector {
 public:
  Collector(const Computation* c, const std::vector<Instruction*>& order, const Instruction* at, int64_t peak_bytes,
            int64_t slow_capacity, std::vector<Candidate>* out)
      : c_(c), order_(order), peak_bytes_(peak_bytes), slow_capacity_(slow_capacity), out_(out) {
    for (size_t k = 0; k < order.size(); ++k) place_[order[k]->name()] = static_cast<int64_t>(k);
    for (const auto& i : c->instructions()) known_.insert(i->name());
    peak_ = place_.at(at->name());
  }

  void Run() {
    anchor_ = LastKnown(peak_, 0);
    if (anchor_.empty()) return;
    for (const auto& i : c_->instructions())
      if (IsLarge(i.get())) Add(i.get());
  }

 private:
  struct Places {
    int64_t first = INT64_MAX, last = -1;
  };

  // The last instruction at a place from `from` down to `to` that does something and that planning did not put in.
  std::string LastKnown(int64_t from, int64_t to) const {
    for (int64_t k = from; k >= to; --k) {
      const Instruction* i = order_[static_cast<size_t>(k)];
      if (known_.contains(i->name()) && !PassesThrough(i)) return i->name();
    }
    return "";
  }

  // What `v` leaves before: the anchor, or where that computes it (the peak is then at a copy of planning's), what runs
  // next.
  std::string AnchorOf(const Instruction* v) const {
    while (PassesThrough(v) && v->operand_count() > 0) v = v->operand(0);
    if (v->name() != anchor_) return anchor_;
    for (size_t k = static_cast<size_t>(peak_) + 1; k < order_.size(); ++k)
      if (known_.contains(order_[k]->name()) && !PassesThrough(order_[k])) return order_[k]->name();
    return "";
  }

  // First and last place at which an instruction's value is read; what only names it is followed.
  Places ReadsOf(const Instruction* v) const {
    Places r;
    if (v->IsRoot()) r.last = INT64_MAX;
    for (const Instruction* u : v->users()) {
      Places s;
      if (PassesThrough(u)) {
        s = ReadsOf(u);
      } else {
        const auto it = place_.find(u->name());
        if (it == place_.end()) continue;
        s = {it->second, it->second};
      }
      r.first = std::min(r.first, s.first);
      r.last = std::max(r.last, s.last);
    }
    return r;
  }

  // A value from before the peak and its anchor, worth a step, that is not the computation's result.
  bool IsLarge(const Instruction* v) const {
    const auto it = place_.find(v->name());
    if (it == place_.end() || it->second >= peak_ || v->name() == anchor_ || !v->shape().IsArray() ||
        v->shape().LiesInSlowMemory())
      return false;
    if (v->Is(Opcode::Bitcast) || v->Is(Opcode::Constant) || v->Is(Opcode::Parameter)) return false;
    return v->shape().ByteSize() * kLeastShare >= peak_bytes_ && ReadsOf(v).last != INT64_MAX;
  }

  // Divides the users into those before and those behind the peak. False if one reads at the peak, or through one name
  // on both sides. `late`: the first place behind it.
  bool DivideUsers(const Instruction* v, Candidate* k, int64_t* late) const {
    bool clean = true;
    *late = INT64_MAX;
    for (const Instruction* u : v->users()) {
      Places r{0, 0};
      if (PassesThrough(u))
        r = ReadsOf(u);
      else if (auto p = place_.find(u->name()); p != place_.end())
        r = {p->second, p->second};
      else
        clean = false;
      if (r.first <= peak_ && r.last >= peak_) clean = false;
      if (r.first > peak_ && r.first != INT64_MAX) {
        k->readers.push_back(u->name());
        *late = std::min(*late, r.first);
      } else if (!PassesThrough(u) && u->name() != anchor_) {
        k->early.push_back(u->name());
      }
    }
    return clean && !k->readers.empty();
  }

  void Add(const Instruction* v) {
    Candidate k;
    k.computation = c_->name();
    k.value = v->name();
    k.anchor = AnchorOf(v);
    int64_t late;
    if (k.anchor.empty() || !DivideUsers(v, &k, &late) || place_.at(k.anchor) >= late) return;
    // As late as it can be: behind what runs before the first reader.
    k.before_reader = LastKnown(late - 1, peak_);
    if (k.before_reader.empty()) k.before_reader = k.anchor;
    const int64_t bytes = v->shape().ByteSize();
    k.step = {RematerializeStep::kRecompute, v->name(), bytes, 0};
    for (const bool deep : {false, true}) AddRecompute(k, v, late, deep);
    if (absl::StrContains(v->name(), ".remat")) return;
    if (v->shape().type() == PrimitiveType::Pred && v->shape().ElementCount() % 8 == 0 &&
        v->shape().HasDefaultLayout()) {
      Candidate packed = k;
      packed.step.kind = RematerializeStep::kCompress;
      packed.cost = 4.0 * static_cast<double>(bytes);
      packed.gain = static_cast<double>(bytes) * 7 / 8;
      out_->push_back(packed);
    }
    if (slow_capacity_ >= bytes) {
      Candidate sent = k;
      sent.step.kind = RematerializeStep::kOffload;
      sent.cost = 8.0 * static_cast<double>(bytes);
      sent.gain = static_cast<double>(bytes);
      out_->push_back(sent);
    }
  }

  // Computing `v` again at place `late`: with what it reads kept until then, or, if `deep`, with that computed again
  // too.
  void AddRecompute(Candidate k, const Instruction* v, int64_t late, bool deep) {
    std::vector<const Instruction*> chain;
    absl::flat_hash_set<const Instruction*> kept;
    int64_t extended = 0;
    bool possible = true, deeper = false;
    auto visit = [&](auto&& self, const Instruction* i) -> void {
      if (!possible || std::find(chain.begin(), chain.end(), i) != chain.end()) return;
      if (!MayRunTwice(i) || chain.size() >= kLongestChain) {
        possible = false;
        return;
      }
      for (const Instruction* o : i->operands()) {
        const Instruction* source = o;
        while (source->Is(Opcode::Bitcast)) source = source->operand(0);
        const bool names = PassesThrough(o) || (i->Is(Opcode::GetTupleElement) && !o->Is(Opcode::Parameter));
        if (source->Is(Opcode::Parameter) || source->Is(Opcode::Constant) || source->shape().LiesInSlowMemory() ||
            (source->Is(Opcode::GetTupleElement) && source->operand(0)->Is(Opcode::Parameter)) ||
            (source->shape().IsArray() && ReadsOf(source).last >= late))
          continue;
        if (names || (deep && MayRunTwice(o))) {
          deeper = deeper || !names;
          self(self, o);
        } else if (kept.insert(source).second) {
          extended += source->shape().ByteSize();
        }
      }
      chain.push_back(i);
    };
    visit(visit, v);
    k.gain = static_cast<double>(k.step.bytes - extended);
    if (!possible || k.gain <= 0 || (deep && !deeper)) return;
    k.cost = 1;
    for (const Instruction* i : chain) {
      k.chain.push_back(i->name());
      k.cost += CostOf(i);
      k.step.instructions += !PassesThrough(i);
    }
    out_->push_back(k);
  }

  const Computation* c_;
  const std::vector<Instruction*>& order_;
  const int64_t peak_bytes_, slow_capacity_;
  std::vector<Candidate>* out_;
  absl::flat_hash_map<std::string, int64_t> place_;
  absl::flat_hash_set<std::string> known_;  // instructions from before planning, which put copies in
  int64_t peak_ = 0;                        // place of what runs at the peak
  std::string anchor_;
};

}  // namespace

void CollectCandidates(const Module& base, const MemoryPlan& plan, const Instruction* at, int64_t peak_bytes,
                       int64_t slow_capacity, std::vector<Candidate>* out) {
  const Computation* c = nullptr;
  for (const auto& x : base.computations())
    if (x->name() == at->parent()->name()) c = x.get();
  if (c) Collector(c, plan.schedule.at(at->parent()), at, peak_bytes, slow_capacity, out).Run();
}

}  // namespace kiln
