// Products whose sums are vectors along k, added up across their lanes at the end: of few columns (matmul_few.cc) and
// of few rows (matmul_few_rows.cc).
#pragma once

#include "codegen/cpu/matmul_plan.h"
#include "codegen/llvm/ir.h"

namespace kiln::cpu {

// A mask of the first `live` of so many lanes.
llvm::Constant* FirstLanes(Ir& ir, int64_t lanes, int64_t live);

// x * y + sum in each lane.
llvm::Value* MultiplyAddLanes(Ir& ir, llvm::Value* x, llvm::Value* y, llvm::Value* sum);

// Adds up the lanes of `sum` and stores the result at element `at` of `c`, or adds it to what is there.
void StoreSumOfLanes(Ir& ir, const MatmulShape& shape, llvm::Value* sum, llvm::Value* c, llvm::Value* at);

}  // namespace kiln::cpu
