// What the loop passes share: the state of a while loop as a flat tuple, its induction variable, and edits of both.
#pragma once

#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

// Which computations have neither side effects nor control edges, with all that they call. Remembers, since loops nest:
// for a pass that removes no computation while it has one.
class PureComputations {
 public:
  bool Contains(const Computation* c);

 private:
  absl::flat_hash_map<const Computation*, bool> known_;
};

// Neither has control edges.
bool HasNoControlEdges(const Computation* body, const Computation* condition);

// Whether the loop's state is one flat tuple that every computation reads element by element, built by a tuple at the
// end of the body, and nothing in or around it has side effects or control edges. Only such loops are rewritten.
bool IsPlainLoop(const Instruction* loop, PureComputations* pure);
// The same but for side effects.
bool HasFlatState(const Instruction* loop);

// A state that starts as a tuple, which body and condition read element by element and the body gives as a tuple.
// Enough for passes that edit only the two computations: who reads the loop, and how, does not matter to them.
bool HasFlatBodies(const Instruction* loop);

// Element `k` is what the body was given.
bool IsInvariant(const Instruction* loop, int64_t k);
// What the loop starts with as element `k`; null if its operand is no tuple instruction.
Instruction* InitOf(const Instruction* loop, int64_t k);
// Readers of element `k` of `state`, which is a parameter or the loop itself.
std::vector<Instruction*> ElementReaders(const Instruction* state, int64_t k);

// An integer that starts at a constant, grows by a constant and is compared with a constant to go on.
struct Induction {
  int64_t index = 0;  // of the element
  int64_t init = 0, step = 0, trips = 0;
};
std::optional<Induction> FindInduction(const Instruction* loop);

// Gives a loop whose bodies are flat a state that is one flat tuple all around: a tuple to start with, and readers that
// take elements.
void ExposeState(Instruction* loop);

// Elements that something outside reads (all, where it reads the state as a whole), that decide how often the loop
// runs, that a side effect shows, or that such elements are made of.
std::vector<bool> LiveElements(const Instruction* loop);

// A new loop in place of `loop` without the elements that are not `kept`, which must be dead. Returns it.
Instruction* ShrinkLoop(Instruction* loop, const std::vector<bool>& kept);
// A new loop in place of `loop` whose state goes on with `values`, forwarded by the body. Returns it.
Instruction* ExtendLoop(Instruction* loop, const std::vector<Instruction*>& values);

}  // namespace kiln
