// Kernels of kiln's own for products that a library is asked for: what runs where the library is missing or refuses.
//
// What: for every library product of a program a kernel of the same buffers, planned beside the program's own. Equal
//   products share one. Batches, transposes, scales, added arrays and epilogues are inside the kernel.
// Cost: one kernel for each distinct product in each image.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "codegen/host/kernel_plan.h"

namespace kiln::gpu {

// Adds to `plan` a kernel for each product call in `thunks`, under names that begin with `name`. The module that is
// returned owns what these kernels compute and must outlive the plan.
absl::StatusOr<std::unique_ptr<Module>> PlanStandIns(const std::string& name, const ThunkSequence& thunks,
                                                     KernelPlan* plan);

}  // namespace kiln::gpu
