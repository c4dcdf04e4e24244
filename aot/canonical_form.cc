#include "aot/canonical_form.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace kiln {
namespace {

// With a stack of its own: programs are as deep as they like.
std::vector<const Instruction*> Ordered(const Computation& c) {
  std::vector<const Instruction*> order;
  order.reserve(static_cast<size_t>(c.instruction_count()));
  absl::flat_hash_set<const Instruction*> seen;
  struct Frame {
    const Instruction* i;
    size_t next;
  };
  std::vector<Frame> stack;
  const auto walk = [&](const Instruction* from) {
    if (!seen.insert(from).second) return;
    stack.push_back({from, 0});
    while (!stack.empty()) {
      Frame& f = stack.back();
      const auto &operands = f.i->operands(), &before = f.i->control_predecessors();
      if (f.next == operands.size() + before.size()) {
        order.push_back(f.i);
        stack.pop_back();
        continue;
      }
      const Instruction* o = f.next < operands.size() ? operands[f.next] : before[f.next - operands.size()];
      ++f.next;
      if (seen.insert(o).second) stack.push_back({o, 0});
    }
  };
  for (const Instruction* p : c.parameters()) walk(p);
  walk(c.root());
  for (const auto& i : c.instructions()) walk(i.get());  // what only has effects, and what is dead
  return order;
}

// A layout that says what none says.
void DropDefaultLayouts(Shape* s) {
  for (Shape& part : s->mutable_tuple()) DropDefaultLayouts(&part);
  if (s->layout() && s->HasDefaultLayout() && s->layout()->extras.empty()) s->set_layout(std::nullopt);
}

}  // namespace

void PutInCanonicalForm(Module* m) {
  if (m->is_scheduled) return;
  m->RemoveUnreachableComputations();
  auto copy = std::make_unique<Module>(m->name());
  absl::flat_hash_map<const Computation*, Computation*> computations;
  // Callees first, by the canonical place of their first call. The verifier bounds how deep calls nest.
  auto build = [&](auto&& self, const Computation* from) -> Computation* {
    if (const auto known = computations.find(from); known != computations.end()) return known->second;
    const std::vector<const Instruction*> order = Ordered(*from);
    for (const Instruction* i : order)
      for (const Computation* callee : i->called()) self(self, callee);
    Computation* to = copy->AddComputation(from->name());
    to->CopyFrom(*from, order, [&](Computation* callee) { return computations.at(callee); });
    for (const auto& i : to->instructions()) DropDefaultLayouts(&i->mutable_shape());
    return computations[from] = to;
  };
  copy->set_entry(build(build, m->entry()));
  m->TakeComputationsOf(std::move(copy));
}

}  // namespace kiln
