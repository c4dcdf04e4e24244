#include "codegen/llvm/version.h"

#include "llvm/Config/llvm-config.h"

namespace kiln {

const char* LlvmVersion() { return LLVM_VERSION_STRING; }

}  // namespace kiln
