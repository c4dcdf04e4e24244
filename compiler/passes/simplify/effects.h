// What a run of the program shows besides its results.
#pragma once

#include "compiler/hlo/exchange.h"

namespace kiln {

// Whether `i`, or anything that it calls, does more than exchange values between devices. All devices run one program:
// an exchange whose result nobody reads is left out on every one of them, and none waits for another. Halves of an
// asynchronous exchange stay, since one alone means nothing.
inline bool HasEffectBesidesExchange(const Instruction* i) {
  const auto has = [](const Instruction* x) {
    return !IsSynchronousCollective(x) &&
           (x->HasTrait(SideEffect) || x->HasTrait(Collective) ||
            (x->Is(Opcode::CustomCall) && x->attrs().custom_call_has_side_effect.value_or(false)));
  };
  if (has(i)) return true;
  if (!i->HasSideEffect()) return false;  // nothing that it calls has any
  std::vector<Computation*> work = i->called();
  absl::flat_hash_set<const Computation*> seen(work.begin(), work.end());
  while (!work.empty()) {
    const Computation* c = work.back();
    work.pop_back();
    for (const auto& x : c->instructions()) {
      if (has(x.get())) return true;
      for (Computation* f : x->called())
        if (seen.insert(f).second) work.push_back(f);
    }
  }
  return false;
}

}  // namespace kiln
