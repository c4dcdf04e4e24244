// Notes of front ends on the memory that a value should lie in: in the words of a compiler, or taken out.
#include <algorithm>

#include "compiler/hlo/sharding.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/memory/host_values.h"

namespace kiln {
namespace {

constexpr const char kNote[] = "annotate_device_placement";

// What each place is called in a note, and the call that puts a value there.
struct Place {
  const char* name;
  const char* target;
};
constexpr Place kPlaces[] = {
    {"pinned_host", "MoveToHost"}, {"unpinned_host", "MoveToHost"},  {"device", "MoveToDevice"},
    {"vmem", "PinToDeviceSram"},   {"pinned_device", "PinToDevice"},
};

bool HandsOn(const Instruction* i) {
  return i->Is(Opcode::CustomCall) && i->attrs().custom_call_target && i->operand_count() == 1 &&
         i->shape().Compatible(i->operand(0)->shape());
}

const Place* NotedPlace(const Instruction* i) {
  if (!HandsOn(i) || i->attrs().custom_call_target->text != kNote || !i->attrs().frontend_attributes) return nullptr;
  const auto name = FrontendAttribute(i->attrs().frontend_attributes->text, "_xla_buffer_placement");
  for (const Place& p : kPlaces)
    if (name == p.name) return &p;
  return nullptr;
}

bool IsPlacement(const Instruction* i) {
  if (!HandsOn(i)) return false;
  const std::string& target = i->attrs().custom_call_target->text;
  return target == kNote ||
         std::any_of(std::begin(kPlaces), std::end(kPlaces), [&](const Place& p) { return target == p.target; });
}

bool LiesElsewhere(const Shape& s) {
  bool any = false;
  ForEachLeaf(s, [&](const ShapeIndex&, const Shape& leaf) { any = any || leaf.LiesInSlowMemory(); });
  return any;
}

}  // namespace

absl::StatusOr<bool> ConvertMemoryPlacement(Module& m, PassContext& ctx) {
  return ExpandEach(
      m, ctx, [](Instruction* i) { return NotedPlace(i) != nullptr; },
      [](Instruction* i) -> absl::StatusOr<Instruction*> {
        Instruction* call = i->parent()->Add(Opcode::CustomCall, i->operand(0)->shape(), {i->operand(0)});
        call->mutable_attrs().custom_call_target = attr::Str(NotedPlace(i)->target);
        return call;
      });
}

absl::StatusOr<bool> StripMemoryPlacement(Module& m, PassContext& ctx) {
  ASSIGN_OR_RETURN(bool changed, ExpandEach(m, ctx, IsPlacement, [](Instruction* i) -> absl::StatusOr<Instruction*> {
                     return i->operand(0);
                   }));
  const auto strip = [&](Shape* s) {
    if (!LiesElsewhere(*s) || !ctx.Take()) return;
    *s = OnDevice(*s);
    changed = true;
  };
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions()) strip(&i->mutable_shape());
  if (m.entry_layout) {
    for (Shape& s : m.entry_layout->parameters) strip(&s);
    strip(&m.entry_layout->result);
  }
  return changed;
}

}  // namespace kiln
