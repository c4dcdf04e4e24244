// Functions of the kernel library that are called for few of their arguments, where vector code has no short way: they
// are named kiln_rare_*, take and give doubles and have no side effects.
//
// Loops around such a call run in vectors all the same: each function gets a variant for the lanes of the level's
// vectors and a mask, which branches once for all of them and calls it for those of the mask.
#pragma once

#include "codegen/llvm/cpu_level.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"

namespace kiln {

// Before LLVM's passes: adds a variant to each of the module's rare functions.
void AddVariantsOfRareCalls(llvm::Module& m, const CpuLevel& level);
// After them: puts the variants' branches where they are used, and removes the variants.
void InlineVariantsOfRareCalls(llvm::Module& m, llvm::ModuleAnalysisManager& mam);

}  // namespace kiln
