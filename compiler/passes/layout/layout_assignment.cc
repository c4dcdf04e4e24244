// Layouts for every array, and reshapes as bitcasts.
//
// Every value inside the program is row major: kernels take strides, so transposed reads need no other layout. Where
// the entry asks for another order, a copy at the boundary converts.
#include "compiler/hlo/lapack.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/hlo/parser.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/layout/memory_bitcasts.h"
#include "compiler/passes/memory/host_values.h"

namespace kiln {

namespace {

bool IsRowMajor(const Shape& shape) {
  bool all = true;
  ForEachLeaf(shape, [&](const ShapeIndex&, const Shape& s) { all = all && (!s.IsArray() || s.HasDefaultLayout()); });
  return all;
}

bool AsksForRowMajor(const Instruction* call) {
  if (!call->attrs().operand_layout_constraints) return true;
  std::string text = call->attrs().operand_layout_constraints->text;
  if (text.size() < 2) return true;
  text.front() = '(';
  text.back() = ')';
  const auto constraints = ParseShape(text);
  return constraints.ok() && IsRowMajor(*constraints);
}

// A layout that says which bytes are meant, rather than what would be fast, cannot be replaced by row major.
absl::Status CheckMeaningOfLayouts(const Instruction* i) {
  if (!i->Is(Opcode::CustomCall) || IsLibraryCall(i) || LapackOf(i) || (IsRowMajor(i->shape()) && AsksForRowMajor(i)))
    return absl::OkStatus();
  return ErrorAt(i, "its layouts say which bytes are meant; the pass custom-call-layouts is needed",
                 absl::StatusCode::kUnimplemented);
}

// Arrays that `wanted` has in the host's memory lie there to the caller.
bool TakePlaces(const Shape& wanted, Shape* s) {
  bool changed = false;
  ForEachLeaf(wanted, [&](const ShapeIndex& index, const Shape& leaf) {
    Shape* part = s;
    for (int64_t k : index) part = &part->mutable_tuple()[static_cast<size_t>(k)];
    if (!leaf.LiesInSlowMemory() || part->LiesInSlowMemory()) return;
    *part = OnHost(*part);
    changed = true;
  });
  return changed;
}

}  // namespace

absl::StatusOr<bool> LayoutAssignment(Module& m, PassContext&) {
  // What a bitcast says of layouts is said of values before those layouts go.
  ASSIGN_OR_RETURN(bool changed, ExpandMemoryBitcasts(m, [] { return true; }));
  for (const auto& c : m.computations()) {
    for (const auto& i : c->instructions()) {
      RETURN_IF_ERROR(CheckMeaningOfLayouts(i.get()));
      Shape s = i->shape();
      s.SetDefaultLayouts();
      if (s != i->shape()) {
        i->mutable_shape() = s;
        changed = true;
      }
    }
  }
  EntryLayout layout;
  Computation* e = m.entry();
  auto wanted = [&](size_t p) -> const Shape* { return m.entry_layout ? &m.entry_layout->parameters[p] : nullptr; };
  for (size_t p = 0; p < e->parameters().size(); ++p) {
    Instruction* param = e->parameter(p);
    const Shape* w = wanted(p);
    if (w && w->IsArray() && w->layout() && !w->HasDefaultLayout()) {
      const Shape inner = param->shape();
      Instruction* copy = e->Add(Opcode::Copy, inner, {param}, "entry_copy");
      const std::vector<Instruction*> users = param->users();
      for (Instruction* u : users)
        if (u != copy) param->ReplaceUseWith(u, copy);
      if (e->root() == param) e->set_root(copy);
      param->mutable_shape().set_layout(w->layout());
      changed = true;
    }
    if (w) changed = TakePlaces(*w, &param->mutable_shape()) || changed;
    layout.parameters.push_back(param->shape());
  }
  if (m.entry_layout) {
    auto convert = [&](Instruction* v, const Shape& w) -> Instruction* {
      if (!w.IsArray() || !w.layout() || w.HasDefaultLayout()) return v;
      Shape s = v->shape();
      s.set_layout(w.layout());
      changed = true;
      return e->Add(Opcode::Copy, s, {v}, "result_copy");
    };
    Instruction* root = e->root();
    const Shape want = m.entry_layout->result;
    if (!root->shape().IsTuple()) {
      e->set_root(convert(root, want));
    } else {
      std::vector<Instruction*> parts;
      std::vector<Shape> shapes;
      bool any = false;
      for (size_t k = 0; k < want.tuple().size(); ++k)
        any = any || (want.tuple()[k].IsArray() && want.tuple()[k].layout() && !want.tuple()[k].HasDefaultLayout());
      if (any) {
        for (size_t k = 0; k < want.tuple().size(); ++k) {
          Instruction* g = e->Add(Opcode::GetTupleElement, root->shape().tuple()[k], {root});
          g->mutable_attrs().tuple_index = static_cast<int64_t>(k);
          parts.push_back(convert(g, want.tuple()[k]));
          shapes.push_back(parts.back()->shape());
        }
        e->set_root(e->Add(Opcode::Tuple, Shape::Tuple(shapes), parts));
      }
    }
  }
  layout.result = e->root()->shape();
  if (m.entry_layout) TakePlaces(m.entry_layout->result, &layout.result);
  m.entry_layout = layout;
  return changed;
}

namespace {

Shape InRowMajor(Shape s) {
  s.set_layout(Layout::Descending(s.rank()));
  return s;
}

// A reshape as a bitcast of row-major arrays, with copies where an array has another layout.
Instruction* AsBitcast(Instruction* i) {
  Computation* c = i->parent();
  Instruction* x = i->operand(0);
  if (!x->shape().HasDefaultLayout()) x = c->Add(Opcode::Copy, InRowMajor(x->shape()), {x});
  if (i->shape().HasDefaultLayout()) return c->Add(Opcode::Bitcast, i->shape(), {x});
  return c->Add(Opcode::Copy, i->shape(), {c->Add(Opcode::Bitcast, InRowMajor(i->shape()), {x})});
}

}  // namespace

absl::StatusOr<bool> ReshapeDecomposer(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (!i->Is(Opcode::Reshape) || !ctx.Take()) continue;
      Instruction* b = AsBitcast(i);
      b->set_loc(i->loc());
      i->ReplaceAllUsesWith(b);
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
