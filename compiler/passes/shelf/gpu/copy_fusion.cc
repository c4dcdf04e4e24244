// Copies of a loop's result become further results of the loop: one kernel writes them all.
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

bool PlainCopy(const Instruction* i) {
  return i->Is(Opcode::Copy) && i->shape() == i->operand(0)->shape() && i->control_predecessors().empty() &&
         i->control_successors().empty();
}

}  // namespace

absl::StatusOr<bool> CopyFusion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m))
    for (Instruction* i : OfOpcode(c, Opcode::Fusion)) {
      if (IsCustomFusion(i) || !i->shape().IsArray() || !i->shape().HasDefaultLayout() ||
          !(*i->attrs().calls)->root()->IsElementwise())
        continue;
      std::vector<Instruction*> copies;
      for (Instruction* u : i->users())
        if (PlainCopy(u)) copies.push_back(u);
      if (copies.empty() || !ctx.Take()) continue;
      Computation* f = *i->attrs().calls;
      std::vector<Shape> shapes(copies.size() + 1, i->shape());
      std::vector<Instruction*> roots = {f->root()};
      for (size_t k = 0; k < copies.size(); ++k) roots.push_back(f->Add(Opcode::Copy, i->shape(), {f->root()}));
      f->set_root(f->Add(Opcode::Tuple, Shape::Tuple(shapes), roots));
      Instruction* fusion = c->AddClone(i, Shape::Tuple(shapes), i->operands());
      for (Instruction* p : std::vector<Instruction*>(i->control_predecessors())) p->AddControlDependencyTo(fusion);
      for (Instruction* s : std::vector<Instruction*>(i->control_successors())) fusion->AddControlDependencyTo(s);
      for (size_t k = 0; k < roots.size(); ++k) {
        Instruction* e = PartOf(fusion, static_cast<int64_t>(k)).get();
        if (k == 0) {
          i->ReplaceAllUsesWith(e);
        } else {
          copies[k - 1]->ReplaceAllUsesWith(e);
          c->Remove(copies[k - 1]);
        }
      }
      c->Remove(i);
      changed = true;
    }
  return changed;
}

}  // namespace kiln
