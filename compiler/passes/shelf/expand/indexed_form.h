// Gathers and scatters in one plain form: index vectors as the rows of a matrix, windows of full rank.
#pragma once

#include "compiler/hlo/graph_builder.h"

namespace kiln {

// Batching dimensions as indices that count up (iota); nothing changes for an instruction without any. Returns the
// instruction to use instead, which takes the same place.
Instruction* WithoutBatching(Instruction* gather_or_scatter);

// The indices as [n, k]: one index vector a row, in the order of the index dimensions.
Expr IndexRows(Expr indices, int64_t index_vector_dim);

// Updates of a scatter as [n, window...], each window of the operand's rank (inserted dimensions of extent 1).
Expr UpdateRows(const Instruction* scatter, Expr update);
// The window's extents, one for each dimension of the operand.
Ints WindowOf(const Instruction* scatter);

// The result of a gather from its rows [n, window...] of the operand's rank.
Expr FromRows(const Instruction* gather, Expr rows);

}  // namespace kiln
