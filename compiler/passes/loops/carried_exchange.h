// Exchanges between devices in the body of a loop, and whether another iteration can make them.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "compiler/passes/loops/while_state.h"

namespace kiln {

// Instructions that a value is made of, operands first and the value last.
using Chain = std::vector<Instruction*>;

struct CarriedExchange {
  Instruction* exchange = nullptr;
  // With the exchange: what it is made of, if every iteration can know that of the next one; else empty.
  Chain before;
  // Whether what it gives is only stored, in parts of the state that nothing else in the body reads.
  bool is_stored = false;
  Chain tail;  // then: what is made of it, in order
};

// In the order of the body.
std::vector<CarriedExchange> CarriedExchanges(const Instruction* loop, const Induction& count);

// What `i` of the body is made of, where that is the counter, what the loop does not change and the device alone.
std::optional<Chain> KnownChain(const Instruction* loop, Instruction* i, const Induction& count);
// The chain once more in `c`, `element` in place of the elements of the loop's state.
Instruction* CopyChain(const Chain& chain, Computation* c, const std::function<Instruction*(int64_t)>& element);

// The element of the state that `i` of the body updates and gives to the next iteration.
std::optional<int64_t> StoredElement(const Instruction* loop, const Instruction* i);

// Zeros in `c`.
Instruction* ZeroOf(Computation* c, const Shape& shape);

}  // namespace kiln
