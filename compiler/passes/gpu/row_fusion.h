// Fuses each region of rows that a filter takes: gpu-row-fusion, cpu-row-fusion, cpu-column-fusion and
// triton-softmax-rewriter.
#pragma once

#include <functional>
#include <vector>

#include "compiler/pass/pass.h"
#include "compiler/passes/gpu/row_region.h"

namespace kiln {

constexpr int64_t kShortestGpuRow = 2;

// Whether an instruction may be in a region.
using RowMemberFilter = bool(const Instruction* i, const RowForm& form);

// The forms that a region may have which ends in `root`.
using RowFormsOf = std::vector<RowForm>(const Instruction* root);

// True if the module changed. Regions with a member that `takes` refuses stay as they are, all of them; `takes` may be
// null.
bool FuseRowsOf(Module& m, const std::function<RowFormsOf>& forms, RowMemberFilter* takes, PassContext& ctx);
// The same of rows that lie in one piece, of `shortest` to 16384 elements.
bool FuseRows(Module& m, int64_t shortest, RowMemberFilter* takes, PassContext& ctx);

}  // namespace kiln
