// What LLVM does when it cannot go on.
#pragma once

namespace kiln {

// `out_of_memory` is called where an allocation of LLVM's own fails, `broken` with the reason where LLVM gives up for
// another. Neither may return. Before any other use of LLVM.
void WhenLlvmFails(void (*out_of_memory)(), void (*broken)(const char* reason));

}  // namespace kiln
