// What a thread has of a line that several share: elements slot, slot + step, ...
//
// Memory answers after some hundred cycles. A thread therefore asks for several elements before it uses the first,
// which an array's loads allow that no store comes between.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "codegen/llvm/ir.h"
#include "compiler/hlo/instruction.h"

namespace kiln::gpu {

// The first elements of the line of `length` that the thread has, up to `together`. There are at least `step` elements.
std::vector<llvm::Value*> FirstShares(Ir& ir, llvm::Value* slot, int64_t step, int64_t length, int64_t together);

// Calls `visit` with elements of the line, up to `together` at a time, in order; the thread's first `skip` are left
// out.
absl::Status EachShare(Ir& ir, llvm::Value* slot, int64_t skip, int64_t step, int64_t length, int64_t together,
                       const std::function<absl::Status(const std::vector<llvm::Value*>&)>& visit);

// How many elements at a time are worth their code, where `computed` make each.
int64_t SharesTogether(const std::vector<const Instruction*>& computed);

}  // namespace kiln::gpu
