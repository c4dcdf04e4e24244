// The version of LLVM that kiln is linked with.
#pragma once

namespace kiln {

const char* LlvmVersion();

}  // namespace kiln
