// Edits of the layouts of arrays whose elements are narrower than a byte.
#pragma once

#include "compiler/pass/pass.h"

namespace kiln {

// edit(shape, layout) -> whether it changed the layout; called for every such array that has one.
template <typename Edit>
bool EditLayouts(Shape* s, const Edit& edit) {
  if (s->IsTuple()) {
    bool changed = false;
    for (Shape& e : s->mutable_tuple()) changed = EditLayouts(&e, edit) || changed;
    return changed;
  }
  if (!s->IsArray() || BitWidth(s->type()) >= 8 || s->type() == PrimitiveType::Pred || !s->layout()) return false;
  Layout l = *s->layout();
  if (!edit(*s, &l)) return false;
  s->set_layout(l);
  return true;
}

// The same throughout a module, its entry's layouts included.
template <typename Edit>
bool EditModule(Module& m, PassContext& ctx, const Edit& edit) {
  bool changed = false;
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions()) {
      Shape s = i->shape();
      if (!EditLayouts(&s, edit) || !ctx.Take()) continue;
      i->mutable_shape() = s;
      changed = true;
    }
  if (changed && m.entry_layout) {
    for (Shape& s : m.entry_layout->parameters) EditLayouts(&s, edit);
    EditLayouts(&m.entry_layout->result, edit);
  }
  return changed;
}

}  // namespace kiln
