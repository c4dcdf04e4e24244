// Values that a program places in the host's memory lie there: memory space 5.
//
// MoveToHost and MoveToDevice become copies between the memories, and whatever hands such a value on, loops and updates
// included, says where it lies. An update that is meant for the host is written there without a copy of its own, into
// an array that begins there; where a loop stores all of it, nothing is written before. Slices read the host's memory,
// and give a value on the device. Any other operation works on a copy on the device: the result is what the program
// says, the copy is noted. So is that of a result which the caller wants on the device. Source: XLA's HostOffloader,
// which refuses such operations or has the host compute them.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/loops/stored_whole.h"
#include "compiler/passes/memory/host_values.h"

namespace kiln {
namespace {

bool IsAllocation(const Instruction* i) {
  return i->Is(Opcode::CustomCall) && i->operand_count() == 0 && i->attrs().custom_call_target &&
         i->attrs().custom_call_target->text == kAllocation;
}

class Offloader {
 public:
  Offloader(Module& m, PassContext& ctx) : m_(m), ctx_(ctx) {}

  absl::StatusOr<bool> Run() {
    running_ = RunningComputations(m_);
    DropMovesElsewhere();
    for (Computation* c : running_)
      for (Instruction* i : c->PostOrder())
        if (i->shape().IsTuple() && !KeepsPlace(i) && !i->Is(Opcode::GetTupleElement)) TakeApart(i);
    for (Computation* c : running_)
      for (Instruction* i : OfOpcode(c, Opcode::DynamicUpdateSlice)) PullMoveBehindUpdate(i);
    const HostValues places(m_, updates_);
    places_ = &places;
    for (Computation* c : running_)
      for (Instruction* i : c->PostOrder())
        for (int64_t k = 0; k < i->operand_count(); ++k) Settle(i, k);
    for (Computation* c : running_) SettleRoot(c);
    // Before moves go, which may be leaves.
    for (const Leaf& l : places.leaves())
      if (places.Contains(l)) Put(l);
    for (Computation* c : running_)
      for (Instruction* i : c->PostOrder())
        if (MovesToHost(i) || MovesToDevice(i)) Replace(i);
    for (Computation* c : running_)
      for (Instruction* loop : OfOpcode(c, Opcode::While)) BeginUnwritten(loop);
    for (Instruction* i : left_)
      if (i->users().empty() && !i->IsRoot()) i->parent()->Remove(i);
    return changed_;
  }

 private:
  // In functions of single elements there is nothing to place.
  void DropMovesElsewhere() {
    for (const auto& c : m_.computations()) {
      if (std::find(running_.begin(), running_.end(), c.get()) != running_.end() || c->execution_thread() == "host")
        continue;
      for (Instruction* i : c->PostOrder())
        if (MovesToHost(i) || MovesToDevice(i)) Hand(i, i->operand(0));
    }
  }

  // A tuple of what `value` holds, element by element.
  Instruction* Elements(Instruction* value) {
    if (!value->shape().IsTuple()) return value;
    std::vector<Instruction*> parts;
    std::vector<Shape> shapes;
    for (size_t k = 0; k < value->shape().tuple().size(); ++k) {
      Instruction* e = value->parent()->Add(Opcode::GetTupleElement, value->shape().tuple()[k], {value});
      e->mutable_attrs().tuple_index = static_cast<int64_t>(k);
      parts.push_back(Elements(e));
      shapes.push_back(parts.back()->shape());
    }
    return value->parent()->Add(Opcode::Tuple, Shape::Tuple(shapes), parts);
  }

  // So that a copy of each of its elements may take the element's place.
  void TakeApart(Instruction* value) {
    std::vector<Instruction*> whole;
    for (Instruction* u : value->users())
      if (!u->Is(Opcode::GetTupleElement) && KeepsPlace(u)) whole.push_back(u);
    const bool root = value->IsRoot() && value->parent() != m_.entry();
    if (whole.empty() && !root) return;
    Instruction* elements = Elements(value);
    for (Instruction* u : whole) value->ReplaceUseWith(u, elements);
    if (root) value->parent()->set_root(elements);
    changed_ = true;
  }

  // The update itself moves the value.
  void PullMoveBehindUpdate(Instruction* update) {
    Instruction* value = WithoutMove(update->operand(1));
    if (!value) return;
    update->ReplaceOperand(1, value);
    updates_.push_back(update);
    changed_ = true;
  }

  // What `i` is given as operand `k` lies where it is needed.
  void Settle(Instruction* i, int64_t k) {
    Instruction* v = i->operand(k);
    const bool reads_there = i->Is(Opcode::DynamicSlice) || i->Is(Opcode::Slice) || i->Is(Opcode::Copy);
    const bool is_update = i->Is(Opcode::DynamicUpdateSlice) && k == 1;
    if (MovesToHost(i) || MovesToDevice(i) || i->Is(Opcode::AsyncStart) || i->Is(Opcode::GetTupleElement)) return;
    if ((reads_there && k == 0) || (is_update && places_->Contains({i, {}}))) return;
    if (!KeepsPlace(i) || HostValues::PlacesIn(i, k, {}).empty()) {
      if (places_->ContainsPart(v)) {
        i->ReplaceOperand(k, ReadBack(v, i));
        changed_ = true;
      }
      return;
    }
    if (!v->shape().IsArray() || places_->Contains({v, {}})) return;
    for (const Leaf& place : HostValues::PlacesIn(i, k, {}))
      if (places_->Contains(place)) {
        i->ReplaceOperand(k, Placed(v));
        changed_ = true;
        return;
      }
  }

  void SettleRoot(Computation* c) {
    Instruction* root = c->root();
    if (c == m_.entry()) return SettleResult();
    if (root->shape().IsArray() && !places_->Contains({root, {}})) {
      const std::vector<Leaf> given = GivenBy(c);
      const auto on_host = [&](const Leaf& l) { return places_->Contains(l); };
      if (std::any_of(given.begin(), given.end(), on_host)) c->set_root(Placed(root));
    } else if (root->shape().IsArray() && root->shape().type() == PrimitiveType::Pred && IsCondition(c)) {
      c->set_root(ReadBack(root, root));
    }
  }

  // What takes the root of `c` as its result.
  std::vector<Leaf> GivenBy(const Computation* c) const {
    std::vector<Leaf> out;
    for (Computation* other : running_)
      for (const auto& i : other->instructions()) {
        const bool gives = (i->Is(Opcode::While) && *i->attrs().body == c) ||
                           ((i->Is(Opcode::Conditional) || i->Is(Opcode::Call)) && Runs(i.get(), c));
        if (gives) out.push_back({i.get(), {}});
      }
    return out;
  }

  static bool Runs(const Instruction* i, const Computation* c) {
    const std::vector<Computation*> called = i->called();
    return std::find(called.begin(), called.end(), c) != called.end();
  }

  bool IsCondition(const Computation* c) const {
    for (Computation* other : running_)
      for (const auto& i : other->instructions())
        if (i->Is(Opcode::While) && *i->attrs().condition == c) return true;
    return false;
  }

  // The caller finds its results where the entry's layout says.
  void SettleResult() {
    Computation* e = m_.entry();
    Instruction* root = e->root();
    if (root->shape().IsArray()) {
      if (places_->Contains({root, {}}) && !EntryResult(m_).LiesInSlowMemory()) {
        e->set_root(ReadBack(root, root));
        changed_ = true;
      }
      return;
    }
    bool any = false;
    ForEachLeaf(root->shape(), [&](const ShapeIndex& index, const Shape&) {
      any = any || (places_->Contains({root, index}) && !PartAt(EntryResult(m_), index)->LiesInSlowMemory());
    });
    if (!any) return;
    e->set_root(Returned(root, root, EntryResult(m_), {}));
    left_.push_back(root);
    changed_ = true;
  }

  // The part `index` of the entry's result, with each of its arrays in the memory that `wanted` says.
  Instruction* Returned(Instruction* whole, Instruction* part, const Shape& wanted, ShapeIndex index) {
    const bool on_host = places_->Contains({whole, index});
    if (part->shape().IsArray())
      return on_host && !wanted.LiesInSlowMemory() ? CopyTo(OnDevice(part->shape()), part) : part;
    if (!part->shape().IsTuple()) return part;
    std::vector<Instruction*> parts;
    std::vector<Shape> shapes;
    for (size_t k = 0; k < part->shape().tuple().size(); ++k) {
      Instruction* e = part;
      if (part->Is(Opcode::Tuple)) {
        e = part->operand(static_cast<int64_t>(k));
      } else {
        e = part->parent()->Add(Opcode::GetTupleElement, part->shape().tuple()[k], {part});
        e->mutable_attrs().tuple_index = static_cast<int64_t>(k);
        index.push_back(static_cast<int64_t>(k));
        if (places_->Contains({whole, index})) e->mutable_shape() = OnHost(e->shape());
        index.pop_back();
      }
      index.push_back(static_cast<int64_t>(k));
      parts.push_back(Returned(whole, e, wanted.tuple()[k], index));
      const bool stays = parts.back() == e && places_->Contains({whole, index});
      shapes.push_back(stays ? OnHost(e->shape()) : parts.back()->shape());
      index.pop_back();
    }
    return part->parent()->Add(Opcode::Tuple, Shape::Tuple(shapes), parts);
  }

  Instruction* CopyTo(const Shape& s, Instruction* v) {
    Instruction* copy = v->parent()->Add(Opcode::Copy, s, {v});
    copy->set_loc(v->loc());
    return copy;
  }

  // `v`, which lies on the device, in the host's memory. What only fills an array fills one there, each use its own.
  Instruction* Placed(Instruction* v) {
    if (IsFill(v) || IsAllocation(v)) {
      if (std::find(left_.begin(), left_.end(), v) == left_.end()) left_.push_back(v);
      return v->parent()->AddClone(v, OnHost(v->shape()), v->operands());
    }
    Instruction*& known = placed_[v];
    if (!known) known = CopyTo(OnHost(v->shape()), v);
    return known;
  }

  // `v`, of which something lies on the host, on the device for `reader`.
  Instruction* ReadBack(Instruction* v, const Instruction* reader) {
    Instruction*& known = read_back_[v];
    if (known) return known;
    ctx_.notes.push_back(absl::StrCat("%", reader->name(), " (line ", reader->loc().line, ") reads %", v->name(),
                                      " on the device, which copies it there from the host's memory"));
    if (v->shape().IsArray()) return known = CopyTo(OnDevice(v->shape()), v);
    std::vector<Instruction*> parts;
    std::vector<Shape> shapes;
    for (size_t k = 0; k < v->shape().tuple().size(); ++k) {
      Instruction* e = v->parent()->Add(Opcode::GetTupleElement, v->shape().tuple()[k], {v});
      e->mutable_attrs().tuple_index = static_cast<int64_t>(k);
      parts.push_back(e->shape().IsToken() ? e : CopyTo(OnDevice(e->shape()), e));
      shapes.push_back(parts.back()->shape());
    }
    return known = v->parent()->Add(Opcode::Tuple, Shape::Tuple(shapes), parts);
  }

  void Put(const Leaf& l) {
    Instruction* i = l.instruction;
    Shape* s = &i->mutable_shape();
    for (int64_t k : l.index) s = &s->mutable_tuple()[static_cast<size_t>(k)];
    if (s->LiesInSlowMemory() || MovesToHost(i)) return;
    *s = OnHost(*s);
    changed_ = true;
  }

  // `with` in the place of `i`.
  void Hand(Instruction* i, Instruction* with) {
    for (Instruction* before : i->control_predecessors())
      if (before != with) before->AddControlDependencyTo(with);
    for (Instruction* behind : i->control_successors()) with->AddControlDependencyTo(behind);
    i->ReplaceAllUsesWith(with);
    for (auto* known : {&placed_, &read_back_})
      if (const auto copy = known->extract(i)) known->insert({with, copy.mapped()});
    i->parent()->Remove(i);
    changed_ = true;
  }

  void Replace(Instruction* move) {
    Instruction* v = move->operand(0);
    const bool on_host = v->shape().LiesInSlowMemory();
    if (MovesToHost(move) == on_host) return Hand(move, v);
    // What came from there without a change lies there still.
    const bool came = v->Is(Opcode::Copy) && MovesToHost(move) && v->operand(0)->shape() == OnHost(v->shape());
    if (came) return Hand(move, v->operand(0));
    if (move->users().empty() && !move->IsRoot()) {
      move->parent()->Remove(move);
      changed_ = true;
      return;
    }
    Hand(move, on_host ? CopyTo(OnDevice(move->shape()), v) : Placed(v));
  }

  // Arrays that the loop stores whole need nothing in them before.
  void BeginUnwritten(Instruction* loop) {
    Instruction* init = loop->operand(0);
    if (!init->Is(Opcode::Tuple) || init->users().size() != 1) return;
    const auto fills = [](const Instruction* o) { return IsFill(o) && o->shape().LiesInSlowMemory(); };
    if (std::none_of(init->operands().begin(), init->operands().end(), fills)) return;
    for (int64_t k : ElementsStoredWhole(loop)) {
      Instruction* fill = init->operand(k);
      if (!fills(fill)) continue;
      Instruction* memory = init->parent()->Add(Opcode::CustomCall, fill->shape(), {}, "allocation");
      memory->mutable_attrs().custom_call_target = attr::Str(kAllocation);
      memory->set_loc(fill->loc());
      init->ReplaceOperand(k, memory);
      if (fill->users().empty()) fill->parent()->Remove(fill);
    }
  }

  Module& m_;
  PassContext& ctx_;
  std::vector<Computation*> running_;
  std::vector<Instruction*> updates_;  // that write what was to be moved
  const HostValues* places_ = nullptr;
  absl::flat_hash_map<const Instruction*, Instruction*> placed_, read_back_;
  std::vector<Instruction*> left_;  // that others were put in the place of
  bool changed_ = false;
};

}  // namespace

absl::StatusOr<bool> HostOffloader(Module& m, PassContext& ctx) {
  if (!PlacesValues(m) || !ctx.Take()) return false;
  return Offloader(m, ctx).Run();
}

}  // namespace kiln
