#include "compiler/passes/fusion/fuse.h"

#include <algorithm>

#include "compiler/hlo/uses.h"
#include "compiler/passes/simplify/inline_body.h"

namespace kiln {
namespace {

// The members that `outputs` need, each behind those that it needs itself; else as they were made.
std::vector<Instruction*> InOrder(const std::vector<Instruction*>& outputs,
                                  const absl::flat_hash_set<const Instruction*>& members) {
  std::vector<Instruction*> needed = outputs;
  absl::flat_hash_set<const Instruction*> seen(outputs.begin(), outputs.end());
  for (size_t k = 0; k < needed.size(); ++k)
    for (Instruction* o : needed[k]->operands())
      if (members.contains(o) && seen.insert(o).second) needed.push_back(o);
  std::sort(needed.begin(), needed.end(), [](auto* a, auto* b) { return a->id() < b->id(); });
  std::vector<Instruction*> order;
  std::vector<std::pair<Instruction*, int64_t>> stack;
  for (Instruction* start : needed) {
    if (seen.erase(start) > 0) stack.push_back({start, 0});
    while (!stack.empty()) {
      auto& [i, next] = stack.back();
      if (next == i->operand_count()) {
        order.push_back(i);
        stack.pop_back();
        continue;
      }
      Instruction* o = i->operand(next++);
      if (seen.erase(o) > 0) stack.push_back({o, 0});
    }
  }
  return order;
}

}  // namespace

std::vector<Computation*> ControlComputations(const Module& m) {
  std::vector<Computation*> out = {m.entry()};
  for (size_t k = 0; k < out.size(); ++k)
    for (const auto& i : out[k]->instructions())
      if (i->Is(Opcode::While) || i->Is(Opcode::Conditional) || i->Is(Opcode::Call))
        for (Computation* callee : i->called()) out.push_back(callee);
  return out;
}

Instruction* WrapInFusion(Instruction* i) {
  Computation* c = i->parent();
  Computation* f = c->module()->AddComputation("fused_computation");
  std::vector<Instruction*> operands, params;
  for (Instruction* o : i->operands()) {
    auto it = std::find(operands.begin(), operands.end(), o);
    if (it != operands.end()) {
      params.push_back(f->parameter(it - operands.begin()));
      continue;
    }
    params.push_back(f->AddParameter(static_cast<int64_t>(operands.size()), o->shape(), "param"));
    operands.push_back(o);
  }
  Instruction* root = f->AddClone(i, i->shape(), params);
  f->set_root(root);
  Instruction* fusion = c->Add(Opcode::Fusion, i->shape(), operands, "fusion");
  fusion->set_loc(i->loc());
  fusion->mutable_attrs().calls = f;
  fusion->mutable_attrs().fusion_kind = i->Is(Opcode::Reduce) ? FusionKind::kInput : FusionKind::kLoop;
  i->ReplaceAllUsesWith(fusion);
  c->Remove(i);
  return fusion;
}

Instruction* FuseInto(Instruction* producer, Instruction* consumer) {
  Instruction* fusion = consumer->Is(Opcode::Fusion) ? consumer : WrapInFusion(consumer);
  Computation* f = *fusion->attrs().calls;
  // The producer's clone reads parameters for its operands; existing ones are shared.
  std::vector<Instruction*> inner;
  for (Instruction* o : producer->operands()) {
    const int64_t k = fusion->OperandIndex(o);
    if (k >= 0) {
      inner.push_back(f->parameter(k));
      continue;
    }
    inner.push_back(f->AddParameter(fusion->operand_count(), o->shape(), "param"));
    fusion->AppendOperand(o);
  }
  Instruction* clone = producer->Is(Opcode::Fusion) ? InlineBody(f, *producer->attrs().calls, inner, producer)
                                                    : f->AddClone(producer, producer->shape(), inner);
  for (int64_t k = fusion->operand_count() - 1; k >= 0; --k) {
    if (fusion->operand(k) != producer) continue;
    f->parameter(k)->ReplaceAllUsesWith(clone);
    f->RemoveParameter(k);
    fusion->RemoveOperand(k);
  }
  return fusion;
}

Instruction* FuseRegion(const std::vector<Instruction*>& outputs,
                        const absl::flat_hash_set<const Instruction*>& members,
                        absl::flat_hash_set<const Instruction*>* gone) {
  Computation* c = outputs[0]->parent();
  Computation* f = c->module()->AddComputation("fused_computation");
  const std::vector<Instruction*> order = InOrder(outputs, members);
  std::vector<Instruction*> operands;
  absl::flat_hash_map<const Instruction*, Instruction*> inside;
  for (Instruction* i : order) {
    std::vector<Instruction*> arguments;
    for (Instruction* o : i->operands()) {
      Instruction*& clone = inside[o];
      if (!clone) {
        clone = f->AddParameter(static_cast<int64_t>(operands.size()), o->shape(), "param");
        operands.push_back(o);
      }
      arguments.push_back(clone);
    }
    inside[i] = f->AddClone(i, i->shape(), arguments);
  }
  std::vector<Instruction*> roots;
  std::vector<Shape> shapes;
  for (const Instruction* o : outputs) {
    roots.push_back(inside.at(o));
    shapes.push_back(o->shape());
  }
  const bool one = outputs.size() == 1;
  const Shape shape = one ? shapes[0] : Shape::Tuple(shapes);
  f->set_root(one ? roots[0] : f->Add(Opcode::Tuple, shape, roots));
  Instruction* fusion = c->Add(Opcode::Fusion, shape, operands, "fusion");
  fusion->set_loc(outputs[0]->loc());
  fusion->mutable_attrs().calls = f;
  fusion->mutable_attrs().fusion_kind = FusionKind::kCustom;
  for (size_t k = 0; k < outputs.size(); ++k) {
    Instruction* with = fusion;
    if (!one) {
      with = c->Add(Opcode::GetTupleElement, shapes[k], {fusion});
      with->mutable_attrs().tuple_index = static_cast<int64_t>(k);
    }
    outputs[k]->ReplaceAllUsesWith(with);
  }
  for (size_t k = order.size(); k-- > 0;) {
    if (!order[k]->users().empty() || order[k]->IsRoot()) continue;
    if (gone) gone->insert(order[k]);
    c->Remove(order[k]);
  }
  return fusion;
}

bool IsCustomFusion(const Instruction* i) {
  return i->Is(Opcode::Fusion) && i->attrs().fusion_kind == FusionKind::kCustom;
}

bool EveryUseIs(const Instruction* fusion, const Instruction* operand,
                const std::function<bool(const Instruction*)>& keeps) {
  const auto never = [](const Instruction*) { return false; };
  const auto kept = [&](const Instruction* user, const Instruction*) { return keeps(user); };
  for (int64_t k = 0; k < fusion->operand_count(); ++k)
    if (fusion->operand(k) == operand && !EveryUseKeeps((*fusion->attrs().calls)->parameter(k), never, kept))
      return false;
  return true;
}

// Readers of fusion `i` read elements of `fusion` from number `next` on; returns the next number.
static int64_t ReadElements(Instruction* i, Instruction* fusion, int64_t next) {
  Computation* c = i->parent();
  const auto element = [&](int64_t k) {
    Instruction* e = c->Add(Opcode::GetTupleElement, fusion->shape().tuple()[static_cast<size_t>(k)], {fusion});
    e->mutable_attrs().tuple_index = k;
    return e;
  };
  const bool one = i->shape().IsArray() || (i->Is(Opcode::Fusion) && !(*i->attrs().calls)->root()->Is(Opcode::Tuple));
  if (one) {  // a reduction of several arrays is one result, which is a tuple
    i->ReplaceAllUsesWith(element(next));
    return next + 1;
  }
  std::vector<Instruction*> elements;
  for (size_t k = 0; k < i->shape().tuple().size(); ++k) elements.push_back(element(next++));
  for (Instruction* u : std::vector<Instruction*>(i->users())) {
    if (!u->Is(Opcode::GetTupleElement)) continue;
    u->ReplaceAllUsesWith(elements[static_cast<size_t>(*u->attrs().tuple_index)]);
    c->Remove(u);
  }
  if (!i->users().empty() || i->IsRoot()) i->ReplaceAllUsesWith(c->Add(Opcode::Tuple, i->shape(), elements));
  return next;
}

Instruction* FuseSiblings(Instruction* a, Instruction* b) {
  Computation* c = a->parent();
  Computation* f = c->module()->AddComputation("fused_computation");
  std::vector<Instruction*> operands, roots;
  for (Instruction* i : {a, b}) {
    std::vector<Instruction*> arguments;
    for (Instruction* o : i->operands()) {
      const bool element = o->Is(Opcode::GetTupleElement) && o->operand(0) == a;
      if (i == b && (element || o == a)) {
        arguments.push_back(roots[element ? static_cast<size_t>(*o->attrs().tuple_index) : 0]);
        continue;
      }
      const auto at = std::find(operands.begin(), operands.end(), o);
      if (at != operands.end()) {
        arguments.push_back(f->parameter(at - operands.begin()));
        continue;
      }
      arguments.push_back(f->AddParameter(static_cast<int64_t>(operands.size()), o->shape(), "param"));
      operands.push_back(o);
    }
    Instruction* root =
        i->Is(Opcode::Fusion) ? InlineBody(f, *i->attrs().calls, arguments, i) : f->AddClone(i, i->shape(), arguments);
    if (!root->Is(Opcode::Tuple)) {
      roots.push_back(root);
      continue;
    }
    roots.insert(roots.end(), root->operands().begin(), root->operands().end());
    f->Remove(root);
  }
  std::vector<Shape> shapes;
  for (const Instruction* r : roots) shapes.push_back(r->shape());
  const Shape shape = Shape::Tuple(shapes);
  f->set_root(f->Add(Opcode::Tuple, shape, roots));
  Instruction* fusion = c->Add(Opcode::Fusion, shape, operands, "fusion");
  fusion->set_loc(a->loc());
  fusion->mutable_attrs().calls = f;
  fusion->mutable_attrs().fusion_kind = FusionKind::kLoop;
  int64_t next = 0;
  for (Instruction* i : {a, b}) {
    next = ReadElements(i, fusion, next);
    c->Remove(i);
  }
  return fusion;
}

namespace {

// Elements of what pad `i` gives for one of its operand, holes between them alone.
size_t Spread(const Instruction* i) {
  size_t n = 1;
  if (i->Is(Opcode::Pad))
    for (const PadDim& d : *i->attrs().padding) n *= static_cast<size_t>(d.interior) + 1;
  return n;
}

}  // namespace

size_t Evaluations(const Instruction* c, const Instruction* p, size_t limit) {
  if (!c->Is(Opcode::Fusion)) return 1;
  const std::vector<Instruction*> order = (*c->attrs().calls)->PostOrder();
  // Places by name, and how often each counts: what changes an index makes new ones of those it has.
  constexpr size_t kMix = 0x9e3779b97f4a7c15;
  absl::flat_hash_map<const Instruction*, absl::flat_hash_map<size_t, size_t>> places;
  places[order.back()] = {{0, 1}};
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    const absl::flat_hash_map<size_t, size_t> own = places[*i];
    for (int64_t k = 0; k < (*i)->operand_count(); ++k) {
      absl::flat_hash_map<size_t, size_t>& of = places[(*i)->operand(k)];
      const bool same = (*i)->IsElementwise() || (*i)->Is(Opcode::Tuple);
      const size_t spread = k == 0 ? Spread(*i) : 1;
      for (const auto& [place, count] : own) {
        if (of.size() > limit) break;
        size_t& n = of[same ? place : place * kMix + static_cast<size_t>((*i)->id() * 64 + k)];
        n = std::max(n, std::min(count * spread, limit + 1));
      }
    }
  }
  size_t most = 0;
  for (int64_t k = 0; k < c->operand_count(); ++k) {
    if (c->operand(k) != p) continue;
    size_t n = 0;
    for (const auto& [place, count] : places[(*c->attrs().calls)->parameter(k)]) n += count;
    most = std::max(most, n);
  }
  return std::min(most, limit + 1);
}

}  // namespace kiln
