// From planned programs to the object files of their kernels and entries, for every CPU level asked for.
//
// A large model is cut into parts, each an LLVM module and an object of its own; parts and levels are compiled in
// parallel. How it is cut depends on the model alone, so that the bytes are the same on every machine.
#pragma once

#include <string>
#include <vector>

#include "aot/compile.h"
#include "aot/debug/op_table.h"
#include "codegen/cpu/entry.h"
#include "codegen/llvm/object.h"

namespace kiln {

struct ProgramToGenerate {
  std::string name;
  const ThunkSequence* thunks;
  const std::vector<int64_t>* constant_offsets;
  int64_t replicas, partitions;
  bool large_weights;            // EntryOptions
  const OpTable* ops = nullptr;  // if code knows them
};

struct GeneratedCode {
  std::vector<std::pair<std::string, std::string>> members;  // of the archive: name, object
  int64_t code_bytes = 0;                                    // machine code of all levels
  int64_t kernels = 0;                                       // of one level
  int64_t gpu_steps = 0;                                     // EntryUse
};

// `library`: the prefix of every symbol that programs share. With a dump directory in the options, the optimised LLVM
// IR is written there.
absl::StatusOr<GeneratedCode> GenerateCode(const std::string& library, const std::vector<ProgramToGenerate>& programs,
                                           const std::vector<CpuLevel>& levels, const CompileOptions& options);

}  // namespace kiln
