// Panels of B as the dot instructions take them, and what packing in registers needs.
#pragma once

#include <vector>

#include "codegen/cpu/matmul_plan.h"
#include "codegen/llvm/ir.h"

namespace kiln::cpu {

// `rows` as columns: as many vectors as each has elements, a power of two.
std::vector<llvm::Value*> Transposed(llvm::IRBuilder<>& b, std::vector<llvm::Value*> rows);

// Whether a vector of `type` becomes one of `compute` in a few instructions: the same type, or 8-bit integers, bf16 or
// f16 as f32.
bool HasVectorsAs(const CpuLevel& level, PrimitiveType type, PrimitiveType compute);

// A vector of such a type, as it lies in memory, as one of `compute`.
llvm::Value* AsComputed(Ir& ir, PrimitiveType type, PrimitiveType compute, llvm::Value* v);

// The same of the `lanes` elements that lie at `address`.
llvm::Value* LoadComputed(Ir& ir, PrimitiveType type, PrimitiveType compute, int64_t lanes, llvm::Value* address);

// Stack for the panels of a product, at least `bytes` bytes: the same for all products of a function, one at a time.
llvm::Value* PanelStack(Ir& ir, int64_t bytes);

// The bits of a part of `x`, F16 as f32 or a vector of them, as a bf16 has them (i16).
llvm::Value* BitsOfPart(Ir& ir, llvm::Value* x, PartOfB part);

// Where columns of B go: `width` words are a row of a panel, and each `width` columns are a panel of their own,
// `distance` words behind the one before; 0: there is one.
struct PanelPlace {
  llvm::Value* panel;
  int64_t width, distance;
};

// Copies the rows of B that `block` takes, from row `k` on, and `columns` columns from `column` to panels, for a
// product that is held in groups. Word j of a panel's row has the elements of column j of as many rows as a group has,
// zeros after the last row of a run. Words past `columns` are not defined.
void PackGroups(Ir& ir, const MatmulShape& shape, const SumBlock& block, llvm::Value* b_array, llvm::Value* k,
                llvm::Value* column, int64_t columns, const PanelPlace& to);

// The same for a B of complex numbers (MatmulShape): `depth` rows of the product from row `k` on, zeros past `columns`.
// `k`, `column`, `depth` and `columns` are even.
void PackComplex(Ir& ir, const MatmulShape& shape, int64_t depth, llvm::Value* b_array, llvm::Value* k,
                 llvm::Value* column, int64_t columns, llvm::Value* panel, int64_t width);

}  // namespace kiln::cpu
