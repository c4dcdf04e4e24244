// One step of rematerialisation as an edit of the module.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/plan/alias.h"
#include "compiler/plan/rematerialize_steps.h"

namespace kiln {
namespace {

Instruction* Named(const Module& m, const std::string& computation, const std::string& name) {
  for (const auto& c : m.computations())
    if (c->name() == computation)
      for (const auto& i : c->instructions())
        if (i->name() == name) return i.get();
  return nullptr;
}

// Has `reader` take `sent` for `v`, if it is a loop that reads it only at the element it writes.
bool ReadFrom(Instruction* sent, Instruction* v, Instruction* reader) {
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
Instruction* Fuse(Instruction* operand, const std::string& name, FusionKind kind, Build build) {
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

Shape Plain(PrimitiveType t, Ints dims) {
  Shape s = Shape::Array(t, std::move(dims));
  s.set_layout(Layout::Descending(s.rank()));
  return s;
}

// Eight predicates as the bits of a byte, the first one lowest.
Instruction* Pack(Instruction* v) {
  Computation* c = v->parent();
  const int64_t bytes = v->shape().ElementCount() / 8;
  const Shape rows = Plain(PrimitiveType::U8, {bytes, 8}), byte = Plain(PrimitiveType::U8, {});
  Instruction* flat = c->Add(Opcode::Bitcast, Plain(PrimitiveType::Pred, {bytes, 8}), {v});
  Computation* either = c->module()->AddComputation("either_bit");
  either->set_root(
      either->Add(Opcode::Or, byte, {either->AddParameter(0, byte, "a"), either->AddParameter(1, byte, "b")}));
  return Fuse(flat, v->name() + ".remat_packed", FusionKind::kInput, [&](Computation* f, Instruction* p) {
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

Instruction* Unpack(Instruction* packed, const Instruction* v, Instruction* anchor) {
  const int64_t bytes = packed->shape().ElementCount();
  const Shape rows = Plain(PrimitiveType::U8, {bytes, 8}), byte = Plain(PrimitiveType::U8, {});
  Instruction* bits = Fuse(packed, v->name() + ".remat", FusionKind::kLoop, [&](Computation* f, Instruction* p) {
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
    set->mutable_attrs().direction = Direction::NE;
    return set;
  });
  anchor->AddControlDependencyTo(bits);
  return v->parent()->Add(Opcode::Bitcast, v->shape(), {bits});
}

// What a candidate names, in one copy of the module.
struct Site {
  Instruction *value, *anchor, *just_before;
  std::vector<Instruction*> readers;
};

// What a step adds; `again` is what the readers take.
struct Added {
  Instruction* again = nullptr;
  std::vector<Instruction*> out_of_arena, into_arena;
};

Added Recompute(const Module& m, const Candidate& c, const Site& site) {
  Added added;
  absl::flat_hash_map<const Instruction*, Instruction*> copy;
  for (const std::string& name : c.chain) {
    Instruction* i = Named(m, c.computation, name);
    std::vector<Instruction*> operands;
    for (Instruction* o : i->operands()) operands.push_back(copy.contains(o) ? copy.at(o) : o);
    Instruction* again = site.value->parent()->Add(i->opcode(), i->shape(), operands, i->name() + ".remat");
    again->mutable_attrs() = i->attrs();
    again->set_literal(i->literal());
    again->set_loc(i->loc());
    copy[i] = added.again = again;
    added.into_arena.push_back(again);
    if (PassesThrough(again)) continue;
    for (Instruction* p : i->control_predecessors()) p->AddControlDependencyTo(again);
    site.just_before->AddControlDependencyTo(again);
  }
  return added;
}

Added Compress(const Site& site) {
  Instruction* packed = Pack(site.value);
  packed->AddControlDependencyTo(site.anchor);
  Instruction* again = Unpack(packed, site.value, site.just_before);
  return {again, {packed}, {again->operand(0), again}};
}

// Takes the readers away that read the value where it lies.
Added Offload(Site* site) {
  Instruction* v = site->value;
  Shape slow = v->shape();
  Layout layout = slow.LayoutOrDefault();
  absl::StrAppend(&layout.extras, "S(", kSlowMemorySpace, ")");
  slow.set_layout(layout);
  Instruction* sent = v->parent()->Add(Opcode::Copy, slow, {v}, v->name() + ".remat_out");
  sent->set_loc(v->loc());
  sent->AddControlDependencyTo(site->anchor);
  // A loop that reads each element once reads it where it lies.
  std::erase_if(site->readers, [&](Instruction* r) { return ReadFrom(sent, v, r); });
  if (site->readers.empty()) return {nullptr, {sent}, {}};
  Instruction* again = v->parent()->Add(Opcode::Copy, v->shape(), {sent}, v->name() + ".remat_back");
  again->set_loc(v->loc());
  site->just_before->AddControlDependencyTo(again);
  return {again, {sent}, {again}};
}

std::vector<std::string> NamesOf(const std::vector<Instruction*>& list) {
  std::vector<std::string> names;
  for (const Instruction* i : list) names.push_back(i->name());
  return names;
}

void PutInOrder(const Candidate& c, const Added& added, std::vector<std::string>* order) {
  const auto place = [&](const std::string& name) { return std::find(order->begin(), order->end(), name); };
  auto early = place(c.value);
  for (const std::string& e : c.early) early = std::max(early, place(e) == order->end() ? early : place(e));
  std::vector<std::string> names = NamesOf(added.out_of_arena);
  order->insert(early == order->end() ? early : early + 1, names.begin(), names.end());
  auto late = order->end();
  for (const std::string& name : c.readers) late = std::min(late, place(name));
  names = NamesOf(added.into_arena);
  order->insert(late, names.begin(), names.end());
}

}  // namespace

bool Apply(Module* m, const Candidate& c, std::vector<std::string>* order) {
  Site site = {Named(*m, c.computation, c.value),
               Named(*m, c.computation, c.anchor),
               Named(*m, c.computation, c.before_reader),
               {}};
  if (!site.value || !site.anchor || !site.just_before) return false;
  for (const std::string& r : c.readers) site.readers.push_back(Named(*m, c.computation, r));
  const Added added = c.step.kind == RematerializeStep::kRecompute  ? Recompute(*m, c, site)
                      : c.step.kind == RematerializeStep::kCompress ? Compress(site)
                                                                    : Offload(&site);
  for (Instruction* r : site.readers) site.value->ReplaceUseWith(r, added.again);
  for (const std::string& e : c.early)
    if (Instruction* u = Named(*m, c.computation, e); u && u != site.anchor) u->AddControlDependencyTo(site.anchor);
  PutInOrder(c, added, order);
  return true;
}

}  // namespace kiln
