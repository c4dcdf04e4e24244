#include "compiler/plan/buffer_assignment.h"

#include <algorithm>
#include <numeric>

#include "compiler/plan/heap.h"

namespace kiln {
namespace {

struct Class {
  int parent;
  int64_t size = 0;
  int64_t begin = INT64_MAX, end = -1;
  Slice::Kind kind = Slice::kTemp;
  int64_t index = 0;
  const Instruction* owner = nullptr;
  ShapeIndex leaf;    // of the owner
  bool slow = false;  // it lies in the slow arena, unless the caller has it
};

class Assigner {
 public:
  Assigner(const Module& m, const Schedule& s, const std::function<int64_t(const Instruction*)>& scratch,
           const Flights& flights)
      : m_(m), schedule_(s), scratch_(scratch), flights_(flights) {}

  absl::Status Build() {
    Number(m_.entry());
    RETURN_IF_ERROR(Define(m_.entry()));
    int64_t flat = 0;
    for (Instruction* p : m_.entry()->parameters()) {
      ForEachLeaf(p->shape(), [&](const ShapeIndex& idx, const Shape& s) {
        if (s.IsArray()) Pin(Find({p, idx}), Slice::kParameter, flat++);
      });
    }
    flat = 0;
    absl::Status bad;
    ForEachLeaf(m_.entry()->root()->shape(), [&](const ShapeIndex& idx, const Shape& s) {
      if (!s.IsArray()) return;
      const int c = Find({m_.entry()->root(), idx});
      if (classes_[c].kind == Slice::kTemp)
        Pin(c, Slice::kResult, flat);
      else if (classes_[c].kind != Slice::kParameter)
        bad = Internal("result ", flat, " shares storage with ", classes_[c].owner->name());
      classes_[Find({m_.entry()->root(), idx})].end = clock_;
      ++flat;
    });
    RETURN_IF_ERROR(bad);
    for (size_t c = 0; c < classes_.size(); ++c)
      if (classes_[c].slow && classes_[c].parent == static_cast<int>(c))
        Pin(static_cast<int>(c), Slice::kSlow, ArgumentCount());
    for (const auto& [exchange, landing] : flights_)
      for (Instruction* o : exchange->operands())
        EachArray(o->shape(), [&](const ShapeIndex& idx, const Shape&) {
          Class& c = classes_[Find({o, idx})];
          c.end = std::max(c.end, LandsAt(exchange));
        });
    ShareElementwise(m_.entry());
    return absl::OkStatus();
  }

  int Find(const Leaf& l) {
    auto it = ids_.find(l);
    KILN_CHECK(it != ids_.end());
    return Root(it->second);
  }
  int Root(int c) {
    while (classes_[c].parent != c) c = classes_[c].parent = classes_[classes_[c].parent].parent;
    return c;
  }

  std::vector<Class> classes_;
  absl::flat_hash_map<Leaf, int> ids_;
  std::vector<const Instruction*> constants_, timeline_;
  int64_t clock_ = 0;

 private:
  int64_t ArgumentCount() const {
    int64_t n = 0;
    for (const Instruction* p : m_.entry()->parameters())
      ForEachLeaf(p->shape(), [&](const ShapeIndex&, const Shape& s) { n += s.IsArray(); });
    return n;
  }

  // Times of every instruction: a loop's body and condition lie inside the loop's span.
  void Number(const Computation* c) {
    for (Instruction* i : schedule_.at(c)) {
      begin_[i] = clock_++;
      timeline_.push_back(i);
      if (i->Is(Opcode::While) || i->Is(Opcode::Conditional))
        for (const Computation* f : i->called()) Number(f);
      end_[i] = clock_++;
      timeline_.push_back(i);
    }
  }

  // When nobody reads the operands of `i` any more for its sake.
  int64_t LandsAt(const Instruction* i) const {
    const auto flight = flights_.find(i);
    if (flight == flights_.end()) return end_.at(i);
    return (flight->second ? begin_.at(flight->second) : end_.at(schedule_.at(i->parent()).back()) + 1) - 1;
  }

  int NewClass(const Leaf& l, const Shape& s) {
    const int id = static_cast<int>(classes_.size());
    classes_.push_back({id, s.ByteSize()});
    classes_.back().owner = l.instruction;
    classes_.back().leaf = l.index;
    classes_.back().slow = s.LiesInSlowMemory();
    ids_[l] = id;
    return id;
  }

  void Extend(const Leaf& l, const Instruction* at) {
    Class& c = classes_[Find(l)];
    c.begin = std::min(c.begin, begin_.at(at));
    c.end = std::max(c.end, end_.at(at));
  }

  void Pin(int c, Slice::Kind kind, int64_t index) {
    Class& x = classes_[c];
    if (x.kind == Slice::kTemp) {
      x.kind = kind;
      x.index = index;
    }
  }

  absl::Status Unite(const Leaf& a, const Leaf& b, const Instruction* why) {
    const int x = Find(a), y = Find(b);
    if (x == y) return absl::OkStatus();
    if (classes_[x].size != classes_[y].size)
      return ErrorAt(why, "values of different sizes must share storage", absl::StatusCode::kInternal);
    Class &p = classes_[x], &q = classes_[y];
    if (p.kind != Slice::kTemp && q.kind != Slice::kTemp)
      return ErrorAt(why,
                     absl::StrCat("two pinned values must share storage: ", p.owner->name(), " and ", q.owner->name()),
                     absl::StatusCode::kInternal);
    q.parent = x;
    p.begin = std::min(p.begin, q.begin);
    p.end = std::max(p.end, q.end);
    p.slow = p.slow || q.slow;
    if (p.kind == Slice::kTemp) {
      p.kind = q.kind;
      p.index = q.index;
    }
    return absl::OkStatus();
  }

  template <typename Fn>
  void EachArray(const Shape& s, Fn fn) {
    ForEachLeaf(s, [&](const ShapeIndex& idx, const Shape& leaf) {
      if (leaf.IsArray()) fn(ShapeIndex(idx), leaf);
    });
  }

  absl::Status Define(const Computation* c) {
    absl::Status status;
    auto keep = [&](const absl::Status& s) {
      if (status.ok()) status = s;
    };
    for (Instruction* i : schedule_.at(c)) {
      // Values pass through these without storage of their own.
      const bool ordered = i->Is(Opcode::AddDependency) || i->Is(Opcode::Domain);
      if (PassesThrough(i) || ordered) {
        EachArray(i->shape(), [&](const ShapeIndex& idx, const Shape&) {
          Leaf from;
          if (i->Is(Opcode::Tuple))
            from = {i->operand(idx[0]), ShapeIndex(idx.begin() + 1, idx.end())};
          else if (i->Is(Opcode::Bitcast) || ordered)
            from = {i->operand(0), idx};
          else {
            ShapeIndex f = {*i->attrs().tuple_index};
            f.insert(f.end(), idx.begin(), idx.end());
            from = {i->operand(0), f};
          }
          ids_[{i, idx}] = Find(from);
        });
        continue;
      }
      for (Instruction* o : i->operands())
        EachArray(o->shape(), [&](const ShapeIndex& idx, const Shape&) { Extend({o, idx}, i); });
      if (const int64_t bytes = scratch_ ? scratch_(i) : 0; bytes > 0) {
        const Leaf leaf{i, {BufferAssignment::kScratchIndex}};
        NewClass(leaf, Shape::Array(PrimitiveType::U8, {bytes}));
        Extend(leaf, i);
      }
      if (i->Is(Opcode::While)) {
        Computation *cond = *i->attrs().condition, *body = *i->attrs().body;
        EachArray(i->shape(), [&](const ShapeIndex& idx, const Shape&) {
          const int k = Find({i->operand(0), idx});
          ids_[{i, idx}] = k;
          ids_[{cond->parameter(0), idx}] = k;
          ids_[{body->parameter(0), idx}] = k;
          Extend({i, idx}, i);
        });
        RETURN_IF_ERROR(Define(cond));
        RETURN_IF_ERROR(Define(body));
        EachArray(Shape::Tuple({(*i->attrs().condition)->root()->shape()}), [&](const ShapeIndex&, const Shape&) {
          classes_[Find({cond->root(), {}})].end = std::max(classes_[Find({cond->root(), {}})].end, end_.at(i));
        });
        EachArray(i->shape(), [&](const ShapeIndex& idx, const Shape&) {
          keep(Unite({i, idx}, {body->root(), idx}, i));
        });
      } else if (i->Is(Opcode::Conditional)) {
        EachArray(i->shape(), [&](const ShapeIndex& idx, const Shape& s) {
          NewClass({i, idx}, s);
          Extend({i, idx}, i);
        });
        const auto branches = i->called();
        for (size_t b = 0; b < branches.size(); ++b) {
          Instruction* operand = i->operand(static_cast<int64_t>(b) + 1);
          EachArray(operand->shape(), [&](const ShapeIndex& idx, const Shape&) {
            ids_[{branches[b]->parameter(0), idx}] = Find({operand, idx});
          });
          RETURN_IF_ERROR(Define(branches[b]));
          EachArray(i->shape(), [&](const ShapeIndex& idx, const Shape&) {
            keep(Unite({i, idx}, {branches[b]->root(), idx}, i));
          });
        }
      } else if (i->Is(Opcode::Constant)) {
        EachArray(i->shape(), [&](const ShapeIndex& idx, const Shape& s) {
          Pin(NewClass({i, idx}, s), Slice::kConstant, static_cast<int64_t>(constants_.size()));
        });
        constants_.push_back(i);
        if (i->shape().IsTuple())
          keep(ErrorAt(i, "tuple constants are not supported by code generation", absl::StatusCode::kUnimplemented));
      } else {
        EachArray(i->shape(), [&](const ShapeIndex& idx, const Shape& s) {
          if (ids_.contains({i, idx})) return;  // a loop's or branch's parameter
          const int64_t k = InPlaceOperand(i, idx.empty() ? 0 : idx[0]);
          if (k >= 0) {
            ids_[{i, idx}] = Find({i->operand(k), {}});
          } else {
            NewClass({i, idx}, s);
          }
          Extend({i, idx}, i);
        });
      }
      RETURN_IF_ERROR(status);
    }
    for (const AliasEntry& a : c == m_.entry() ? m_.aliases : std::vector<AliasEntry>()) {
      Instruction* p = m_.entry()->parameter(a.parameter);
      keep(Unite({p, a.parameter_index}, {m_.entry()->root(), a.output}, m_.entry()->root()));
    }
    return status;
  }

  // An elementwise loop or an all-reduce may overwrite an operand that nobody reads afterwards.
  void ShareElementwise(const Computation* c) {
    for (Instruction* i : schedule_.at(c)) {
      if (i->Is(Opcode::While) || i->Is(Opcode::Conditional))
        for (const Computation* f : i->called()) ShareElementwise(f);
      if (!(i->Is(Opcode::Fusion) || i->Is(Opcode::AllReduce)) || UpdatesInPlace(i)) continue;
      EachArray(i->shape(), [&](const ShapeIndex& idx, const Shape&) { ShareOperand(i, idx); });
    }
  }

  // Whether every operand that lies in the storage of class `x` may be overwritten.
  bool EachMayShare(Instruction* i, int x, int64_t output) {
    for (int64_t k = 0; k < i->operand_count(); ++k)
      if (i->operand(k)->shape().IsArray() && Find({i->operand(k), {}}) == x && !MayShareWithOperand(i, k, output))
        return false;
    return true;
  }

  // Whether another result of `i` lies in the storage of class `x`: nobody reads it, or it would live on.
  bool HoldsOtherResult(Instruction* i, int x, const ShapeIndex& output) {
    bool holds = false;
    EachArray(i->shape(), [&](const ShapeIndex& idx, const Shape&) { holds |= idx != output && Find({i, idx}) == x; });
    return holds;
  }

  void ShareOperand(Instruction* i, const ShapeIndex& output) {
    for (int64_t k = 0; k < i->operand_count(); ++k) {
      if (!MayShareWithOperand(i, k, output.empty() ? 0 : output[0])) continue;
      const int x = Find({i->operand(k), {}}), y = Find({i, output});
      if (x == y) return;
      if (!EachMayShare(i, x, output.empty() ? 0 : output[0]) || HoldsOtherResult(i, x, output)) continue;
      Class &p = classes_[x], &q = classes_[y];
      if (p.size != q.size || p.end != LandsAt(i) || q.begin != begin_.at(i)) continue;
      if (p.kind != Slice::kTemp) continue;  // parameters and constants are not ours; a result is needed as it is
      q.begin = std::min(p.begin, q.begin);
      q.end = std::max(p.end, q.end);
      p.parent = y;
      return;
    }
  }

  const Module& m_;
  const Schedule& schedule_;
  const std::function<int64_t(const Instruction*)>& scratch_;
  const Flights& flights_;
  absl::flat_hash_map<const Instruction*, int64_t> begin_, end_;
};

// Beyond, sums of sizes overflow.
constexpr int64_t kAddressSpace = int64_t{1} << 62;

// Offsets for `temps` in the arena or, before they are written, in `results` (the classes that are results).
int64_t Place(const std::vector<Class>& results, std::vector<Allocation>* temps) {
  std::vector<HeapValue> values;
  for (const Allocation& t : *temps) values.push_back({t.slice.size, t.begin, t.end});
  HeapResult alone = ChooseBestHeap(values);
  std::vector<Slice> slices(temps->size());
  std::vector<size_t> rest(temps->size());
  std::iota(rest.begin(), rest.end(), 0);
  auto of = [&](const std::vector<size_t>& which) {
    std::vector<HeapValue> v;
    for (size_t k : which) v.push_back(values[k]);
    return v;
  };
  // Each result is offered to all that is left, which is quadratic in their number: the largest results come first, and
  // the rest goes without where that would take too long.
  constexpr double kMostWork = 5e8;
  double work = 0;
  for (const Class& r : results) {
    work += static_cast<double>(rest.size()) * static_cast<double>(rest.size()) / 2;
    if (rest.empty() || work > kMostWork) break;
    const HeapResult in = GlobalDecreasing(of(rest), HeapOrder::kSpatial, r.size, {{0, {r.size, r.begin, r.end}}});
    std::vector<size_t> left;
    for (size_t k = 0; k < rest.size(); ++k)
      if (in.offsets[k] < 0)
        left.push_back(rest[k]);
      else
        slices[rest[k]] = {Slice::kResult, r.index, in.offsets[k], 0};
    rest = std::move(left);
  }
  HeapResult arena = ChooseBestHeap(of(rest));
  if (arena.total < alone.total) {
    for (size_t k = 0; k < rest.size(); ++k) slices[rest[k]].offset = arena.offsets[k];
  } else {
    arena.total = alone.total;
    for (size_t k = 0; k < slices.size(); ++k) slices[k] = {Slice::kTemp, 0, alone.offsets[k], 0};
  }
  for (size_t k = 0; k < slices.size(); ++k) {
    slices[k].size = values[k].size;
    (*temps)[k].slice = slices[k];
  }
  return arena.total;
}

// Whether the caller has result `number` in the host's memory.
bool LiesOnHost(const Module& m, int64_t number) {
  const Shape& s = m.entry_layout ? m.entry_layout->result : m.entry()->root()->shape();
  return ArrayLeaves(s)[static_cast<size_t>(number)].LiesInSlowMemory();
}

}  // namespace

absl::StatusOr<BufferAssignment> BufferAssignment::Run(const Module& m, const Schedule& schedule,
                                                       const std::function<int64_t(const Instruction*)>& scratch,
                                                       const Flights& flights) {
  Assigner a(m, schedule, scratch, flights);
  RETURN_IF_ERROR(a.Build());
  BufferAssignment out;
  out.constants_ = a.constants_;
  out.timeline_ = std::move(a.timeline_);
  absl::flat_hash_map<int, size_t> temp_of;
  std::vector<Class> results;
  std::vector<HeapValue> lives, slow;
  std::vector<int> slow_class;
  int64_t room = kAddressSpace;
  for (size_t c = 0; c < a.classes_.size(); ++c) {
    const Class& x = a.classes_[c];
    if (x.parent != static_cast<int>(c) || x.size == 0) continue;
    if (x.size > room)
      return ErrorAt(x.owner, "with it the program's arrays take more than 2^62 bytes",
                     absl::StatusCode::kResourceExhausted);
    room -= x.size;
    // What the caller has on the host is no place for what the device works with.
    if (x.kind == Slice::kResult && !x.slow && !LiesOnHost(m, x.index)) results.push_back(x);
    if (x.kind == Slice::kSlow) {
      slow.push_back({x.size, x.begin, x.end});
      slow_class.push_back(static_cast<int>(c));
    }
    if (x.kind != Slice::kTemp) continue;
    temp_of[static_cast<int>(c)] = out.temps_.size();
    lives.push_back({x.size, x.begin, x.end});
    out.temps_.push_back({{Slice::kTemp, 0, 0, x.size}, x.begin, x.end, x.owner, x.leaf, x.owner->name()});
  }
  const HeapResult slow_heap = ChooseBestHeap(slow);
  out.slow_bytes_ = slow_heap.total;
  absl::flat_hash_map<int, int64_t> slow_at;
  for (size_t k = 0; k < slow.size(); ++k) slow_at[slow_class[k]] = slow_heap.offsets[k];
  std::stable_sort(results.begin(), results.end(), [](const Class& p, const Class& q) { return p.size > q.size; });
  out.temp_bytes_ = Place(results, &out.temps_);
  out.peak_ = PeakOf(lives);
  for (const auto& [leaf, id] : a.ids_) {
    const int root = a.Root(id);
    const Class& x = a.classes_[root];
    const auto temp = temp_of.find(root);
    out.slices_[leaf] = temp == temp_of.end() ? Slice{x.kind, x.index, 0, x.size} : out.temps_[temp->second].slice;
    if (x.kind == Slice::kSlow) out.slices_[leaf].offset = slow_at.at(root);
  }
  return out;
}

std::string Allocation::ShapeText() const {
  if (index == ShapeIndex{BufferAssignment::kScratchIndex}) return "scratch";
  const Shape* s = &value->shape();
  for (int64_t k : index) s = &s->tuple()[static_cast<size_t>(k)];
  return s->ToString(false);
}

std::vector<int64_t> BufferAssignment::ArenaUse() const {
  std::vector<int64_t> use(timeline_.size() + 1, 0);
  for (const Allocation& t : temps_) {
    if (t.slice.kind != Slice::kTemp) continue;
    use[static_cast<size_t>(t.begin)] += t.slice.size;
    if (t.end + 1 < static_cast<int64_t>(use.size())) use[static_cast<size_t>(t.end) + 1] -= t.slice.size;
  }
  std::partial_sum(use.begin(), use.end(), use.begin());
  use.pop_back();
  return use;
}

std::vector<const Allocation*> BufferAssignment::InArenaAt(int64_t tick) const {
  std::vector<const Allocation*> out;
  for (const Allocation& t : temps_)
    if (t.slice.kind == Slice::kTemp && t.begin <= tick && tick <= t.end) out.push_back(&t);
  std::stable_sort(out.begin(), out.end(), [](auto* a, auto* b) { return a->slice.size > b->slice.size; });
  return out;
}

}  // namespace kiln
