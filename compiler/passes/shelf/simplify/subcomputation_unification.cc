// Equal computations become one: every call of the others goes to the first.
#include <map>

#include "compiler/pass/pass.h"
#include "compiler/passes/shelf/simplify/computation_text.h"
#include "compiler/passes/simplify/unify_computations.h"

namespace kiln {

bool UnifyComputations(Module& m, PassContext& ctx, const std::function<bool(const Computation*)>& may) {
  bool changed = false;
  std::map<std::string, Computation*> first;
  absl::flat_hash_map<Computation*, Computation*> same;
  for (Computation* c : m.PostOrder()) {
    // Callees were replaced before: equal callers have equal text by now.
    for (const auto& i : c->instructions())
      i->MapCalled([&](Computation* callee) {
        const auto it = same.find(callee);
        return it == same.end() ? callee : it->second;
      });
    if (c == m.entry() || !may(c)) continue;
    const auto [it, fresh] = first.insert({ComputationText(c), c});
    if (fresh || !ctx.Take()) continue;
    same[c] = it->second;
    changed = true;
  }
  if (changed) m.RemoveUnreachableComputations();
  return changed;
}

absl::StatusOr<bool> SubcomputationUnification(Module& m, PassContext& ctx) {
  return UnifyComputations(m, ctx, [](const Computation*) { return true; });
}

}  // namespace kiln
