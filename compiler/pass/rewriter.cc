#include "compiler/pass/rewriter.h"

#include <algorithm>

namespace kiln {
namespace {

// Values of operations that can be computed in any order of elements, and cost the same in each.
bool TakesAnyLayout(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Broadcast:
    case Opcode::Constant:
    case Opcode::Iota:
      return true;
    default:
      return i.IsElementwise() && !i.Is(Opcode::Copy);
  }
}

// Gives what was added in the place of `i`, which has a layout, layouts too: that of an operand of as many dimensions,
// or of `i`; else row major. False if elementwise operations or reshapes would meet operands in another order.
bool LayOut(const Instruction* i, const std::vector<Instruction*>& added) {
  for (Instruction* n : added) {
    Shape& s = n->mutable_shape();
    if (!s.IsArray()) continue;
    if (!s.layout() && TakesAnyLayout(*n)) {
      const Instruction* like = i;
      for (const Instruction* o : n->operands())
        if (o->shape().layout() && o->shape().dims() == s.dims() && like == i) like = o;
      if (like->shape().rank() == s.rank()) s.set_layout(like->shape().layout());
    }
    if (!s.layout()) s.SetDefaultLayouts();
    // Only row-major memory is what a reshape of it is.
    if (n->Is(Opcode::Reshape) && !(s.HasDefaultLayout() && n->operand(0)->shape().HasDefaultLayout())) return false;
    if (!n->IsElementwise() || n->Is(Opcode::Copy)) continue;
    for (const Instruction* o : n->operands())
      if (o->shape().rank() == s.rank() && o->shape().LayoutOrDefault().minor_to_major != s.layout()->minor_to_major)
        return false;
  }
  return true;
}

}  // namespace

bool Rewriter::Accepts(const Instruction* i, Instruction* with, int64_t first_new) const {
  if (!with->shape().Compatible(i->shape())) return false;
  const bool existed = with->id() < first_new;
  if (existed && (!i->control_predecessors().empty() || !i->control_successors().empty())) return false;
  if (existed && i->attrs().sharding && with->attrs().sharding != i->attrs().sharding) return false;
  if (layouts_ == Layouts::kIgnored || !i->shape().layout() || !with->shape().IsArray()) return true;
  // Somebody asked for the layout.
  if (!LayOut(i, i->parent()->AddedSince(first_new))) return false;
  if (!with->shape().layout()) with->mutable_shape().SetDefaultLayouts();
  return with->shape().layout() == i->shape().layout();
}

void Rewriter::Put(Instruction* i, Instruction* with, int64_t first_new) {
  const Attributes& from = i->attrs();
  // All of what is new computes what `i` did.
  for (Instruction* n : i->parent()->AddedSince(first_new)) {
    if (n->Is(Opcode::Constant) && n != with) continue;
    if (n->loc().line == 0) n->set_loc(i->loc());
    if (from.metadata && !n->attrs().metadata) n->mutable_attrs().metadata = from.metadata;
  }
  if (with->id() >= first_new) {
    if (from.sharding && !with->attrs().sharding) with->mutable_attrs().sharding = from.sharding;
    if (from.frontend_attributes && !with->attrs().frontend_attributes)
      with->mutable_attrs().frontend_attributes = from.frontend_attributes;
  }
  i->ReplaceAllUsesWith(with);  // and the order that control edges ask for
}

void Rewriter::Discard(Computation* c, int64_t first_new) {
  std::vector<Instruction*> added = c->AddedSince(first_new);
  for (auto i = added.rbegin(); i != added.rend(); ++i) c->Remove(*i);
}

}  // namespace kiln
