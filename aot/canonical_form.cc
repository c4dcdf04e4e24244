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
    absl::flat_hash_map<const Instruction*, Instruction*> map;
    for (const Instruction* i : order) {
      std::vector<Instruction*> operands;
      for (const Instruction* o : i->operands()) operands.push_back(map.at(o));
      Shape shape = i->shape();
      DropDefaultLayouts(&shape);
      Instruction* n = to->AddClone(i, std::move(shape), std::move(operands));
      n->MapCalled([&](Computation* callee) { return computations.at(callee); });
      map[i] = n;
    }
    for (const Instruction* i : order)
      for (const Instruction* p : i->control_predecessors()) map.at(p)->AddControlDependencyTo(map.at(i));
    to->set_root(map.at(from->root()));
    to->set_execution_thread(from->execution_thread());
    return computations[from] = to;
  };
  copy->set_entry(build(build, m->entry()));
  m->TakeComputationsOf(std::move(copy));
}

}  // namespace kiln
