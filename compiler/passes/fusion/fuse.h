// Making and growing fusions: what every fusion pass does once it has decided.
#pragma once

#include <functional>

#include "compiler/hlo/instruction.h"

namespace kiln {

// The entry and the bodies of loops and branches: not reducers, comparators or fusions.
std::vector<Computation*> ControlComputations(const Module& m);

// What decides the loop of a kernel: a fusion's root, or the instruction itself.
inline const Instruction* RootOf(const Instruction* i) {
  return i->Is(Opcode::Fusion) ? (*i->attrs().calls)->root() : i;
}

// A fusion of `i` alone in its place.
Instruction* WrapInFusion(Instruction* i);

// Copies `producer`, or its body if it is a fusion, into `consumer`, which becomes a fusion if it is none; returns the
// fusion. The producer stays for its other users.
Instruction* FuseInto(Instruction* producer, Instruction* consumer);

// A fusion of kind kCustom with copies of `members`, which gives `outputs`; these are members. Members that nobody
// needs any more go, and are added to `gone`. Whoever calls makes sure that no reader of an output is needed by a
// member. Cost: that of the members.
Instruction* FuseRegion(const std::vector<Instruction*>& outputs,
                        const absl::flat_hash_set<const Instruction*>& members,
                        absl::flat_hash_set<const Instruction*>* gone = nullptr);

// A fusion whose kernel is chosen by what made it: passes that grow loops leave it as it is.
bool IsCustomFusion(const Instruction* i);

// Whether all that `fusion` makes of `operand`, up to its root, satisfies `keeps`.
bool EveryUseIs(const Instruction* fusion, const Instruction* operand,
                const std::function<bool(const Instruction*)>& keeps);

// At how many places kernel `c` evaluates its operand `p` to compute one element, counted up to one more than
// `limit`: each is code, so that chains of slices or shifts, fused whole, grow without limit. A place behind
// a pad's holes counts for them too: a loop over all elements comes by once for each.
inline constexpr size_t kMostEvaluations = 15;  // as XLA's fusions allow
size_t Evaluations(const Instruction* c, const Instruction* p, size_t limit = kMostEvaluations);

// One fusion with the results of `a` and `b` in place of both. `b` may read results of `a`; no other path may connect
// them.
Instruction* FuseSiblings(Instruction* a, Instruction* b);

}  // namespace kiln
