// What algorithms of the kernel library are given to call back: functions that are inlined into them, and tables of
// arrays.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "codegen/llvm/ir.h"

namespace kiln {

// An internal function that `fill` gives a body. `name` is put behind that of the current function.
llvm::Function* Callback(Ir& ir, const std::string& name, llvm::Type* result, const std::vector<llvm::Type*>& arguments,
                         const std::function<absl::Status(llvm::Function*)>& fill, absl::Status* status);

// The addresses as an array on the stack.
llvm::Value* TableOf(Ir& ir, const std::vector<llvm::Value*>& addresses);

}  // namespace kiln
