// Calls of the user's C functions.
#pragma once

#include <vector>

#include "codegen/llvm/ir.h"
#include "compiler/hlo/custom_call.h"

namespace kiln {

// One array that goes in or comes out.
struct CallBuffer {
  llvm::Value* data;
  Shape shape;
};

// Emits the call at the builder's place. `ins`: a table of the operands' pointers, with those of the results behind
// it at `outs`. Returns the code that the function reports (0: well), nullptr for conventions that report none.
llvm::Value* EmitCustomCall(Ir& ir, const CustomCallSignature& signature, const std::vector<CallBuffer>& operands,
                            const std::vector<CallBuffer>& results, bool tuple_result, llvm::Value* ins,
                            llvm::Value* outs);

}  // namespace kiln
