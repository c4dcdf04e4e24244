// Fuses each region of rows that a filter takes: gpu-row-fusion, cpu-row-fusion and triton-softmax-rewriter.
#pragma once

#include "compiler/pass/pass.h"
#include "compiler/passes/gpu/row_region.h"

namespace kiln {

constexpr int64_t kShortestGpuRow = 2;

// Whether an instruction may be in a region.
using RowMemberFilter = bool(const Instruction* i, const RowForm& form);

// True if the module changed. Rows have `shortest` to 16384 elements. Regions with a member that `takes` refuses stay
// as they are, all of them; `takes` may be null.
bool FuseRows(Module& m, int64_t shortest, RowMemberFilter* takes, PassContext& ctx);

}  // namespace kiln
