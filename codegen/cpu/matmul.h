// Blocked, vectorised matrix product: the engine under dot and convolution.
//
// Computes C[m, n] = sum over k of A[m, k] * B[k, n] for one block of rows. A is read in place, row by row: element
// (m, k) lies at a + m * a_stride + position(k), where k runs over nested segments (the taps of a convolution) with a
// contiguous run innermost. B is packed panel by panel into stack memory, or read in place where that is as good.
// All extents are constants of the program, so tails are kernels of their own and addresses fold.
#pragma once

#include <functional>

#include "codegen/cpu/matmul_plan.h"
#include "codegen/llvm/ir.h"

namespace kiln::cpu {

// A group of row ranges that share one pass over B: `a` and `c` point at the first row of each range.
struct RowRange {
  llvm::Value *a, *c;
};
using RowRanges = std::function<RowRange(llvm::Value*)>;

// `ranges` yields the i-th of `count` row ranges, each of `rows` rows (a constant).
void EmitMatmul(Ir& ir, const MatmulShape& shape, int64_t rows, llvm::Value* b, llvm::Value* count,
                const RowRanges& ranges);

// The same by tile products (AMX), as `plan` says: B is made into panels for many tiles, then rows of A take them in
// turn.
void EmitTileProducts(Ir& ir, const MatmulShape& shape, const MatmulPlan& plan, int64_t rows, llvm::Value* b,
                      llvm::Value* count, const RowRanges& ranges);

// The same by vectors along k, for products to which FewColumnsApply.
void EmitFewColumns(Ir& ir, const MatmulShape& shape, int64_t rows, llvm::Value* b, llvm::Value* count,
                    const RowRanges& ranges);

// The same for the rows of one range, for products to which FewRowsApply.
void EmitFewRows(Ir& ir, const MatmulShape& shape, int64_t rows, llvm::Value* b, const RowRange& range);

// The same for products to which FewLinesApply.
void EmitFewLines(Ir& ir, const MatmulShape& shape, int64_t rows, llvm::Value* b, const RowRange& range);

// A unit as one of `parts` of a whole. What a whole needs first (a slab) is not there yet for its first part, nor for
// the first unit of a range that begins with another: `fresh`, or null where each unit is a whole.
struct PartOfUnit {
  llvm::Value *part, *whole, *fresh;
};
PartOfUnit SplitUnit(Ir& ir, llvm::Value* unit, llvm::Value* first_unit, int64_t parts);
// Emits `prepare` for units that are fresh.
void PrepareWhole(Ir& ir, const PartOfUnit& unit, const std::function<void()>& prepare);

// Visits piece `k` by its first element and its size, a constant: the last one has code of its own if it is smaller.
void VisitPiece(Ir& ir, const Pieces& pieces, llvm::Value* k,
                const std::function<void(llvm::Value* first, int64_t size)>& visit);

}  // namespace kiln::cpu
