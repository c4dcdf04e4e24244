// Vectors whose lanes come from places apart, without the instruction for it: that takes AMD's cores two to three times
// as long as loads that are put together, and as much on Intel's before Sapphire Rapids, whose microcode waits so that
// gathers leak nothing. On the others both take about the same.
//
// What: a gather becomes a load for each lane; it stays where lanes may be anywhere in an array larger than the second
//   cache, of which more are on their way at a time then. Lanes a few elements apart are picked from registers that are
//   loaded whole. Neighbours in short rows are read and written a row at a time (short_rows.h). Elements of a short
//   table that nothing writes are picked among registers, which the kernel fills once.
// Guarantees: the same lanes, and nothing is read besides. Gathers under a mask that is computed stay.
#pragma once

#include "codegen/llvm/cpu_level.h"
#include "llvm/IR/Instructions.h"

namespace kiln {

// Says of an array's address that so many bytes lie there, which nothing writes while the function runs.
void MarkArray(llvm::LoadInst* address, int64_t bytes);

// Whether such an array lies there.
bool IsConstantArray(const llvm::Value* address);

// Whether elements of short tables are picked among registers at that level.
bool PicksFromTables(const CpuLevel& level);

// How many bytes lie there, if it is an array so marked that fits a few registers; 0 otherwise.
int64_t BytesOfShortTable(const llvm::Value* address);

// After LLVM's passes, which know what a gather costs and make vectors of loops with one.
void RewriteGathers(llvm::Function& f, const CpuLevel& level);

}  // namespace kiln
