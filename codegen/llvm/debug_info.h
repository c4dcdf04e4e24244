// DWARF for generated code: where each machine instruction comes from, in a text that the user can open.
//
// What: a compile unit for one LLVM module; functions named after operations, and lines for their instructions.
// Guarantees: code is the same with lines as without. Paths are those given, so the bytes do not depend on the machine.
// Cost: what .debug_info and .debug_line take in the object; nothing in a stripped program.
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "codegen/llvm/ir.h"
#include "llvm/IR/DIBuilder.h"

namespace kiln {

// What debuggers are told of an operation.
struct DebugOp {
  std::string label;  // a short identifier
  std::string file;   // empty: none is known
  int64_t line = 0;
};

// Of a program: its operations by the names of their instructions.
struct DebugProgram {
  std::string file;  // that stands for all of it
  absl::flat_hash_map<std::string, DebugOp> ops;

  const DebugOp* Find(const Instruction* i) const {
    const auto it = ops.find(i->name());
    return it == ops.end() ? nullptr : &it->second;
  }
};

class DebugInfo {
 public:
  // `directory` stands before relative paths.
  DebugInfo(llvm::Module& module, const std::string& directory);

  // What instructions belong to from now on.
  void Use(const DebugProgram* program);

  // While it lives, what `ir` emits belongs to one function, on the line of `op` or on the program's first. `name`:
  // what debuggers call it. Without debug information, nothing.
  class Function {
   public:
    Function(Ir& ir, const std::string& name, const Instruction* op);
    Function(const Function&) = delete;
    ~Function();
    // `f` is that function. Helpers that were emitted on the way, those from `first_helper` on, have no lines.
    void Becomes(llvm::Function* f, const llvm::Function* body = nullptr);

   private:
    Ir& ir_;
    llvm::DISubprogram* outer_ = nullptr;
    llvm::DebugLoc saved_;
    size_t functions_before_ = 0;
  };

  // While it lives, instructions have the line of `op`, if one is known.
  class Line {
   public:
    Line(Ir& ir, const Instruction* op);
    Line(const Line&) = delete;
    ~Line();

   private:
    Ir& ir_;
    llvm::DebugLoc saved_;
  };

  // Nothing is added after it.
  void Finish() { builder_.finalize(); }

 private:
  llvm::DIFile* File(const std::string& path) { return builder_.createFile(path, directory_); }
  llvm::DebugLoc At(const DebugOp& op);

  llvm::DIBuilder builder_;
  const std::string directory_;
  llvm::DICompileUnit* unit_ = nullptr;
  const DebugProgram* program_ = nullptr;
  llvm::DISubprogram* scope_ = nullptr;
};

}  // namespace kiln
