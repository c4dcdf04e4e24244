// Structural clean-up: dce, cse, call inlining, flattening, tuples, barriers, empty arrays.
#include <algorithm>

#include "compiler/hlo/printer.h"
#include "compiler/passes/simplify/inline_body.h"
#include "compiler/pipeline/registry.h"

namespace kiln {

absl::StatusOr<bool> Dce(Module& m, PassContext&) {
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    for (const auto& c : m.computations()) {
      absl::flat_hash_set<const Instruction*> live;
      std::vector<const Instruction*> work = {c->root()};
      for (const auto& i : c->instructions())
        if (i->HasSideEffect() || i->Is(Opcode::Parameter)) work.push_back(i.get());
      while (!work.empty()) {
        const Instruction* i = work.back();
        work.pop_back();
        if (!live.insert(i).second) continue;
        for (const Instruction* o : i->operands()) work.push_back(o);
        for (const Instruction* o : i->control_predecessors()) work.push_back(o);
      }
      if (live.size() == c->instructions().size()) continue;
      std::vector<Instruction*> dead = c->PostOrder();
      std::reverse(dead.begin(), dead.end());
      for (Instruction* i : dead)
        if (!live.contains(i)) c->Remove(i);
      again = changed = true;
    }
    if (m.RemoveUnreachableComputations()) changed = true;
  }
  return changed;
}

namespace {

// Text that two equal instructions share: everything but the name.
std::string Key(const Instruction* i) {
  PrintOptions o;
  o.metadata = false;
  std::string t = ToText(*i, o);
  return t.substr(t.find(" = "));
}

bool CseCandidate(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::Parameter:
    case Opcode::Domain:
    case Opcode::OptimizationBarrier:
    case Opcode::CustomCall:
    case Opcode::While:
    case Opcode::Conditional:
    case Opcode::Copy:
      return false;
    default:
      return !i->HasSideEffect() && i->control_predecessors().empty() && i->control_successors().empty();
  }
}

}  // namespace

Instruction* InlineBody(Computation* into, const Computation* callee, const std::vector<Instruction*>& arguments,
                        const Instruction* site) {
  absl::flat_hash_map<const Instruction*, Instruction*> map;
  for (Instruction* i : callee->PostOrder()) {
    if (i->Is(Opcode::Parameter)) {
      map[i] = arguments[*i->attrs().parameter_number];
      continue;
    }
    std::vector<Instruction*> ops;
    for (Instruction* o : i->operands()) ops.push_back(map.at(o));
    Instruction* n = into->AddClone(i, i->shape(), ops);
    if (n->loc().line == 0) n->set_loc(site->loc());
    for (Instruction* p : i->control_predecessors())
      if (!p->Is(Opcode::Parameter)) map.at(p)->AddControlDependencyTo(n);
    map[i] = n;
  }
  return map.at(callee->root());
}

absl::StatusOr<bool> Cse(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    absl::flat_hash_map<std::string, Instruction*> seen;
    absl::flat_hash_map<uint64_t, std::vector<Instruction*>> constants;
    for (Instruction* i : c->PostOrder()) {
      if (!CseCandidate(i)) continue;
      Instruction* first = nullptr;
      if (i->Is(Opcode::Constant)) {
        // Constants compare by value; their text could be megabytes.
        const uint64_t h =
            i->shape().IsArray() ? i->literal().byte_size() * 31 + static_cast<uint64_t>(i->shape().type()) : 0;
        auto& bucket = constants[h];
        for (Instruction* o : bucket)
          if (o->shape() == i->shape() && o->literal() == i->literal()) first = o;
        if (!first) bucket.push_back(i);
      } else {
        auto [it, fresh] = seen.insert({Key(i), i});
        if (!fresh) first = it->second;
      }
      if (!first || !ctx.Take()) continue;
      i->ReplaceAllUsesWith(first);
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

namespace {

// Copies the callee's body to the call site; returns the value of its root.
}  // namespace

absl::StatusOr<bool> CallInliner(Module& m, PassContext& ctx) {
  bool changed = false;
  // Callees first, so that a body is inlined after its own calls were.
  for (Computation* c : m.PostOrder()) {
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Call) || !ctx.Take()) continue;
      Instruction* root = InlineBody(c, *i->attrs().to_apply, i->operands(), i);
      for (Instruction* s : i->control_successors()) root->AddControlDependencyTo(s);
      i->ReplaceAllUsesWith(root);
      c->Remove(i);
      changed = true;
    }
  }
  m.RemoveUnreachableComputations();
  return changed;
}

absl::StatusOr<bool> FlattenCallGraph(Module& m, PassContext&) {
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    absl::flat_hash_set<const Computation*> used;
    for (Computation* c : m.PostOrder()) {
      for (const auto& i : c->instructions()) {
        if (!i->Is(Opcode::While) && !i->Is(Opcode::Conditional) && !i->Is(Opcode::Call)) continue;
        i->MapCalled([&](Computation* callee) {
          if (used.insert(callee).second) return callee;
          again = changed = true;
          Computation* copy = m.CloneComputation(callee);
          used.insert(copy);
          return copy;
        });
      }
      if (again) break;  // the order is stale
    }
  }
  return changed;
}

absl::StatusOr<bool> TupleSimplifier(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (i->Is(Opcode::GetTupleElement) && i->operand(0)->Is(Opcode::Tuple)) {
        if (!ctx.Take()) continue;
        i->ReplaceAllUsesWith(i->operand(0)->operand(*i->attrs().tuple_index));
        if (!i->IsRoot()) c->Remove(i);
        changed = true;
      } else if (i->Is(Opcode::Tuple) && i->operand_count() > 0 && i->operand(0)->Is(Opcode::GetTupleElement)) {
        Instruction* whole = i->operand(0)->operand(0);
        bool same = whole->shape().tuple().size() == i->operands().size();
        for (int64_t k = 0; same && k < i->operand_count(); ++k)
          same = i->operand(k)->Is(Opcode::GetTupleElement) && i->operand(k)->operand(0) == whole &&
                 *i->operand(k)->attrs().tuple_index == k;
        if (!same || !ctx.Take()) continue;
        i->ReplaceAllUsesWith(whole);
        c->Remove(i);
        changed = true;
      }
    }
  }
  return changed;
}

absl::StatusOr<bool> OptimizationBarrierExpander(Module& m, PassContext&) {
  bool changed = false;
  for (const auto& c : m.computations())
    for (Instruction* i : c->PostOrder())
      if (i->Is(Opcode::OptimizationBarrier)) {
        i->ReplaceAllUsesWith(i->operand(0));
        c->Remove(i);
        changed = true;
      }
  return changed;
}

absl::StatusOr<bool> ZeroSizedHloElimination(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (!i->shape().IsArray() || i->shape().ElementCount() != 0 || i->Is(Opcode::Constant) ||
          i->Is(Opcode::Parameter) || i->HasSideEffect() || i->shape().HasDynamic() || !ctx.Take())
        continue;
      Instruction* k = c->AddConstant(Literal(i->shape()));
      k->mutable_shape() = i->shape();
      i->ReplaceAllUsesWith(k);
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

absl::StatusOr<bool> MapInliner(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Map)) continue;
      const Computation* f = *i->attrs().to_apply;
      bool plain = true;
      for (const auto& x : f->instructions())
        plain = plain && x->shape().IsScalar() &&
                (x->IsElementwise() || x->Is(Opcode::Parameter) || x->Is(Opcode::Constant));
      if (!plain)
        return ErrorAt(i, "its computation is not made of scalar elementwise operations",
                       absl::StatusCode::kUnimplemented);
      if (!ctx.Take()) continue;
      absl::flat_hash_map<const Instruction*, Instruction*> map;
      for (Instruction* x : f->PostOrder()) {
        const Shape s = Shape::Array(x->shape().type(), i->shape().dims());
        if (x->Is(Opcode::Parameter)) {
          map[x] = i->operand(*x->attrs().parameter_number);
        } else if (x->Is(Opcode::Constant)) {
          Instruction* k = c->AddConstant(x->literal());
          map[x] = c->Add(Opcode::Broadcast, s, {k});
          map[x]->attrs().dimensions = Ints();
        } else {
          std::vector<Instruction*> ops;
          for (Instruction* o : x->operands()) ops.push_back(map.at(o));
          map[x] = c->AddClone(x, s, ops);
        }
      }
      i->ReplaceAllUsesWith(map.at(f->root()));
      c->Remove(i);
      changed = true;
    }
  }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

absl::StatusOr<bool> ConditionalSimplifier(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Conditional) || !i->operand(0)->Is(Opcode::Constant) || !ctx.Take()) continue;
      const int64_t v = i->operand(0)->literal().Get(0).i;
      int64_t branch;
      Computation* f;
      if (i->attrs().true_computation) {
        branch = v ? 0 : 1;
        f = v ? *i->attrs().true_computation : *i->attrs().false_computation;
      } else {
        const int64_t n = static_cast<int64_t>(i->attrs().branch_computations->size());
        branch = i->operand(0)->shape().type() == PrimitiveType::Pred ? (v ? 0 : 1) : v < 0 || v >= n ? n - 1 : v;
        f = (*i->attrs().branch_computations)[branch];
      }
      Instruction* call = c->Add(Opcode::Call, i->shape(), {i->operand(branch + 1)});
      call->attrs().to_apply = f;
      i->ReplaceAllUsesWith(call);
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

absl::StatusOr<bool> DynamicIndexSplitter(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      const bool ds = i->Is(Opcode::DynamicSlice), dus = i->Is(Opcode::DynamicUpdateSlice);
      const int64_t first = ds ? 1 : 2;
      if ((!ds && !dus) || i->operand_count() != first + 1 || i->operand(first)->shape().rank() != 1 || !ctx.Take())
        continue;
      Instruction* v = i->operand(first);
      const PrimitiveType t = v->shape().type();
      std::vector<Instruction*> ops(i->operands().begin(), i->operands().begin() + first);
      for (int64_t k = 0; k < v->shape().dim(0); ++k) {
        Instruction* s = c->Add(Opcode::Slice, Shape::Array(t, {1}), {v});
        s->attrs().slice = attr::Slices{{k, k + 1, 1}};
        ops.push_back(c->Add(Opcode::Reshape, Shape::Scalar(t), {s}));
      }
      Instruction* n = c->AddClone(i, i->shape(), ops);
      i->ReplaceAllUsesWith(n);
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
