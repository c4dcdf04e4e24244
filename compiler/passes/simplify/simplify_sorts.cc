// Operands that a sort only carries along are dropped where nobody reads them sorted.
#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/of_opcode.h"
#include "compiler/pass/pass.h"

namespace kiln {

absl::StatusOr<bool> SimplifySorts(Module& m, PassContext& ctx) {
  bool changed = false;
  std::vector<Computation*> all;
  for (const auto& c : m.computations()) all.push_back(c.get());
  for (Computation* c : all) {
    for (Instruction* sort : OfOpcode(c, Opcode::Sort)) {
      if (sort->operand_count() < 2 || sort->IsRoot()) continue;
      std::vector<bool> used(sort->operands().size(), false);
      bool only_elements = true;
      for (const Instruction* u : sort->users()) {
        if (u->Is(Opcode::GetTupleElement))
          used[static_cast<size_t>(*u->attrs().tuple_index)] = true;
        else
          only_elements = false;
      }
      const Computation* less = *sort->attrs().to_apply;
      for (size_t k = 0; k < used.size(); ++k)
        for (size_t side = 0; side < 2; ++side) {
          const Instruction* p = less->parameter(static_cast<int64_t>(2 * k + side));
          if (!p->users().empty() || p->IsRoot()) used[k] = true;
        }
      size_t kept = 0;
      for (bool u : used) kept += u;
      if (!only_elements || kept == used.size() || kept == 0 || !ctx.Take()) continue;
      Computation* fewer = m.CloneComputation(less);
      std::vector<Instruction*> operands;
      std::vector<Shape> shapes;
      std::vector<int64_t> place(used.size(), -1);
      for (size_t k = 0; k < used.size(); ++k) {
        if (!used[k]) continue;
        place[k] = static_cast<int64_t>(operands.size());
        operands.push_back(sort->operand(static_cast<int64_t>(k)));
        shapes.push_back(operands.back()->shape());
      }
      for (size_t k = used.size(); k-- > 0;)
        for (int64_t side = 1; side >= 0 && !used[k]; --side)
          fewer->RemoveParameter(static_cast<int64_t>(2 * k) + side);
      Instruction* n = c->AddClone(sort, kept == 1 ? shapes[0] : Shape::Tuple(shapes), operands);
      n->mutable_attrs().to_apply = fewer;
      for (Instruction* u : std::vector<Instruction*>(sort->users())) {
        Instruction* value = n;
        if (kept > 1) {
          value = c->Add(Opcode::GetTupleElement, u->shape(), {n});
          value->mutable_attrs().tuple_index = place[static_cast<size_t>(*u->attrs().tuple_index)];
        }
        u->ReplaceAllUsesWith(value);
        c->Remove(u);
      }
      c->Remove(sort);
      changed = true;
    }
  }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

}  // namespace kiln
