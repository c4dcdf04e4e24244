#include "compiler/plan/copy_insertion.h"

#include <algorithm>
#include <utility>

#include "compiler/plan/alias.h"

namespace kiln {
namespace {

// What runs after what, by data and control edges. Instructions that were there when a computation's order was made
// have places in it, and none reaches one of a smaller place; those made since have none.
class Order {
 public:
  // Makes all of `uses` run before `writer`, which may be one of them. False, and nothing is changed, if one needs it.
  bool PutBefore(const std::vector<Instruction*>& uses, Instruction* writer) {
    const Computation* c = writer->parent();
    Make(c);
    uint32_t first = kNone, last = 0;
    for (const Instruction* u : uses) {
      if (u == writer) continue;
      const uint32_t at = PlaceOf(u);
      first = at == kNone ? 0 : std::min(first, at);
      last = std::max(last, at);
    }
    ++search_;
    Visit(
        writer, [](const Instruction* i) { return std::pair(&i->users(), &i->control_successors()); },
        [&](uint32_t at) { return at <= last; });
    for (const Instruction* u : uses)
      if (u != writer && Seen(u)) return false;
    ++search_;
    const auto before = [](const Instruction* i) { return std::pair(&i->operands(), &i->control_predecessors()); };
    const auto not_before_first = [&](uint32_t at) { return at >= first; };
    Visit(writer, before, not_before_first);
    for (Instruction* u : uses) {
      if (Seen(u)) continue;
      u->AddControlDependencyTo(writer);
      const uint32_t at = PlaceOf(u), then = PlaceOf(writer);
      if (at == kNone || then == kNone || at > then) made_.erase(c);
      Visit(u, before, not_before_first);
    }
    return true;
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  void Make(const Computation* c) {
    if (!made_.insert(c).second) return;
    uint32_t place = 0;
    for (const Instruction* i : c->PostOrder()) {
      const size_t id = Id(i);
      if (places_.size() <= id) places_.resize(id + 1, kNone);
      places_[id] = place++;
    }
  }

  // Marks `start` and all that it leads to by way of places that `within` allows.
  template <typename Next, typename Within>
  void Visit(const Instruction* start, const Next& next, const Within& within) {
    std::vector<const Instruction*> work;
    const auto mark = [&](const Instruction* i) {
      const size_t id = Id(i);
      if (seen_.size() <= id) seen_.resize(id + 1, 0);
      if (std::exchange(seen_[id], search_) == search_) return;
      if (const uint32_t at = PlaceOf(i); at == kNone || within(at)) work.push_back(i);
    };
    mark(start);
    while (!work.empty()) {
      const auto [data, control] = next(work.back());
      work.pop_back();
      for (const Instruction* i : *data) mark(i);
      for (const Instruction* i : *control) mark(i);
    }
  }

  static size_t Id(const Instruction* i) { return static_cast<size_t>(i->id()); }
  bool Seen(const Instruction* i) const { return Id(i) < seen_.size() && seen_[Id(i)] == search_; }
  uint32_t PlaceOf(const Instruction* i) const { return Id(i) < places_.size() ? places_[Id(i)] : kNone; }

  absl::flat_hash_set<const Computation*> made_;
  std::vector<uint32_t> places_, seen_;  // by id; the last search that came by
  uint32_t search_ = 0;
};

// The update that makes a fusion's result `output`, and its operand that it overwrites.
std::pair<Instruction*, int64_t> UpdateOf(const Computation* body, int64_t output) {
  Instruction* root = body->root();
  if (root->Is(Opcode::Tuple)) return {root->operand(output), 0};
  return {root, output};
}

// True if `i` needs the old elements of operand `k` only where output `output`, which takes the operand's place, leaves
// them as they are: no index, update or other output is computed from them.
bool OnlyUpdates(const Instruction* i, int64_t k, int64_t output) {
  if (!i->Is(Opcode::Fusion) || KeepsOldRows(i)) return true;
  const Computation* body = *i->attrs().calls;
  const auto [update, array] = UpdateOf(body, output);
  // The way from the parameter to the updated operand of the root; a second use anywhere on it reads elements.
  for (const Instruction* v = body->parameter(k);;) {
    if (v->users().size() != 1) return false;
    const Instruction* user = v->users()[0];
    if (std::count(user->operands().begin(), user->operands().end(), v) != 1) return false;
    if (user == update) return user->operand(array) == v;
    if (!user->Is(Opcode::Bitcast)) return false;
    v = user;
  }
}

class Inserter {
 public:
  explicit Inserter(Module& m) : m_(m) {
    control_.insert(m.entry());
    for (const auto& c : m.computations())
      for (const auto& i : c->instructions()) {
        if (i->Is(Opcode::Fusion)) ++fusions_of_[*i->attrs().calls];
        if (!i->Is(Opcode::While) && !i->Is(Opcode::Conditional)) continue;
        for (const Computation* callee : i->called()) control_.insert(callee);
        if (i->Is(Opcode::While)) loops_.insert({*i->attrs().body, i.get()});
      }
  }

  absl::Status Run() {
    // Callees first: a loop body's own copies decide which of its elements are handed through.
    for (Computation* c : m_.PostOrder()) {
      if (!control_.contains(c)) continue;
      RETURN_IF_ERROR(InPlaceUsers(c));
      for (Instruction* i : c->PostOrder()) {
        if (i->Is(Opcode::While)) LoopBody(i);
        if (i->Is(Opcode::Conditional)) Branches(i);
      }
    }
    EntryResults();
    return absl::OkStatus();
  }

 private:
  Instruction* Copy(Instruction* v) {
    Instruction* c = v->parent()->Add(Opcode::Copy, v->shape(), {v});
    c->set_loc(v->loc());
    return c;
  }

  // The instruction that holds leaf `index` of `v` as an array; elements are extracted as needed.
  Instruction* Extract(Instruction* v, const ShapeIndex& index) {
    for (int64_t k : index) {
      if (v->Is(Opcode::Tuple)) {
        v = v->operand(k);
        continue;
      }
      Instruction* g = v->parent()->Add(Opcode::GetTupleElement, v->shape().tuple()[k], {v});
      g->mutable_attrs().tuple_index = k;
      v = g;
    }
    return v;
  }

  // `v` (a tuple value) with leaf `index` replaced: changed itself where only one place sees it, else another tuple.
  Instruction* Rebuild(Instruction* v, const ShapeIndex& index, size_t depth, Instruction* with) {
    if (depth == index.size()) return with;
    const int64_t at = index[depth];
    if (v->Is(Opcode::Tuple) && v->users().size() + (v->IsRoot() ? 1 : 0) == 1) {
      Instruction* part = v->operand(at);
      if (depth + 1 == index.size() || std::count(v->operands().begin(), v->operands().end(), part) == 1) {
        v->ReplaceOperand(at, Rebuild(part, index, depth + 1, with));
        return v;
      }
    }
    Computation* c = v->parent();
    std::vector<Instruction*> parts;
    std::vector<Shape> shapes;
    for (size_t k = 0; k < v->shape().tuple().size(); ++k) {
      Instruction* e = Extract(v, {static_cast<int64_t>(k)});
      if (static_cast<int64_t>(k) == at) e = Rebuild(e, index, depth + 1, with);
      parts.push_back(e);
      shapes.push_back(e->shape());
    }
    return c->Add(Opcode::Tuple, Shape::Tuple(shapes), parts);
  }

  // Parameters of the entry that were not donated, constants, and elements that a loop hands through are read-only.
  bool Writable(const Leaf& source) {
    Instruction* i = source.instruction;
    if (i->Is(Opcode::Constant)) return false;
    if (!i->Is(Opcode::Parameter)) return true;
    if (i->parent() == m_.entry()) {
      for (const AliasEntry& a : m_.aliases)
        if (a.parameter == *i->attrs().parameter_number && a.parameter_index == source.index) return true;
      return false;
    }
    // Loop state is writable where the loop owns it; branch arguments and conditions only read.
    const auto loop = loops_.find(i->parent());
    return loop != loops_.end() && !IsLoopInvariant(loop->second, source.index);
  }

  // Orders every other use of `value` before `writer`. False if one of them needs the writer.
  bool OrderUsesBefore(const Leaf& value, Instruction* writer) { return order_.PutBefore(UsesOf(value), writer); }

  // Updates in place and loop initial values: the operand must be theirs to overwrite.
  absl::Status InPlaceUsers(Computation* c) {
    for (Instruction* i : c->PostOrder()) {
      if (i->Is(Opcode::While)) {
        absl::flat_hash_set<Leaf> taken;
        std::vector<ShapeIndex> leaves;
        ForEachLeaf(i->shape(), [&](const ShapeIndex& idx, const Shape& s) {
          if (s.IsArray()) leaves.push_back(idx);
        });
        for (const ShapeIndex& idx : leaves) {
          if (IsLoopInvariant(i, idx)) continue;
          const Leaf src = SourceOf({i->operand(0), idx});
          bool root = false;
          const std::vector<Instruction*> uses = UsesOf(src, &root);
          // Handed to the loop twice (here, or as an element that the loop only reads): it needs its own storage.
          bool twice = !taken.insert(src).second;
          for (const ShapeIndex& other : leaves)
            if (other != idx && SourceOf({i->operand(0), other}) == src) twice = true;
          if (twice || root || !Writable(src) || !OrderUsesBefore(src, i)) {
            Instruction* fresh = Copy(Extract(i->operand(0), idx));
            i->ReplaceOperand(0, Rebuild(i->operand(0), idx, 0, fresh));
          }
        }
        continue;
      }
      const int64_t outputs = i->shape().IsTuple() ? static_cast<int64_t>(i->shape().tuple().size()) : 1;
      absl::flat_hash_set<Leaf> taken;
      absl::flat_hash_set<int64_t> operands;
      for (int64_t o = 0; o < outputs; ++o) {
        int64_t k = InPlaceOperand(i, o);
        if (k < 0) continue;
        // What reads the elements that the update replaces keeps an operand of its own, with the old ones.
        if (!operands.insert(k).second || !OnlyUpdates(i, k, o)) k = SplitOperand(i, o, k);
        const Leaf src = SourceOf({i->operand(k), {}});
        bool root = false;
        UsesOf(src, &root);
        const bool twice = !taken.insert(src).second || UsedTwice(i, src);
        if (twice || root || !Writable(src) || !OrderUsesBefore(src, i)) {
          i->ReplaceOperand(k, Copy(i->operand(k)));
        }
      }
    }
    return absl::OkStatus();
  }

  // The fusion gets another operand, equal to `k`, for output `o` to update. Others that share its computation, as
  // those of copied loops do, keep it as it is.
  int64_t SplitOperand(Instruction* fusion, int64_t o, int64_t k) {
    Computation* body = *fusion->attrs().calls;
    if (int64_t& fusions = fusions_of_[body]; fusions > 1) {
      --fusions;
      body = m_.CloneComputation(body);
      fusion->mutable_attrs().calls = body;
      fusions_of_[body] = 1;
    }
    const int64_t number = fusion->operand_count();
    Instruction* target = body->AddParameter(number, body->parameter(k)->shape(), "again");
    const auto [update, array] = UpdateOf(body, o);
    if (update->operand(array)->Is(Opcode::Bitcast))
      target = body->AddClone(update->operand(array), update->operand(array)->shape(), {target});
    update->ReplaceOperand(array, target);
    fusion->AppendOperand(fusion->operand(k));
    return number;
  }

  // The instruction reads `src` by more than the operand it overwrites.
  bool UsedTwice(const Instruction* i, const Leaf& src) {
    int n = 0;
    for (Instruction* o : i->operands())
      if (o->shape().IsArray() && SourceOf({o, {}}) == src) ++n;
    return n > 1;
  }

  void LoopBody(Instruction* loop) {
    Computation* body = *loop->attrs().body;
    Instruction* param = body->parameter(0);
    std::vector<ShapeIndex> leaves;
    ForEachLeaf(loop->shape(), [&](const ShapeIndex& idx, const Shape& s) {
      if (s.IsArray()) leaves.push_back(idx);
    });
    std::vector<ShapeIndex> owned;
    for (const ShapeIndex& idx : leaves)
      if (!IsLoopInvariant(loop, idx)) owned.push_back(idx);
    // Values that lie in the storage of other state, as they came or updated in place: copied out first, so that no
    // order of writes can lose one.
    absl::flat_hash_set<Leaf> taken;
    for (const ShapeIndex& idx : owned) {
      const Leaf src = SourceOf({body->root(), idx}), storage = StorageOf(src);
      const bool in_other_state = storage.instruction == param && storage.index != idx;
      const bool borrowed = !Writable(src) || in_other_state || !taken.insert(src).second;
      if (!borrowed) continue;
      Instruction* v = Copy(Extract(body->root(), idx));
      body->set_root(Rebuild(body->root(), idx, 0, v));
      taken.insert({v, {}});
    }
    for (const ShapeIndex& idx : owned) {
      const Leaf state = {param, idx};
      const Leaf src = SourceOf({body->root(), idx});
      // A kernel that already works in the state's own buffer, or whose value may be put there.
      if (SharesBuffer(src, state)) continue;
      if (!WriteInto(src, state)) {
        Instruction* v = Copy(Extract(body->root(), idx));
        body->set_root(Rebuild(body->root(), idx, 0, v));
        for (const Leaf& held : HeldBy(state)) OrderUsesBefore(held, v);
      }
    }
  }

  // Orders the readers of `storage` so that the kernel that produces `value` may write there. False if it may not: it
  // works in other storage, reads `storage` at other positions than it writes, or a reader needs it.
  bool WriteInto(const Leaf& value, const Leaf& storage) {
    if (OverwrittenLater(value)) return false;
    // What was updated in place goes there from the kernel on that made it.
    const Leaf src = BeforeUpdates(value);
    Instruction* w = src.instruction;
    if (UpdatesInPlace(w) || w->Is(Opcode::While) || w->Is(Opcode::Conditional) || w->Is(Opcode::Parameter) ||
        w->Is(Opcode::Constant)) {
      return false;
    }
    // Whatever lies in the storage before: its first value, and those that were made of it in place.
    for (const Leaf& held : HeldBy(storage)) {
      bool root = false;
      const std::vector<Instruction*> uses = UsesOf(held, &root);
      if (root && !(held == storage)) return false;
      if (std::find(uses.begin(), uses.end(), w) != uses.end()) {
        int64_t same = 0, shared = 0;
        for (int64_t k = 0; k < w->operand_count(); ++k) {
          if (!w->operand(k)->shape().IsArray() || !(SourceOf({w->operand(k), {}}) == held)) continue;
          ++same;
          shared += MayShareWithOperand(w, k, src.index.empty() ? 0 : src.index[0]);
        }
        if (same == 0 || same != shared) return false;
      }
      if (!OrderUsesBefore(held, w)) return false;
    }
    return true;
  }

  std::vector<Leaf> HeldBy(const Leaf& storage) {
    std::vector<Leaf> held = {storage};
    for (size_t n = 0; n < held.size(); ++n) {
      for (Instruction* u : UsesOf(held[n])) {
        ForEachLeaf(u->shape(), [&](const ShapeIndex& idx, const Shape& s) {
          if (!s.IsArray()) return;
          Leaf from;
          if (u->Is(Opcode::While)) {
            from = SourceOf({u->operand(0), idx});
          } else {
            const int64_t k = InPlaceOperand(u, idx.empty() ? 0 : idx[0]);
            if (k < 0) return;
            from = SourceOf({u->operand(k), {}});
          }
          const Leaf made = {u, idx};
          if (from == held[n] && std::find(held.begin(), held.end(), made) == held.end()) held.push_back(made);
        });
      }
    }
    return held;
  }

  // The value that a chain of updates, loops not among them, made `value` of in place; `value` itself if there is none.
  static Leaf BeforeUpdates(Leaf value) {
    for (;;) {
      const Instruction* i = value.instruction;
      const int64_t k = i->Is(Opcode::While) ? -1 : InPlaceOperand(i, value.index.empty() ? 0 : value.index[0]);
      if (k < 0) return value;
      value = SourceOf({i->operand(k), {}});
    }
  }

  // The value whose storage a chain of in-place operations made `value` in; `value` itself if there is none.
  static Leaf StorageOf(Leaf value) {
    for (;;) {
      Instruction* i = value.instruction;
      if (i->Is(Opcode::While)) {
        value = SourceOf({i->operand(0), value.index});
        continue;
      }
      const int64_t k = InPlaceOperand(i, value.index.empty() ? 0 : value.index[0]);
      if (k < 0) return value;
      value = SourceOf({i->operand(k), {}});
    }
  }

  bool SharesBuffer(const Leaf& src, const Leaf& state) { return StorageOf(src) == state; }

  // Another kernel writes into this value's buffer (it is an in-place operand somewhere): it may not be pinned too.
  bool OverwrittenLater(const Leaf& src) {
    for (Instruction* u : UsesOf(src)) {
      if (u->Is(Opcode::While)) return true;
      const int64_t outputs = u->shape().IsTuple() ? static_cast<int64_t>(u->shape().tuple().size()) : 1;
      for (int64_t o = 0; o < outputs; ++o) {
        const int64_t k = InPlaceOperand(u, o);
        if (k >= 0 && u->operand(k)->shape().IsArray() && SourceOf({u->operand(k), {}}) == src) return true;
      }
    }
    return false;
  }

  void Branches(Instruction* cond) {
    for (Computation* b : cond->called()) {
      std::vector<ShapeIndex> leaves;
      ForEachLeaf(cond->shape(), [&](const ShapeIndex& idx, const Shape& s) {
        if (s.IsArray()) leaves.push_back(idx);
      });
      absl::flat_hash_set<Leaf> taken;
      for (const ShapeIndex& idx : leaves) {
        const Leaf src = SourceOf({b->root(), idx});
        const bool borrowed = src.instruction->Is(Opcode::Parameter) || src.instruction->Is(Opcode::Constant) ||
                              src.instruction->Is(Opcode::While) || src.instruction->Is(Opcode::Conditional) ||
                              UpdatesInPlace(src.instruction) || !taken.insert(src).second;
        if (!borrowed) continue;
        b->set_root(Rebuild(b->root(), idx, 0, Copy(Extract(b->root(), idx))));
      }
    }
  }

  void EntryResults() {
    Computation* e = m_.entry();
    std::vector<ShapeIndex> leaves;
    ForEachLeaf(e->root()->shape(), [&](const ShapeIndex& idx, const Shape& s) {
      if (s.IsArray()) leaves.push_back(idx);
    });
    absl::flat_hash_set<Leaf> taken;
    // First the results that may not be where they are: read-only values, and one value as two results.
    for (const ShapeIndex& idx : leaves) {
      const Leaf src = SourceOf({e->root(), idx});
      if (src.instruction->Is(Opcode::Parameter)) {
        // A donated parameter handed straight to its own output needs nothing.
        bool own = false;
        for (const AliasEntry& a : m_.aliases)
          own = own || (a.output == idx && a.parameter == *src.instruction->attrs().parameter_number &&
                        a.parameter_index == src.index);
        if (own && taken.insert(src).second) continue;
      } else if (!src.instruction->Is(Opcode::Constant) && taken.insert(src).second) {
        continue;
      }
      e->set_root(Rebuild(e->root(), idx, 0, Copy(Extract(e->root(), idx))));
    }
    // What was made in place of a donated parameter and is another result leaves it.
    for (const AliasEntry& a : m_.aliases)
      for (const ShapeIndex& idx : leaves)
        if (idx != a.output && SharesBuffer(SourceOf({e->root(), idx}), {e->parameter(a.parameter), a.parameter_index}))
          e->set_root(Rebuild(e->root(), idx, 0, Copy(Extract(e->root(), idx))));
    for (const AliasEntry& a : m_.aliases) {
      const Leaf param = {e->parameter(a.parameter), a.parameter_index};
      const Leaf src = SourceOf({e->root(), a.output});
      if (SharesBuffer(src, param)) continue;
      if (!WriteInto(src, param)) {
        Instruction* v = Copy(Extract(e->root(), a.output));
        e->set_root(Rebuild(e->root(), a.output, 0, v));
        for (const Leaf& held : HeldBy(param)) OrderUsesBefore(held, v);
      }
    }
  }

  Module& m_;
  Order order_;
  // The entry, and what loops and branches call; loops by their bodies.
  absl::flat_hash_set<const Computation*> control_;
  absl::flat_hash_map<const Computation*, Instruction*> loops_;
  absl::flat_hash_map<const Computation*, int64_t> fusions_of_;
};

}  // namespace

absl::Status InsertCopies(Module& m) { return Inserter(m).Run(); }

}  // namespace kiln
