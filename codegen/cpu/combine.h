// Kernels that combine the elements of two arrays as a collective's function does, for the runtime's exchanges.
#pragma once

#include <memory>

#include "codegen/host/kernel_plan.h"

namespace kiln::cpu {

// Adds to `plan` two kernels for each function and type of `thunks`' reductions between devices: of a block of
// elements, at the place of the reduction's instruction, and of one element, behind it. Returns the module that holds
// what they compute.
std::unique_ptr<Module> PlanCombinations(const std::string& name, const ThunkSequence& thunks, KernelPlan* plan);

}  // namespace kiln::cpu
