#include "compiler/passes/simplify/same_function.h"

namespace kiln {
namespace {

// What an instruction says besides the functions that it calls.
Attributes OwnAttributes(const Instruction* i) {
  Attributes a = i->attrs();
  a.metadata.reset();
  for (auto* c :
       {&a.to_apply, &a.calls, &a.condition, &a.body, &a.true_computation, &a.false_computation, &a.select, &a.scatter})
    c->reset();
  a.branch_computations.reset();
  a.called_computations.reset();
  return a;
}

bool SameEdges(const std::vector<Instruction*>& a, const std::vector<Instruction*>& b,
               const absl::flat_hash_map<const Instruction*, const Instruction*>& partner) {
  if (a.size() != b.size()) return false;
  for (size_t k = 0; k < a.size(); ++k)
    if (partner.at(a[k]) != b[k]) return false;
  return true;
}

}  // namespace

bool CallSameFunctions(const Instruction* a, const Instruction* b) {
  const std::vector<Computation*> f = a->called(), g = b->called();
  if (f.size() != g.size()) return false;
  for (size_t k = 0; k < f.size(); ++k)
    if (!IsSameFunction(f[k], g[k])) return false;
  return true;
}

bool IsSameFunction(const Computation* a, const Computation* b) {
  if (a == b) return true;
  if (a->instruction_count() != b->instruction_count() || a->execution_thread() != b->execution_thread()) return false;
  const std::vector<Instruction*> x = a->PostOrder(), y = b->PostOrder();
  absl::flat_hash_map<const Instruction*, const Instruction*> partner;
  for (size_t k = 0; k < x.size(); ++k) {
    const Instruction *i = x[k], *j = y[k];
    if (i->opcode() != j->opcode() || i->shape() != j->shape() || !SameEdges(i->operands(), j->operands(), partner) ||
        !SameEdges(i->control_predecessors(), j->control_predecessors(), partner) ||
        OwnAttributes(i) != OwnAttributes(j) || !CallSameFunctions(i, j))
      return false;
    if (i->Is(Opcode::Constant) && i->literal() != j->literal()) return false;
    partner[i] = j;
  }
  return partner.at(a->root()) == b->root();
}

}  // namespace kiln
