// Element sizes below a byte in layouts, "E(4)": written for a target that packs 4-bit elements, and taken out for one
// that gives each a byte, as kiln's CPU code does.
#include "compiler/pipeline/registry.h"

namespace kiln {
namespace {

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

}  // namespace

absl::StatusOr<bool> SubByteSizeSet(Module& m, PassContext& ctx) {
  return EditModule(m, ctx, [](const Shape& s, Layout* l) {
    const std::string size = absl::StrCat("E(", BitWidth(s.type()), ")");
    if (l->extras.find("E(") != std::string::npos) return false;
    l->extras += size;
    return true;
  });
}

absl::StatusOr<bool> SubByteSizeRemoval(Module& m, PassContext& ctx) {
  return EditModule(m, ctx, [](const Shape&, Layout* l) {
    const size_t at = l->extras.find("E(");
    if (at == std::string::npos) return false;
    l->extras.erase(at, l->extras.find(')', at) - at + 1);
    return true;
  });
}

}  // namespace kiln
