// The same elementwise operation on matching slices of the same arrays is done once, on the whole arrays, and its
// result is sliced; only if the slices make up at least as many elements as the whole.
#include <map>

#include "compiler/pass/pass.h"
#include "compiler/passes/shelf/simplify/computation_text.h"

namespace kiln {
namespace {

// Whether every operand is the same slice of an array of one shape.
bool OnSlices(const Instruction* i) {
  if (!i->IsElementwise() || i->operands().empty() || i->HasSideEffect()) return false;
  const Instruction* first = i->operand(0);
  for (const Instruction* o : i->operands())
    if (!o->Is(Opcode::Slice) || o->attrs().slice != first->attrs().slice ||
        o->operand(0)->shape().dims() != first->operand(0)->shape().dims())
      return false;
  return i->shape().dims() == first->shape().dims();
}

std::string GroupKey(const Instruction* i) {
  Attributes a = i->attrs();
  std::string key = absl::StrCat(TextOf(i->opcode()), TextOf(i->shape().type()));
  for (const Instruction* o : i->operands()) absl::StrAppend(&key, ",", o->operand(0)->id());
  if (a.direction) absl::StrAppend(&key, TextOf(*a.direction));
  if (a.compare_type) absl::StrAppend(&key, TextOf(*a.compare_type));
  return key;
}

}  // namespace

absl::StatusOr<bool> SliceSinker(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    std::map<std::string, std::vector<Instruction*>> groups;
    for (Instruction* i : c->PostOrder())
      if (OnSlices(i)) groups[GroupKey(i)].push_back(i);
    for (auto& [key, group] : groups) {
      const Instruction* first = group[0];
      const Ints& whole = first->operand(0)->operand(0)->shape().dims();
      int64_t covered = 0;
      for (const Instruction* i : group) covered += i->shape().ElementCount();
      if (group.size() < 2 || covered < Product(whole) || !ctx.Take()) continue;
      std::vector<Instruction*> operands;
      for (const Instruction* o : first->operands()) operands.push_back(o->operand(0));
      Instruction* all = c->AddClone(first, Shape::Array(first->shape().type(), whole), operands);
      for (Instruction* i : group) {
        Instruction* part = c->Add(Opcode::Slice, i->shape(), {all});
        part->mutable_attrs().slice = i->operand(0)->attrs().slice;
        i->ReplaceAllUsesWith(part);
        c->Remove(i);
      }
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
