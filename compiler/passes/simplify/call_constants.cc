// Source: the interprocedural part of XLA's constant folding.
#include "compiler/passes/simplify/call_constants.h"

#include <algorithm>

namespace kiln {
namespace {

// The constant that every call passes as parameter `k`; null if there is none.
const Instruction* CommonArgument(const std::vector<Instruction*>& calls, int64_t k) {
  const Instruction* first = calls[0]->operand(k);
  for (const Instruction* call : calls) {
    const Instruction* o = call->operand(k);
    if (!o->Is(Opcode::Constant) || o->shape() != first->shape() || o->literal() != first->literal()) return nullptr;
  }
  return first;
}

bool AllConstant(const Instruction* call) {
  return std::all_of(call->operands().begin(), call->operands().end(),
                     [](const Instruction* o) { return o->Is(Opcode::Constant); });
}

}  // namespace

bool FoldCallArguments(Module& m, PassContext& ctx) {
  absl::flat_hash_map<const Computation*, std::vector<Instruction*>> calls;
  absl::flat_hash_set<const Computation*> called_otherwise;
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions())
      for (const Computation* f : i->called()) {
        if (i->Is(Opcode::Call)) {
          calls[f].push_back(i.get());
        } else {
          called_otherwise.insert(f);
        }
      }
  bool changed = false;
  for (const auto& f : m.computations()) {
    const auto it = calls.find(f.get());
    if (it == calls.end() || called_otherwise.contains(f.get())) continue;
    // Calls of constants alone are evaluated themselves.
    if (std::any_of(it->second.begin(), it->second.end(), AllConstant)) continue;
    for (Instruction* p : f->parameters()) {
      const Instruction* value =
          p->users().empty() ? nullptr : CommonArgument(it->second, *p->attrs().parameter_number);
      if (!value || value->shape() != p->shape() || !ctx.Take()) continue;
      Instruction* constant = f->AddConstant(value->literal());
      constant->mutable_shape() = p->shape();
      constant->set_loc(value->loc());
      p->ReplaceAllUsesWith(constant);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln
