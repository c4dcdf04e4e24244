#include "compiler/passes/memory/host_values.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/hlo/annotation.h"
#include "compiler/hlo/physical_shape.h"

namespace kiln {
namespace {

bool Calls(const Instruction* i, const char* target) {
  return i->Is(Opcode::CustomCall) && i->operand_count() == 1 && i->attrs().custom_call_target &&
         i->attrs().custom_call_target->text == target && i->shape().Compatible(i->operand(0)->shape());
}

ShapeIndex Behind(int64_t first, const ShapeIndex& rest) {
  ShapeIndex out = {first};
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

bool OnlyReforms(const Instruction* i) {
  return i->Is(Opcode::Bitcast) || i->Is(Opcode::Copy) ||
         (i->Is(Opcode::Reshape) && ReshapeKeepsMemory(i->operand(0)->shape(), i->shape()));
}

std::string WithoutSpace(std::string extras) {
  const size_t at = extras.find("S(");
  if (at != std::string::npos) extras.erase(at, extras.find(')', at) - at + 1);
  return extras;
}

Shape InSpace(Shape s, const std::string& space) {
  if (s.IsTuple()) {
    for (Shape& part : s.mutable_tuple()) part = InSpace(part, space);
  } else if (s.IsArray()) {
    Layout l = s.LayoutOrDefault();
    l.extras = WithoutSpace(l.extras) + space;
    s.set_layout(l);
  }
  return s;
}

}  // namespace

bool MovesToHost(const Instruction* i) { return PutsOnHost(*i) && i->operand_count() == 1; }
bool MovesToDevice(const Instruction* i) { return Calls(i, "MoveToDevice"); }

bool IsFill(const Instruction* i) { return i->Is(Opcode::Broadcast) && i->operand(0)->shape().IsScalar(); }

const Instruction* MoveOfUpdate(const Instruction* given) {
  while (OnlyReforms(given)) given = given->operand(0);
  return MovesToHost(given) ? given : nullptr;
}

Instruction* WithoutMove(Instruction* given) {
  if (!MoveOfUpdate(given)) return nullptr;
  std::vector<Instruction*> between;
  for (; OnlyReforms(given); given = given->operand(0)) between.push_back(given);
  Instruction* value = given->operand(0);
  for (auto i = between.rbegin(); i != between.rend(); ++i)
    value = value->parent()->AddClone(*i, (*i)->shape(), {value});
  return value;
}

std::vector<Computation*> RunningComputations(const Module& m) {
  std::vector<Computation*> out = {m.entry()};
  absl::flat_hash_set<const Computation*> known = {m.entry()};
  for (size_t k = 0; k < out.size(); ++k)
    for (const auto& i : out[k]->instructions())
      if (i->Is(Opcode::While) || i->Is(Opcode::Conditional) || i->Is(Opcode::Call))
        for (Computation* callee : i->called())
          if (known.insert(callee).second) out.push_back(callee);
  return out;
}

Shape OnHost(Shape s) { return InSpace(std::move(s), absl::StrCat("S(", kSlowMemorySpace, ")")); }
Shape OnDevice(Shape s) { return InSpace(std::move(s), ""); }

bool PlacesValues(const Module& m) {
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions())
      if (MovesToHost(i.get()) || MovesToDevice(i.get())) return true;
  for (const Instruction* p : m.entry()->parameters()) {
    bool any = false;
    ForEachLeaf(EntryParameter(m, *p->attrs().parameter_number),
                [&](const ShapeIndex&, const Shape& s) { any = any || s.LiesInSlowMemory(); });
    if (any) return true;
  }
  return false;
}

const Shape& EntryParameter(const Module& m, int64_t k) {
  return m.entry_layout ? m.entry_layout->parameters[static_cast<size_t>(k)] : m.entry()->parameter(k)->shape();
}

const Shape& EntryResult(const Module& m) {
  return m.entry_layout ? m.entry_layout->result : m.entry()->root()->shape();
}

bool KeepsPlace(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::AddDependency:
    case Opcode::Bitcast:
    case Opcode::Call:
    case Opcode::Conditional:
    case Opcode::Domain:
    case Opcode::DynamicUpdateSlice:
    case Opcode::OptimizationBarrier:
    case Opcode::Tuple:
    case Opcode::While:
      return true;
    case Opcode::GetTupleElement:
      return KeepsPlace(i->operand(0));
    case Opcode::Parameter:
      return i->parent() != i->parent()->module()->entry();
    case Opcode::Reshape:
      return ReshapeKeepsMemory(i->operand(0)->shape(), i->shape());
    default:
      return false;
  }
}

std::vector<Leaf> HostValues::PlacesIn(Instruction* u, int64_t k, const ShapeIndex& index) {
  if (!KeepsPlace(u)) return {};
  switch (u->opcode()) {
    case Opcode::Tuple:
      return {{u, Behind(k, index)}};
    case Opcode::GetTupleElement:
      if (index.empty() || index[0] != *u->attrs().tuple_index) return {};
      return {{u, ShapeIndex(index.begin() + 1, index.end())}};
    case Opcode::Conditional:
      if (k == 0) return {};
      return {{u->called()[static_cast<size_t>(k) - 1]->parameter(0), index}};
    case Opcode::Call:
      return {{u->called()[0]->parameter(k), index}};
    default:
      if (k > 0) return {};
      return {{u, index}};
  }
}

int HostValues::Id(const Leaf& l) {
  const auto [at, fresh] = ids_.insert({l, static_cast<int>(leaves_.size())});
  if (fresh) {
    leaves_.push_back(l);
    joined_.emplace_back();
    fed_.emplace_back();
    feeders_.emplace_back();
  }
  return at->second;
}

int HostValues::Find(const Leaf& l) const {
  const auto at = ids_.find(l);
  return at == ids_.end() ? -1 : at->second;
}

void HostValues::Feed(const Leaf& from, const Leaf& to) {
  const int a = Id(from), b = Id(to);
  fed_[static_cast<size_t>(a)].push_back(b);
  feeders_[static_cast<size_t>(b)].push_back(a);
}

void HostValues::Join(const Leaf& from, const Leaf& to) {
  if (!KeepsPlace(from.instruction)) return Feed(from, to);
  const int a = Id(from), b = Id(to);
  joined_[static_cast<size_t>(a)].push_back(b);
  joined_[static_cast<size_t>(b)].push_back(a);
}

void HostValues::Connect(Instruction* u) {
  ForEachLeaf(u->shape(), [&](const ShapeIndex& index, const Shape& s) {
    if (s.IsArray()) Id({u, index});
  });
  for (int64_t k = 0; k < u->operand_count(); ++k) {
    Instruction* v = u->operand(k);
    ForEachLeaf(v->shape(), [&](const ShapeIndex& index, const Shape& s) {
      if (!s.IsArray()) return;
      for (const Leaf& place : PlacesIn(u, k, index)) Join({v, index}, place);
      const bool element = u->Is(Opcode::GetTupleElement) && !KeepsPlace(u) && index[0] == *u->attrs().tuple_index;
      if (element) Feed({v, index}, {u, ShapeIndex(index.begin() + 1, index.end())});
      if (u->Is(Opcode::Copy)) Feed({v, index}, {u, index});
      if (u->Is(Opcode::DynamicUpdateSlice) && k == 1) Feed({v, index}, {u, index});
    });
  }
  std::vector<Computation*> given;  // whose results are those of `u`
  if (u->Is(Opcode::While)) {
    given = {*u->attrs().body};
    for (const Computation* c : u->called())
      ForEachLeaf(u->shape(), [&](const ShapeIndex& index, const Shape& s) {
        if (s.IsArray()) Join({u, index}, {c->parameter(0), index});
      });
  }
  if (u->Is(Opcode::Conditional) || u->Is(Opcode::Call)) given = u->called();
  for (Computation* c : given)
    ForEachLeaf(u->shape(), [&](const ShapeIndex& index, const Shape& s) {
      if (s.IsArray()) Join({c->root(), index}, {u, index});
    });
}

HostValues::HostValues(const Module& m, absl::Span<Instruction* const> also) {
  for (Computation* c : RunningComputations(m))
    for (Instruction* i : c->PostOrder()) Connect(i);
  on_host_.resize(leaves_.size());
  std::vector<int> first;
  for (size_t k = 0; k < leaves_.size(); ++k) {
    const Leaf& l = leaves_[k];
    const bool given = l.instruction->Is(Opcode::Parameter) && l.instruction->parent() == m.entry();
    const Shape* s = PartAt(l.instruction->shape(), l.index);
    if (given && !s->LiesInSlowMemory())
      s = PartAt(EntryParameter(m, *l.instruction->attrs().parameter_number), l.index);
    if (s->LiesInSlowMemory() || MovesToHost(l.instruction) ||
        std::find(also.begin(), also.end(), l.instruction) != also.end())
      first.push_back(static_cast<int>(k));
  }
  Spread(std::move(first));
}

void HostValues::Spread(std::vector<int> work) {
  while (!work.empty()) {
    const auto l = static_cast<size_t>(work.back());
    work.pop_back();
    if (on_host_[l]) continue;
    on_host_[l] = true;
    work.insert(work.end(), joined_[l].begin(), joined_[l].end());
    work.insert(work.end(), fed_[l].begin(), fed_[l].end());
  }
}

bool HostValues::Contains(const Leaf& l) const {
  const int id = Find(l);
  return id >= 0 && IsOnHost(id);
}

bool HostValues::ContainsPart(Instruction* i) const {
  bool any = false;
  ForEachLeaf(i->shape(), [&](const ShapeIndex& index, const Shape&) { any = any || Contains({i, index}); });
  return any;
}

}  // namespace kiln
