// The memory space of a fusion's operands and result, "S(1)" in a layout, is also that of the parameters and the root
// inside.
#include "compiler/pass/pass.h"

namespace kiln {
namespace {

// "S(1)" of a layout's extras; empty for the default space.
std::string SpaceOf(const Shape& s) {
  if (!s.IsArray() || !s.layout()) return "";
  const std::string& e = s.layout()->extras;
  const size_t at = e.find("S(");
  return at == std::string::npos ? "" : e.substr(at, e.find(')', at) - at + 1);
}

bool Give(Instruction* i, const std::string& space) {
  if (space.empty() || !i->shape().IsArray() || SpaceOf(i->shape()) == space) return false;
  Layout l = i->shape().LayoutOrDefault();
  l.extras += space;
  i->mutable_shape().set_layout(l);
  return true;
}

bool GiveThroughBitcasts(Instruction* i, const std::string& space) {
  bool changed = Give(i, space);
  for (Instruction* u : i->users())
    if (u->Is(Opcode::Bitcast)) changed = GiveThroughBitcasts(u, space) || changed;
  return changed;
}

}  // namespace

absl::StatusOr<bool> MemorySpacePropagation(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions()) {
      if (!i->Is(Opcode::Fusion)) continue;
      bool any = !SpaceOf(i->shape()).empty();
      for (const Instruction* o : i->operands()) any = any || !SpaceOf(o->shape()).empty();
      if (!any || !ctx.Take()) continue;
      Computation* f = *i->attrs().calls;
      for (int64_t k = 0; k < i->operand_count(); ++k)
        changed = GiveThroughBitcasts(f->parameter(k), SpaceOf(i->operand(k)->shape())) || changed;
      changed = Give(f->root(), SpaceOf(i->shape())) || changed;
    }
  return changed;
}

}  // namespace kiln
