// LLVM's machines for code generation.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "llvm/Target/TargetMachine.h"

namespace kiln {

// A machine of `triple`, whose target is initialised already. Sums of products may fuse; code is position independent.
std::unique_ptr<llvm::TargetMachine> MakeTargetMachine(const char* triple, const std::string& cpu,
                                                       const std::string& features, llvm::CodeGenOptLevel level,
                                                       std::optional<llvm::CodeModel::Model> model);

}  // namespace kiln
