#include "compiler/pass/rewriter.h"

#include <algorithm>

namespace kiln {

bool Rewriter::Accepts(const Instruction* i, Instruction* with, int64_t first_new) const {
  if (!with->shape().Compatible(i->shape())) return false;
  const bool existed = with->id() < first_new;
  if (existed && (!i->control_predecessors().empty() || !i->control_successors().empty())) return false;
  if (existed && i->attrs().sharding && with->attrs().sharding != i->attrs().sharding) return false;
  if (layouts_ == Layouts::kIgnored || !i->shape().layout() || !with->shape().IsArray()) return true;
  // Somebody asked for the layout.
  if (!with->shape().layout()) with->mutable_shape().SetDefaultLayouts();
  return with->shape().layout() == i->shape().layout();
}

void Rewriter::Put(Instruction* i, Instruction* with, int64_t first_new) {
  if (with->id() >= first_new) {
    if (with->loc().line == 0) with->set_loc(i->loc());
    const Attributes& from = i->attrs();
    if (from.metadata && !with->attrs().metadata) with->mutable_attrs().metadata = from.metadata;
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
