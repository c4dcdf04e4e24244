#include "compiler/plan/buffer_assignment.h"

#include <algorithm>
#include <numeric>

namespace kiln {
namespace {

struct Class {
  int parent;
  int64_t size = 0;
  int64_t begin = INT64_MAX, end = -1;
  Slice::Kind kind = Slice::kTemp;
  int64_t index = 0;
  const Instruction* owner = nullptr;
};

class Assigner {
 public:
  Assigner(const Module& m, const Schedule& s, const std::function<int64_t(const Instruction*)>& scratch)
      : m_(m), schedule_(s), scratch_(scratch) {}

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
  std::vector<const Instruction*> constants_;
  int64_t clock_ = 0;

 private:
  static bool PassesThrough(const Instruction* i) {
    return i->Is(Opcode::Tuple) || i->Is(Opcode::GetTupleElement) || i->Is(Opcode::Bitcast);
  }

  // Times of every instruction: a loop's body and condition lie inside the loop's span.
  void Number(const Computation* c) {
    for (Instruction* i : schedule_.at(c)) {
      begin_[i] = clock_++;
      if (i->Is(Opcode::While) || i->Is(Opcode::Conditional))
        for (const Computation* f : i->called()) Number(f);
      end_[i] = clock_++;
    }
  }

  int NewClass(const Leaf& l, const Shape& s) {
    const int id = static_cast<int>(classes_.size());
    classes_.push_back({id, s.ByteSize()});
    classes_.back().owner = l.instruction;
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
      if (PassesThrough(i)) {
        EachArray(i->shape(), [&](const ShapeIndex& idx, const Shape&) {
          Leaf from;
          if (i->Is(Opcode::Tuple))
            from = {i->operand(idx[0]), ShapeIndex(idx.begin() + 1, idx.end())};
          else if (i->Is(Opcode::Bitcast))
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

  // An elementwise loop may overwrite an operand that nobody reads afterwards.
  void ShareElementwise(const Computation* c) {
    for (Instruction* i : schedule_.at(c)) {
      if (i->Is(Opcode::While) || i->Is(Opcode::Conditional))
        for (const Computation* f : i->called()) ShareElementwise(f);
      if (!i->Is(Opcode::Fusion) || !i->shape().IsArray() || InPlaceOperand(i) >= 0) continue;
      for (int64_t k = 0; k < i->operand_count(); ++k) {
        if (!MayShareWithOperand(i, k)) continue;
        const int x = Find({i->operand(k), {}}), y = Find({i, {}});
        if (x == y) break;
        Class &p = classes_[x], &q = classes_[y];
        if (p.size != q.size || p.end != end_.at(i) || q.begin != begin_.at(i)) continue;
        if (p.kind != Slice::kTemp) continue;  // parameters and constants are not ours; a result is needed as it is
        q.begin = std::min(p.begin, q.begin);
        q.end = std::max(p.end, q.end);
        p.parent = y;
        break;
      }
    }
  }

  const Module& m_;
  const Schedule& schedule_;
  const std::function<int64_t(const Instruction*)>& scratch_;
  absl::flat_hash_map<const Instruction*, int64_t> begin_, end_;
};

}  // namespace

int64_t PlaceIntervals(const std::vector<Allocation>& in, int64_t alignment, std::vector<int64_t>* offsets) {
  const size_t n = in.size();
  offsets->assign(n, 0);
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  auto place = [&](const std::vector<size_t>& ord, std::vector<int64_t>* out) {
    int64_t total = 0;
    std::vector<size_t> placed;  // by offset
    for (size_t k : ord) {
      const int64_t size = (in[k].slice.size + alignment - 1) / alignment * alignment;
      int64_t at = 0, best = -1, best_gap = INT64_MAX;
      for (size_t p : placed) {
        if (in[p].begin > in[k].end || in[p].end < in[k].begin) continue;
        const int64_t start = (*out)[p], stop = start + (in[p].slice.size + alignment - 1) / alignment * alignment;
        if (start - at >= size && start - at < best_gap) {
          best = at;
          best_gap = start - at;
        }
        at = std::max(at, stop);
      }
      (*out)[k] = best >= 0 ? best : at;
      total = std::max(total, (*out)[k] + size);
      auto pos =
          std::upper_bound(placed.begin(), placed.end(), k, [&](size_t a, size_t b) { return (*out)[a] < (*out)[b]; });
      placed.insert(pos, k);
    }
    return total;
  };
  // Two orders; the better total wins: by size, and by size times length.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return in[a].slice.size > in[b].slice.size; });
  int64_t best = place(order, offsets);
  std::vector<int64_t> other(n, 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return static_cast<double>(in[a].slice.size) * static_cast<double>(in[a].end - in[a].begin + 1) >
           static_cast<double>(in[b].slice.size) * static_cast<double>(in[b].end - in[b].begin + 1);
  });
  const int64_t second = place(order, &other);
  if (second < best) {
    best = second;
    *offsets = other;
  }
  return best;
}

absl::StatusOr<BufferAssignment> BufferAssignment::Run(const Module& m, const Schedule& schedule,
                                                       const std::function<int64_t(const Instruction*)>& scratch) {
  Assigner a(m, schedule, scratch);
  RETURN_IF_ERROR(a.Build());
  BufferAssignment out;
  out.constants_ = a.constants_;
  std::vector<int> temp_class;
  for (size_t c = 0; c < a.classes_.size(); ++c) {
    const Class& x = a.classes_[c];
    if (x.parent != static_cast<int>(c) || x.kind != Slice::kTemp || x.size == 0) continue;
    Allocation t;
    t.slice.size = x.size;
    t.begin = x.begin;
    t.end = x.end;
    t.owner = x.owner->name();
    out.temps_.push_back(t);
    temp_class.push_back(static_cast<int>(c));
  }
  std::vector<int64_t> offsets;
  out.temp_bytes_ = PlaceIntervals(out.temps_, kAlignment, &offsets);
  absl::flat_hash_map<int, int64_t> at;
  std::vector<std::pair<int64_t, int64_t>> events;
  for (size_t k = 0; k < out.temps_.size(); ++k) {
    out.temps_[k].slice.offset = offsets[k];
    at[temp_class[k]] = offsets[k];
    events.push_back({out.temps_[k].begin, out.temps_[k].slice.size});
    events.push_back({out.temps_[k].end + 1, -out.temps_[k].slice.size});
  }
  std::sort(events.begin(), events.end());
  int64_t live = 0;
  for (const auto& [t, d] : events) out.lower_bound_ = std::max(out.lower_bound_, live += d);
  for (const auto& [leaf, id] : a.ids_) {
    const Class& x = a.classes_[a.Root(id)];
    Slice s;
    s.kind = x.kind;
    s.index = x.index;
    s.size = x.size;
    if (x.kind == Slice::kTemp && x.size) s.offset = at.at(a.Root(id));
    out.slices_[leaf] = s;
  }
  return out;
}

}  // namespace kiln
