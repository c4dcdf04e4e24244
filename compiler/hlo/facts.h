// What code may assume about a module, and the checkers behind it.
//
// A pass declares the facts it needs, gives and breaks (pipeline/passes.def); a pipeline whose order cannot hold is
// refused before any module runs through it. Cost of a check: linear in the module.
#pragma once

#include "absl/status/status.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

enum class FactIndex {
#define FACT(e, ...) e,
#include "compiler/hlo/facts.def"
};

// A set of facts.
using Facts = uint32_t;
namespace fact {
#define FACT(e, ...) inline constexpr Facts e = 1u << static_cast<int>(FactIndex::e);
#include "compiler/hlo/facts.def"
inline constexpr Facts None = 0;
}  // namespace fact

// Names of the facts in a set, for messages.
std::string FactNames(Facts facts);
// OK if all of `facts` hold; else an error at the first instruction that breaks one. A broken Core or Fused is
// Unimplemented (the operation is legal), anything else what the verifier says.
absl::Status CheckFacts(const Module& module, Facts facts);

}  // namespace kiln
