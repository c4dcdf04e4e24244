#include "tests/random/annotations.h"

#include <algorithm>
#include <random>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace kiln {
namespace {

class Annotator {
 public:
  explicit Annotator(uint64_t seed) : rng_(seed) {}

  // Instructions that wait for others, or that others wait for. Half of them are values that the computation returns,
  // so that whatever takes their place is found.
  void AddControlEdges(Computation* c) {
    std::vector<Instruction*> order = c->PostOrder(), ends;
    for (Instruction* i : order)
      if (!i->Is(Opcode::Parameter) && !i->Is(Opcode::Constant) &&
          (Chance(25) || (i->IsUsedBy(c->root()) && Chance(60))))
        ends.push_back(i);
    for (size_t k = 0; k + 1 < ends.size(); ++k) {
      const size_t to = k + 1 + Pick(std::min<size_t>(ends.size() - k - 1, 3));
      ends[k]->AddControlDependencyTo(ends[to]);
    }
  }

  void AddSharding(Instruction* i) {
    if (!i->shape().IsArray() || !Chance(30)) return;
    const uint64_t kind = Pick(3);
    std::string text = kind == 0 ? "{replicated}" : "{maximal device=0}";
    if (kind == 2 && i->shape().rank() > 0) {
      Ints tiles(static_cast<size_t>(i->shape().rank()), 1);
      tiles[Pick(tiles.size())] = 2;
      text = absl::StrCat("{devices=[", absl::StrJoin(tiles, ","), "]<=[2]}");
    }
    i->mutable_attrs().sharding = text;
  }

  // Operations whose layout is a wish: no bytes are meant by it.
  void AddLayout(Instruction* i) {
    const Lowering lowering = InfoOf(i->opcode()).lowering;
    const bool wish =
        (lowering == Lowering::Elemental || lowering == Lowering::Thunk || lowering == Lowering::Expanded) &&
        !i->Is(Opcode::CustomCall) && !i->Is(Opcode::Fusion);
    if (!wish || !i->shape().IsArray() || i->shape().rank() < 2 || i->IsRoot() || !Chance(30)) return;
    Layout layout = Layout::Descending(i->shape().rank());
    std::shuffle(layout.minor_to_major.begin(), layout.minor_to_major.end(), rng_);
    i->mutable_shape().set_layout(layout);
  }

 private:
  uint64_t Pick(uint64_t n) { return rng_() % n; }
  bool Chance(int percent) { return Pick(100) < static_cast<uint64_t>(percent); }

  std::mt19937_64 rng_;
};

// Computations whose instructions run one by one.
std::vector<Computation*> Running(const Module& m) {
  std::vector<Computation*> out = {m.entry()};
  absl::flat_hash_set<const Computation*> seen = {m.entry()};
  for (size_t k = 0; k < out.size(); ++k)
    for (const auto& i : out[k]->instructions())
      if (i->Is(Opcode::While) || i->Is(Opcode::Conditional) || i->Is(Opcode::Call))
        for (Computation* c : i->called())
          if (seen.insert(c).second) out.push_back(c);
  return out;
}

using Names = absl::flat_hash_map<std::string, const Instruction*>;

// Of the instructions with an id below `first_new`.
Names NamesOf(const Module& m, int64_t first_new) {
  Names out;
  for (const Computation* c : m.PostOrder())
    for (const auto& i : c->instructions())
      if (i->id() < first_new) out[i->name()] = i.get();
  return out;
}

// Where each computation is called from; the last caller where there are several.
using Callers = absl::flat_hash_map<const Computation*, const Instruction*>;

Callers CallersOf(const Module& m) {
  Callers out;
  for (const Computation* c : m.PostOrder())
    for (const auto& i : c->instructions())
      for (const Computation* callee : i->called()) out[callee] = i.get();
  return out;
}

// `i`, the instruction that calls its computation, and so on to the entry.
std::vector<const Instruction*> Chain(const Instruction* i, const Callers& callers) {
  std::vector<const Instruction*> out = {i};
  for (auto at = callers.find(i->parent()); at != callers.end(); at = callers.find(at->second->parent()))
    out.push_back(at->second);
  return out;
}

bool Reaches(const Instruction* from, const Instruction* to) {
  absl::flat_hash_set<const Instruction*> seen = {from};
  std::vector<const Instruction*> work = {from};
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    if (i == to) return true;
    for (const auto* next : {&i->users(), &i->control_successors()})
      for (const Instruction* n : *next)
        if (seen.insert(n).second) work.push_back(n);
  }
  return false;
}

// Whether `a` runs before `b` in every order that the module allows; true where nothing can tell.
bool Ordered(const Instruction* a, const Instruction* b, const Callers& callers) {
  for (const Instruction* x : Chain(a, callers))
    for (const Instruction* y : Chain(b, callers))
      if (x->parent() == y->parent()) return x == y || Reaches(x, y);
  return true;
}

class Survivors {
 public:
  Survivors(const Module& before, const Module& after, int64_t first_new)
      : first_new_(first_new), names_(NamesOf(after, first_new)) {
    for (const Computation* c : before.PostOrder())
      for (const auto& i : c->instructions()) AddPlaces(i.get());
  }

  // What stands for `i` in the other module; null if that cannot be said. `waits`: where a value that was there before
  // took the place, what uses it is what waits (Instruction::ReplaceAllUsesWith).
  const Instruction* Of(const Instruction* i, bool waits) const {
    if (const Instruction* same = Named(i)) return same;
    const auto at = places_.find(i);
    if (at == places_.end()) return nullptr;
    if (at->second.value->id() >= first_new_) return at->second.value;
    return waits ? at->second.user : nullptr;
  }

  // What uses the value that took the place of `i`; null if none did, or that cannot be said.
  const Instruction* UserOf(const Instruction* i) const {
    const auto at = Named(i) ? places_.end() : places_.find(i);
    return at == places_.end() ? nullptr : at->second.user;
  }

 private:
  const Instruction* Named(const Instruction* i) const {
    const auto at = names_.find(i->name());
    return at == names_.end() || at->second->opcode() != i->opcode() ? nullptr : at->second;
  }

  // A tuple computes nothing, so what it holds in the place of `i` stands for `i`; elsewhere only what does the same.
  void AddPlaces(const Instruction* user) {
    const Instruction* same = Named(user);
    if (!same || same->operand_count() != user->operand_count()) return;
    for (int64_t k = 0; k < user->operand_count(); ++k) {
      const Instruction *was = user->operand(k), *is = same->operand(k);
      const bool does_the_same = is->opcode() == was->opcode() && is->shape().Compatible(was->shape());
      if (user->Is(Opcode::Tuple) || (is->id() >= first_new_ && does_the_same)) places_[was] = {is, same};
    }
  }

  const int64_t first_new_;
  const Names names_;
  struct Place {
    const Instruction* value;
    const Instruction* user;
  };
  absl::flat_hash_map<const Instruction*, Place> places_;
};

// Everything that waits for `i` by a chain of control edges alone.
std::vector<const Instruction*> WaitFor(const Instruction* i) {
  std::vector<const Instruction*> out(i->control_successors().begin(), i->control_successors().end());
  absl::flat_hash_set<const Instruction*> seen(out.begin(), out.end());
  for (size_t k = 0; k < out.size(); ++k)
    for (const Instruction* s : out[k]->control_successors())
      if (seen.insert(s).second) out.push_back(s);
  return out;
}

}  // namespace

void Annotate(Module* m, uint64_t seed, const Annotations& which) {
  Annotator annotator(seed);
  for (Computation* c : Running(*m)) {
    if (which.control_edges) annotator.AddControlEdges(c);
    for (const auto& i : c->instructions()) {
      if (which.shardings) annotator.AddSharding(i.get());
      if (which.layouts) annotator.AddLayout(i.get());
    }
  }
}

absl::Status CheckControlEdgesKept(const Module& before, const Module& after, int64_t first_new) {
  const Survivors survivors(before, after, first_new);
  const Callers callers = CallersOf(after);
  for (const Computation* c : before.PostOrder())
    for (const auto& i : c->instructions()) {
      if (i->control_successors().empty()) continue;
      const Instruction* first = survivors.Of(i.get(), false);
      if (!first) continue;
      for (const Instruction* s : WaitFor(i.get())) {
        const Instruction* then = survivors.Of(s, true);
        if (then && first != then && Reaches(then, first)) then = survivors.UserOf(s);
        if (then && !Ordered(first, then, callers))
          return absl::InternalError(absl::StrCat(s->name(), " waited for ", i->name(), "; now ", then->name(),
                                                  " does not wait for ", first->name()));
      }
    }
  return absl::OkStatus();
}

absl::Status CheckShardingsKept(const Module& before, const Module& after, int64_t first_new) {
  const Names names = NamesOf(after, first_new);
  for (const Computation* c : before.PostOrder())
    for (const auto& i : c->instructions()) {
      if (!i->attrs().sharding) continue;
      const auto at = names.find(i->name());
      if (at == names.end() || at->second->opcode() != i->opcode() || !at->second->shape().Compatible(i->shape()))
        continue;
      if (at->second->attrs().sharding != i->attrs().sharding)
        return absl::InternalError(absl::StrCat(i->name(), " had the sharding ", i->attrs().sharding->text));
    }
  return absl::OkStatus();
}

}  // namespace kiln
