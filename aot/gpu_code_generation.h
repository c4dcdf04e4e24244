// From planned GPU programs to the members of an archive.
#pragma once

#include "aot/code_generation.h"

namespace kiln {

// The program for an emulator: kernels and entry in one object of the host, with the symbols <name>_gpu_entry and
// <name>_emulated. `checked`: kernels tell the emulator of their accesses.
absl::StatusOr<GeneratedCode> GenerateEmulatedCode(const std::string& library, const ProgramToGenerate& program,
                                                   bool checked, const CompileOptions& options);

}  // namespace kiln
