// Fusions that only move elements, as numbers without a sign: what an element means costs nothing where nobody asks.
//
// What: elements of two parts move as one, narrow floats without becoming wide ones and bytes of truth without tests.
// Guarantees: the same bits are stored at the same places.
// Cost: a copy of the computation.
#pragma once

#include <memory>

#include "compiler/hlo/instruction.h"

namespace kiln::cpu {

// A copy of `f` over integers; nullptr if it computes anything of such elements, or has none.
std::unique_ptr<Module> AsMovedBits(const Computation& f);

}  // namespace kiln::cpu
