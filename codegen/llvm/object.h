// From LLVM modules to object files: the kernel library, optimisation, machine code, archives.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/llvm/ir.h"
#include "codegen/llvm/sanitizer.h"

namespace kiln {

// Links what the module, whose triple and layout are set, uses of the kernel library, and makes it internal. `fma`: the
// machine has fused multiply-add.
absl::Status LinkKernelLibrary(llvm::Module& module, bool fma);

// Links what the module uses of the kernel library, makes it internal, optimises for the level and returns an ELF
// object. Deterministic. `ir_text`, if given, receives the optimised IR. A module with unwind tables (setUwtable) has
// them, and frame pointers, in all its functions.
absl::StatusOr<std::string> CompileToObject(llvm::Module& module, const CpuLevel& level, Sanitizer sanitizer,
                                            int64_t* text_bytes, std::string* ir_text = nullptr);

// An object with <name>_run(call), which calls <name>_b<batch>_run as the call's first number says, or returns
// `otherwise` for a size of no variant.
absl::StatusOr<std::string> BatchDispatchObject(const std::string& name, const std::vector<int64_t>& batches,
                                                int32_t otherwise);

// Bytes of a block, zeros between and before them.
struct DataPiece {
  size_t offset;
  absl::string_view bytes;
};

// An ELF object with one hidden read-only symbol of 64-byte alignment. `large`: in a section for large data, which
// linkers place beyond the code's 2 GiB; code loads its address then, from <symbol>_at (an AddressObject).
std::string DataObject(const std::string& symbol, const std::vector<DataPiece>& pieces, bool large);

// An object with the hidden constant `name`, the address of the hidden `symbol`.
absl::StatusOr<std::string> AddressObject(const std::string& name, const std::string& symbol);

// An address that constant data holds at byte `at`: of a symbol, or of byte `offset` of the data itself where the
// symbol has no name.
struct DataAddress {
  size_t at;
  std::string symbol;
  size_t offset = 0;
};

// An object with one hidden constant of 16-byte alignment, which linkers place among data that is read-only once
// addresses are known.
absl::StatusOr<std::string> ConstantObject(const std::string& symbol, const std::string& bytes,
                                           const std::vector<DataAddress>& addresses);

// A static library of named members.
absl::StatusOr<std::string> WriteArchive(const std::vector<std::pair<std::string, std::string>>& members);

}  // namespace kiln
