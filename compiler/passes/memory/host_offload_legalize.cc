// What lies in the host's memory has one layout from where it is moved there to where it is moved back.
//
// Copies that change the layout on the way, where no device could run them, go to the device: behind the move back and,
// of what is updated or returned there, before the move. All that hands the value on takes the layout on, loops, tuples
// and bitcasts included; slices move what they read themselves, then. A copy stays where something else than these
// reads the value, or wants it as it lies: a result, an argument, the host's own code.
// Source: XLA's HostOffloadLegalize, which moves copies behind the moves back and exchanges those of results with the
// move.
#include <algorithm>
#include <map>

#include "compiler/hlo/physical_shape.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/memory/host_values.h"

namespace kiln {
namespace {

bool SameOrder(const Shape& a, const Shape& b) {
  return a.LayoutOrDefault().minor_to_major == b.LayoutOrDefault().minor_to_major;
}

bool IsBitcast(const Instruction* i) { return i->Is(Opcode::Bitcast) || i->Is(Opcode::Reshape); }

// Dimensions of more than one element, from the slowest to the fastest.
Ints LongDims(const Shape& s) {
  Ints out;
  for (int64_t d : MajorToMinor(s))
    if (s.dim(d) != 1) out.push_back(d);
  return out;
}

// The layout of `to`, a bitcast of `from` or the other way round, once `from` has another; none where the elements of
// one dimension are not those of one dimension.
std::optional<Layout> Across(const Shape& from, const Shape& to, const Layout& layout) {
  const Ints mine = LongDims(from), its = LongDims(to);
  if (mine.size() != its.size() || from.type() != to.type()) return std::nullopt;
  for (size_t k = 0; k < mine.size(); ++k)
    if (from.dim(mine[k]) != to.dim(its[k])) return std::nullopt;
  Layout out;
  for (int64_t d : layout.minor_to_major)
    if (const auto at = std::find(mine.begin(), mine.end(), d); at != mine.end())
      out.minor_to_major.push_back(its[static_cast<size_t>(at - mine.begin())]);
  for (int64_t d = to.rank() - 1; d >= 0; --d)
    if (to.dim(d) == 1) out.minor_to_major.push_back(d);
  out.extras = layout.extras;
  return out;
}

// The move back that all of a slice goes to; null: there is none, or something else reads it.
Instruction* MoveBehind(Instruction* slice) {
  Instruction* i = slice;
  do {
    if (i->users().size() != 1 || i->IsRoot()) return nullptr;
    i = i->users()[0];
    if (MovesToDevice(i)) return i;
  } while (IsBitcast(i) || i->Is(Opcode::Copy));
  return nullptr;
}

// One value with all that lies where it lies, in another layout.
class Relayout {
 public:
  Relayout(const Module& m, const HostValues& places) : m_(m), places_(places) {}

  // Whether what lies where leaf `first` lies may have the layout.
  bool Plan(int first, const Layout& layout) {
    if (!Take(first, layout)) return false;
    while (!work_.empty()) {
      const int l = work_.back();
      work_.pop_back();
      if (!PlanLeaf(l, plan_.at(l))) return false;
    }
    return true;
  }

  void Run() {
    for (const auto& [leaf, layout] : plan_) {
      const Leaf& l = places_.leaves()[static_cast<size_t>(leaf)];
      Shape* s = &l.instruction->mutable_shape();
      for (int64_t k : l.index) s = &s->mutable_tuple()[static_cast<size_t>(k)];
      SetLayout(s, layout);
    }
    for (Instruction* move : moved_) move->ReplaceOperand(0, Laid(move->operand(0), *move->shape().layout()));
    for (const auto& [user, k, layout] : fed_) user->ReplaceOperand(k, Laid(user->operand(k), layout));
    for (Instruction* update : updates_) LayUpdate(update);
    for (const auto& [cast, wanted] : casts_) LayCast(cast, wanted);
    for (const auto& [exit, layout] : exits_) MovesToDevice(exit) ? LayMove(exit, layout) : LaySlice(exit, layout);
  }

 private:
  struct Fed {
    Instruction* user;
    int64_t operand;
    Layout layout;
  };

  static void SetLayout(Shape* s, const Layout& layout) {
    const bool on_host = s->LiesInSlowMemory();
    s->set_layout(layout);
    *s = on_host ? OnHost(*s) : OnDevice(*s);
  }

  static Instruction* Laid(Instruction* v, const Layout& layout) {
    Shape s = v->shape();
    SetLayout(&s, layout);
    if (IsFill(v)) return v->parent()->AddClone(v, s, v->operands());
    if (SameOrder(s, v->shape())) return v;
    return v->parent()->Add(Opcode::Copy, OnDevice(s), {v});
  }

  bool Take(int leaf, const Layout& layout) {
    const auto [at, fresh] = plan_.insert({leaf, layout});
    if (fresh) work_.push_back(leaf);
    return fresh || at->second.minor_to_major == layout.minor_to_major;
  }

  const Shape& ShapeOf(const Leaf& l) const { return *PartAt(l.instruction->shape(), l.index); }

  bool PlanLeaf(int leaf, const Layout& layout) {
    const Leaf& l = places_.leaves()[static_cast<size_t>(leaf)];
    Instruction* i = l.instruction;
    if (i == m_.entry()->root() || (i->Is(Opcode::Parameter) && !KeepsPlace(i))) return false;
    for (int next : places_.joined(leaf)) {
      const Leaf& n = places_.leaves()[static_cast<size_t>(next)];
      const bool cast = (IsBitcast(n.instruction) && n.instruction->operand(0) == i) ||
                        (IsBitcast(i) && i->operand(0) == n.instruction);
      const auto there = cast ? Across(ShapeOf(l), ShapeOf(n), layout) : layout;
      if (!there && IsBitcast(n.instruction) && n.instruction->operand(0) == i && PlanCast(n.instruction)) continue;
      if (!there || !Take(next, *there)) return false;
    }
    if (MovesToHost(i)) moved_.push_back(i);
    if (i->Is(Opcode::DynamicUpdateSlice)) {
      if (places_.Contains({i->operand(1), {}}) && !MoveOfUpdate(i->operand(1))) return false;
      updates_.push_back(i);
    }
    for (Instruction* u : i->users())
      for (int64_t k = 0; k < u->operand_count(); ++k)
        if (u->operand(k) == i && !PlanUse(l, u, k, layout)) return false;
    return PlanFeeders(leaf, layout);
  }

  // What is read in another form only to be moved back is moved back before.
  bool PlanCast(Instruction* cast) {
    if (!MoveBehind(cast)) return false;
    casts_.push_back({cast, OnDevice(cast->operand(0)->shape())});
    return true;
  }

  // What reads the value.
  bool PlanUse(const Leaf& l, Instruction* u, int64_t k, const Layout& layout) {
    if (!KeepsPlace(l.instruction)) {
      bool keeps = false;
      for (const Leaf& place : HostValues::PlacesIn(u, k, l.index)) {
        const auto there = IsBitcast(u) ? Across(ShapeOf(l), ShapeOf(place), layout) : layout;
        keeps = true;
        if (!there && IsBitcast(u) && PlanCast(u)) continue;
        if (!there || !Take(places_.Find(place), *there)) return false;
      }
      if (keeps) return true;
    }
    if (u->Is(Opcode::GetTupleElement) || u->Is(Opcode::Copy) || !HostValues::PlacesIn(u, k, l.index).empty())
      return true;
    const bool slice = (u->Is(Opcode::Slice) || u->Is(Opcode::DynamicSlice)) && k == 0;
    if (!MovesToDevice(u) && !(slice && MoveBehind(u))) return false;
    exits_.insert({u, layout});
    return true;
  }

  // Where the value comes from, if it comes from elsewhere.
  bool PlanFeeders(int leaf, const Layout& layout) {
    const Leaf& l = places_.leaves()[static_cast<size_t>(leaf)];
    for (int f : places_.feeders(leaf)) {
      const Leaf& from = places_.leaves()[static_cast<size_t>(f)];
      Instruction* d = from.instruction;
      const bool copied = l.instruction->Is(Opcode::Copy);  // into the layout
      const bool updates = l.instruction->Is(Opcode::DynamicUpdateSlice) && l.instruction->operand(1) == d;
      if (copied || (updates && l.instruction->operand(0) != d)) continue;
      if (MovesToHost(d) || (d->Is(Opcode::Copy) && places_.IsOnHost(f))) {
        const auto there = IsBitcast(l.instruction) ? Across(ShapeOf(l), ShapeOf(from), layout) : layout;
        if (!there || !Take(f, *there)) return false;
        continue;
      }
      const int64_t k = l.instruction->OperandIndex(d);
      if (places_.IsOnHost(f) || k < 0 || !from.index.empty() || IsBitcast(l.instruction)) return false;
      fed_.push_back({l.instruction, k, layout});
    }
    return true;
  }

  static void LayUpdate(Instruction* update) {
    Instruction* given = update->operand(1);
    const Layout& layout = *update->shape().layout();
    if (SameOrder(given->shape(), update->shape())) return;
    const Instruction* move = MoveOfUpdate(given);
    Instruction* value = Laid(move ? WithoutMove(given) : given, layout);
    update->ReplaceOperand(1, move ? update->parent()->AddClone(move, value->shape(), {value}) : value);
  }

  // What read `i` reads `with`, made of it.
  static void Behind(Instruction* i, Instruction* with, const Instruction* but) {
    for (Instruction* u : std::vector<Instruction*>(i->users()))
      if (u != with && u != but) i->ReplaceUseWith(u, with);
    if (i->IsRoot()) i->parent()->set_root(with);
  }

  static void LayMove(Instruction* move, const Layout& layout) {
    const Shape wanted = move->shape();
    SetLayout(&move->mutable_shape(), layout);
    move->mutable_shape() = OnDevice(move->shape());
    if (SameOrder(wanted, move->shape())) return;
    Behind(move, move->parent()->Add(Opcode::Copy, wanted, {move}), nullptr);
  }

  static void LaySlice(Instruction* slice, const Layout& layout) {
    const Shape wanted = slice->shape();
    Instruction* back = MoveBehind(slice);
    SetLayout(&slice->mutable_shape(), layout);
    if (SameOrder(wanted, slice->shape())) return;
    Instruction* move = slice->parent()->AddClone(back, OnDevice(slice->shape()), {slice});
    Behind(slice, slice->parent()->Add(Opcode::Copy, OnDevice(wanted), {move}), move);
    back->ReplaceAllUsesWith(back->operand(0));
    back->parent()->Remove(back);
  }

  // The value that `cast` reads is moved back and laid out as `wanted` for it.
  static void LayCast(Instruction* cast, const Shape& wanted) {
    Instruction *v = cast->operand(0), *back = MoveBehind(cast);
    Instruction* move = cast->parent()->AddClone(back, OnDevice(v->shape()), {v});
    cast->ReplaceOperand(0, cast->parent()->Add(Opcode::Copy, wanted, {move}));
    back->ReplaceAllUsesWith(back->operand(0));
    back->parent()->Remove(back);
  }

  const Module& m_;
  const HostValues& places_;
  std::map<int, Layout> plan_;
  std::vector<int> work_;
  std::vector<Instruction*> moved_, updates_;
  std::vector<Fed> fed_;
  std::vector<std::pair<Instruction*, Shape>> casts_;
  std::map<Instruction*, Layout, bool (*)(const Instruction*, const Instruction*)> exits_{
      [](const Instruction* a, const Instruction* b) { return a->id() < b->id(); }};
};

// What copy `c` is made of, in its place.
void Drop(Instruction* c) {
  for (Instruction* before : c->control_predecessors()) before->AddControlDependencyTo(c->operand(0));
  for (Instruction* behind : c->control_successors()) c->operand(0)->AddControlDependencyTo(behind);
  c->ReplaceAllUsesWith(c->operand(0));
  c->parent()->Remove(c);
}

// Moves one copy out of the way; false: none can be.
bool MoveOne(Module& m, PassContext& ctx, absl::flat_hash_set<int64_t>* tried) {
  std::vector<Instruction*> updates, copies;
  for (Computation* c : RunningComputations(m))
    for (Instruction* i : c->PostOrder()) {
      if (i->Is(Opcode::DynamicUpdateSlice) && MoveOfUpdate(i->operand(1))) updates.push_back(i);
      if (i->Is(Opcode::Copy) && i->shape().IsArray() && !tried->contains(i->id())) copies.push_back(i);
    }
  if (copies.empty()) return false;
  const HostValues places(m, updates);
  for (auto c = copies.rbegin(); c != copies.rend(); ++c) {
    Instruction *copy = *c, *from = copy->operand(0);
    if (!places.Contains({from, {}}) || !tried->insert(copy->id()).second) continue;
    const auto moves = [&](Instruction* i, const Shape& like) {
      Relayout relayout(m, places);
      if (!relayout.Plan(places.Find({i, {}}), like.LayoutOrDefault()) || !ctx.Take()) return false;
      relayout.Run();
      return true;
    };
    const bool same = SameOrder(copy->shape(), from->shape()) && !copy->IsRoot() && ctx.Take();
    if (!same && !moves(copy, from->shape()) && !moves(from, copy->shape())) continue;
    Drop(copy);
    return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<bool> HostOffloadLegalize(Module& m, PassContext& ctx) {
  if (!PlacesValues(m)) return false;
  bool changed = false;
  absl::flat_hash_set<int64_t> tried;
  while (MoveOne(m, ctx, &tried)) changed = true;
  return changed;
}

}  // namespace kiln
