#include "compiler/plan/rematerialize.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/plan/alias.h"

namespace kiln {
namespace {

constexpr int kMostTrials = 300;
constexpr size_t kAtOnce = 8;         // steps between two plans, at first
constexpr size_t kLongestChain = 12;  // instructions that one value may have computed again

// A plan and the copy of the module that it is for.
struct Planned {
  std::unique_ptr<Module> module;
  MemoryPlan memory;
  int64_t excess = 0;  // bytes above the target, summed over time
  int64_t peak = 0;
};

// One way to keep a value out of one peak. Names stand for instructions: they are the same in every copy.
struct Candidate {
  RematerializeStep step;
  // `anchor` runs at the peak; `before_reader` is the last to run before the value is wanted again.
  std::string computation, value, anchor, before_reader;
  std::vector<std::string> readers;  // behind the peak
  std::vector<std::string> early;    // readers before it, which must stay there
  std::vector<std::string> chain;    // recompute: what runs again, operands first
  double cost = 0;                   // bytes that it moves, or as much time
  double gain = 0;                   // bytes
  std::string Key() const { return absl::StrCat(step.kind, " ", computation, " ", value, " ", anchor); }
};

bool FetchesFromSlowMemory(const Instruction* i) {
  return i->Is(Opcode::Copy) && i->operand(0)->shape().LiesInSlowMemory();
}

bool MayRunTwice(const Instruction* i) {
  if (FetchesFromSlowMemory(i)) return true;
  if (i->HasSideEffect() || i->HasTrait(Collective) || i->HasTrait(Async) || i->IsRoot() ||
      absl::StrContains(i->name(), ".remat"))
    return false;
  switch (i->opcode()) {
    case Opcode::Parameter:
    case Opcode::Rng:
    case Opcode::RngGetAndUpdateState:
    case Opcode::While:
    case Opcode::Conditional:
    case Opcode::Call:
    case Opcode::CustomCall:
    case Opcode::Copy:
    case Opcode::Tuple:
      return false;
    default:
      return InPlaceOperand(i) < 0;
  }
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

Instruction* Named(const Module& m, const std::string& computation, const std::string& name) {
  for (const auto& c : m.computations())
    if (c->name() == computation)
      for (const auto& i : c->instructions())
        if (i->name() == name) return i.get();
  return nullptr;
}

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
    ASSIGN_OR_RETURN(p.memory, PlanMemory(*p.module, o_.scratch, like));
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
      Collect(base, now, at, &out);
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

  // Values of the computation of `at` that live across it unread.
  void Collect(const Module& base, const Planned& now, const Instruction* at, std::vector<Candidate>* out) {
    const std::vector<Instruction*>& order = now.memory.schedule.at(at->parent());
    absl::flat_hash_map<std::string, int64_t> place;
    for (size_t k = 0; k < order.size(); ++k) place[order[k]->name()] = static_cast<int64_t>(k);
    const int64_t peak = place.at(at->name());
    const std::string& computation = at->parent()->name();
    Computation* c = nullptr;
    for (const auto& x : base.computations())
      if (x->name() == computation) c = x.get();
    if (!c) return;
    // What stands before the copies that planning put in.
    absl::flat_hash_set<std::string> known;
    for (const auto& i : c->instructions()) known.insert(i->name());
    std::string anchor;
    for (int64_t k = peak; k >= 0 && anchor.empty(); --k)
      if (known.contains(order[static_cast<size_t>(k)]->name()) && !PassesThrough(order[static_cast<size_t>(k)]))
        anchor = order[static_cast<size_t>(k)]->name();
    if (anchor.empty()) return;

    // First and last place at which an instruction's value is read; what only names it is followed.
    auto reads = [&](auto&& self, const Instruction* v) -> std::pair<int64_t, int64_t> {
      std::pair<int64_t, int64_t> r = {INT64_MAX, -1};
      if (v->IsRoot()) r.second = INT64_MAX;
      for (const Instruction* u : v->users()) {
        std::pair<int64_t, int64_t> s;
        if (PassesThrough(u)) {
          s = self(self, u);
        } else {
          const auto it = place.find(u->name());
          if (it == place.end()) continue;
          s = {it->second, it->second};
        }
        r.first = std::min(r.first, s.first);
        r.second = std::max(r.second, s.second);
      }
      return r;
    };
    for (const auto& owned : c->instructions()) {
      Instruction* v = owned.get();
      const auto it = place.find(v->name());
      if (it == place.end() || it->second >= peak || !v->shape().IsArray() || v->shape().LiesInSlowMemory()) continue;
      if (v->Is(Opcode::Bitcast) || v->Is(Opcode::Constant) || v->Is(Opcode::Parameter)) continue;
      const int64_t bytes = v->shape().ByteSize();
      if (bytes * 1000 < now.peak) continue;
      if (reads(reads, v).second == INT64_MAX) continue;
      Candidate k;
      k.computation = computation;
      k.value = v->name();
      k.anchor = anchor;
      bool clean = true;
      int64_t late = INT64_MAX;  // the first reader behind the peak
      for (const Instruction* u : v->users()) {
        std::pair<int64_t, int64_t> r;
        if (PassesThrough(u))
          r = reads(reads, u);
        else if (auto p = place.find(u->name()); p != place.end())
          r = {p->second, p->second};
        else
          clean = false;
        if (r.first <= peak && r.second >= peak) clean = false;  // read at the peak, or through one name on both sides
        if (r.first > peak && r.first != INT64_MAX) {
          k.readers.push_back(u->name());
          late = std::min(late, r.first);
        } else if (!PassesThrough(u) && u->name() != anchor) {
          k.early.push_back(u->name());
        }
      }
      if (!clean || k.readers.empty()) continue;
      // As late as it can be: behind what runs before the first reader.
      for (int64_t at = late - 1; at >= peak && k.before_reader.empty(); --at) {
        const Instruction* i = order[static_cast<size_t>(at)];
        if (known.contains(i->name()) && !PassesThrough(i)) k.before_reader = i->name();
      }
      if (k.before_reader.empty()) k.before_reader = anchor;
      k.step = {RematerializeStep::kRecompute, v->name(), bytes, 0};
      AddRecompute(
          k, v, late, [&](const Instruction* o) { return reads(reads, o).second; }, out);
      if (v->shape().type() == PrimitiveType::Pred && v->shape().ElementCount() % 8 == 0 &&
          v->shape().HasDefaultLayout() && !absl::StrContains(v->name(), ".remat")) {
        Candidate packed = k;
        packed.step.kind = RematerializeStep::kCompress;
        packed.cost = 4.0 * static_cast<double>(bytes);
        packed.gain = static_cast<double>(bytes) * 7 / 8;
        out->push_back(packed);
      }
      if (o_.slow_capacity >= bytes && !absl::StrContains(v->name(), ".remat")) {
        Candidate sent = k;
        sent.step.kind = RematerializeStep::kOffload;
        sent.cost = 8.0 * static_cast<double>(bytes);
        sent.gain = static_cast<double>(bytes);
        out->push_back(sent);
      }
    }
  }

  // Computing `v` again at place `late`: once with what it reads kept until then, once with that computed again too.
  template <typename LastRead>
  void AddRecompute(Candidate k, Instruction* v, int64_t late, LastRead last_read, std::vector<Candidate>* out) {
    for (const bool deep : {false, true}) {
      std::vector<Instruction*> chain;
      absl::flat_hash_set<const Instruction*> kept;
      int64_t extended = 0;
      bool possible = true, deeper = false;
      auto visit = [&](auto&& self, Instruction* i) -> void {
        if (!possible || std::find(chain.begin(), chain.end(), i) != chain.end()) return;
        if (!MayRunTwice(i) || chain.size() >= kLongestChain) {
          possible = false;
          return;
        }
        for (Instruction* o : i->operands()) {
          const Instruction* source = o;
          while (source->Is(Opcode::Bitcast)) source = source->operand(0);
          const bool names = PassesThrough(o) || (i->Is(Opcode::GetTupleElement) && !o->Is(Opcode::Parameter));
          if (source->Is(Opcode::Parameter) || source->Is(Opcode::Constant) || source->shape().LiesInSlowMemory() ||
              (source->Is(Opcode::GetTupleElement) && source->operand(0)->Is(Opcode::Parameter)) ||
              (source->shape().IsArray() && last_read(source) >= late))
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
      if (!possible || k.gain <= 0 || (deep && !deeper)) continue;
      k.cost = 1;
      k.chain.clear();
      k.step.instructions = 0;
      for (const Instruction* i : chain) {
        k.chain.push_back(i->name());
        k.cost += CostOf(i);
        k.step.instructions += !PassesThrough(i);
      }
      out->push_back(k);
    }
  }

  // Also puts what is new into `order`: copies out of the arena as early, copies into it as late as they may run.
  static bool Apply(Module* m, const Candidate& c, std::vector<std::string>* order) {
    Instruction* v = Named(*m, c.computation, c.value);
    Instruction* anchor = Named(*m, c.computation, c.anchor);
    Instruction* just_before = Named(*m, c.computation, c.before_reader);
    if (!v || !anchor || !just_before) return false;
    Computation* in = v->parent();
    std::vector<Instruction*> readers;
    for (const std::string& r : c.readers) readers.push_back(Named(*m, c.computation, r));
    Instruction* again = nullptr;
    std::vector<Instruction*> out_of_arena, into_arena;
    switch (c.step.kind) {
      case RematerializeStep::kRecompute: {
        absl::flat_hash_map<const Instruction*, Instruction*> copy;
        for (const std::string& name : c.chain) {
          Instruction* i = Named(*m, c.computation, name);
          std::vector<Instruction*> operands;
          for (Instruction* o : i->operands()) operands.push_back(copy.contains(o) ? copy.at(o) : o);
          again = in->Add(i->opcode(), i->shape(), operands, i->name() + ".remat");
          again->mutable_attrs() = i->attrs();
          again->set_literal(i->literal());
          again->set_loc(i->loc());
          copy[i] = again;
          into_arena.push_back(again);
          if (PassesThrough(again)) continue;
          for (Instruction* p : i->control_predecessors()) p->AddControlDependencyTo(again);
          just_before->AddControlDependencyTo(again);
        }
        break;
      }
      case RematerializeStep::kCompress: {
        Instruction* packed = Pack(v);
        packed->AddControlDependencyTo(anchor);
        out_of_arena = {packed};
        again = Unpack(packed, v, just_before);
        into_arena = {again->operand(0), again};
        break;
      }
      case RematerializeStep::kOffload: {
        Shape slow = v->shape();
        Layout layout = slow.LayoutOrDefault();
        absl::StrAppend(&layout.extras, "S(", kSlowMemorySpace, ")");
        slow.set_layout(layout);
        Instruction* sent = in->Add(Opcode::Copy, slow, {v}, v->name() + ".remat_out");
        sent->set_loc(v->loc());
        sent->AddControlDependencyTo(anchor);
        out_of_arena = {sent};
        // A loop that reads each element once reads it where it lies.
        readers.erase(
            std::remove_if(readers.begin(), readers.end(), [&](Instruction* r) { return ReadFrom(sent, v, r); }),
            readers.end());
        if (readers.empty()) break;
        again = in->Add(Opcode::Copy, v->shape(), {sent}, v->name() + ".remat_back");
        again->set_loc(v->loc());
        just_before->AddControlDependencyTo(again);
        into_arena = {again};
        break;
      }
    }
    for (Instruction* r : readers) v->ReplaceUseWith(r, again);
    for (const std::string& e : c.early)
      if (Instruction* u = Named(*m, c.computation, e); u && u != anchor) u->AddControlDependencyTo(anchor);
    auto place = [&](const std::string& name) { return std::find(order->begin(), order->end(), name); };
    auto early = place(c.value);
    for (const std::string& e : c.early) early = std::max(early, place(e) == order->end() ? early : place(e));
    std::vector<std::string> names;
    for (const Instruction* i : out_of_arena) names.push_back(i->name());
    order->insert(early == order->end() ? early : early + 1, names.begin(), names.end());
    auto late = order->end();
    for (const std::string& name : c.readers) late = std::min(late, place(name));
    names.clear();
    for (const Instruction* i : into_arena) names.push_back(i->name());
    order->insert(late, names.begin(), names.end());
    return true;
  }

  // Has `reader` take `sent` for `v`, if it is a loop that reads it only at the element it writes.
  static bool ReadFrom(Instruction* sent, Instruction* v, Instruction* reader) {
    for (int64_t k = 0; k < reader->operand_count(); ++k)
      if (reader->operand(k) == v && !ReadsAtOwnElement(reader, k)) return false;
    for (int64_t k = 0; k < reader->operand_count(); ++k) {
      if (reader->operand(k) != v) continue;
      Instruction* p = (*reader->attrs().calls)->parameter(k);
      p->mutable_shape() = sent->shape();
      reader->ReplaceOperand(k, sent);
    }
    return true;
  }

  // A fusion of what `build` adds to a computation with one parameter.
  template <typename Build>
  static Instruction* Fuse(Instruction* operand, const std::string& name, const char* kind, Build build) {
    Computation* c = operand->parent();
    Computation* f = c->module()->AddComputation("fused_computation");
    Instruction* root = build(f, f->AddParameter(0, operand->shape(), "param"));
    f->set_root(root);
    Instruction* fusion = c->Add(Opcode::Fusion, root->shape(), {operand}, name);
    fusion->mutable_attrs().calls = f;
    fusion->mutable_attrs().fusion_kind = kind;
    fusion->set_loc(operand->loc());
    return fusion;
  }

  static Shape Plain(PrimitiveType t, Ints dims) {
    Shape s = Shape::Array(t, std::move(dims));
    s.set_layout(Layout::Descending(s.rank()));
    return s;
  }

  // Eight predicates as the bits of a byte, the first one lowest.
  static Instruction* Pack(Instruction* v) {
    Computation* c = v->parent();
    const int64_t bytes = v->shape().ElementCount() / 8;
    const Shape rows = Plain(PrimitiveType::U8, {bytes, 8}), byte = Plain(PrimitiveType::U8, {});
    Instruction* flat = c->Add(Opcode::Bitcast, Plain(PrimitiveType::Pred, {bytes, 8}), {v});
    Computation* either = c->module()->AddComputation("either_bit");
    either->set_root(
        either->Add(Opcode::Or, byte, {either->AddParameter(0, byte, "a"), either->AddParameter(1, byte, "b")}));
    return Fuse(flat, v->name() + ".remat_packed", "kInput", [&](Computation* f, Instruction* p) {
      Instruction* bit = f->Add(Opcode::Convert, rows, {p});
      Instruction* place = f->Add(Opcode::Iota, rows, {});
      place->mutable_attrs().iota_dimension = 1;
      Instruction* moved = f->Add(Opcode::ShiftLeft, rows, {bit, place});
      Literal none(byte);
      Instruction* zero = f->AddConstant(std::move(none));
      Instruction* all = f->Add(Opcode::Reduce, Plain(PrimitiveType::U8, {bytes}), {moved, zero});
      all->mutable_attrs().dimensions = Ints{1};
      all->mutable_attrs().to_apply = either;
      return all;
    });
  }

  static Instruction* Unpack(Instruction* packed, const Instruction* v, Instruction* anchor) {
    const int64_t bytes = packed->shape().ElementCount();
    const Shape rows = Plain(PrimitiveType::U8, {bytes, 8}), byte = Plain(PrimitiveType::U8, {});
    Instruction* bits = Fuse(packed, v->name() + ".remat", "kLoop", [&](Computation* f, Instruction* p) {
      Instruction* spread = f->Add(Opcode::Broadcast, rows, {p});
      spread->mutable_attrs().dimensions = Ints{0};
      Instruction* place = f->Add(Opcode::Iota, rows, {});
      place->mutable_attrs().iota_dimension = 1;
      Instruction* moved = f->Add(Opcode::ShiftRightLogical, rows, {spread, place});
      Literal one_value(byte);
      one_value.Set(0, Element{.i = 1});
      auto many = [&](Literal l) {
        Instruction* b = f->Add(Opcode::Broadcast, rows, {f->AddConstant(std::move(l))});
        b->mutable_attrs().dimensions = Ints{};
        return b;
      };
      Instruction* low = f->Add(Opcode::And, rows, {moved, many(std::move(one_value))});
      Instruction* set = f->Add(Opcode::Compare, Plain(PrimitiveType::Pred, {bytes, 8}), {low, many(Literal(byte))});
      set->mutable_attrs().direction = "NE";
      return set;
    });
    anchor->AddControlDependencyTo(bits);
    return v->parent()->Add(Opcode::Bitcast, v->shape(), {bits});
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
