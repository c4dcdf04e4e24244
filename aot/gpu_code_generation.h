// From planned GPU programs to the members of an archive.
#pragma once

#include "aot/code_generation.h"
#include "compiler/target/gpu_target.h"

namespace kiln {

// What the runtime must know of a program besides its code.
struct GpuPorts {
  std::vector<int64_t> argument_bytes, result_bytes;
  std::vector<int64_t> result_in_argument;  // the argument that holds it, or -1
  std::vector<int64_t> on_host;             // of arguments, then of results: whether they lie there; empty: none does
  int64_t arena_bytes = 0, host_arena_bytes = 0, weights_bytes = 0;
  bool communicates = false;
  int64_t exchange_bytes = 0;  // the largest exchange with other devices or queues
};

// Machine code for every target, PTX of the newest for devices to come, the entry and the program's description
// (runtime_min/gpu/program.h). Without ptxas there is PTX only. `note` is told what a user should know.
// All programs' kernels are in the same images.
absl::StatusOr<GeneratedCode> GenerateGpuCode(const std::string& library,
                                              const std::vector<ProgramToGenerate>& programs,
                                              const std::vector<GpuTarget>& targets, const std::vector<GpuPorts>& ports,
                                              const CompileOptions& options,
                                              const std::function<void(const std::string&)>& note);

// The program for an emulator: kernels and entry in one object of the host, with the symbols <name>_gpu_entry,
// <name>_emulated and <name>_emulated_groups, a pointer to the kiln_gpu_groups of collectives (null: there are none).
// `checked`: kernels tell the emulator of their accesses.
absl::StatusOr<GeneratedCode> GenerateEmulatedCode(const std::string& library, const ProgramToGenerate& program,
                                                   bool checked, const CompileOptions& options);

// A tuning program's code for the products and convolutions of `subjects`, whose configurations it changes.
struct TunerCode {
  std::vector<std::pair<std::string, std::string>> members;
  int64_t candidates = 0;
  bool calls_cublas = false;
};
absl::StatusOr<TunerCode> GenerateTunerCode(const std::string& name, const std::vector<Instruction*>& subjects,
                                            const GpuTarget& target, const CompileOptions& options,
                                            const std::function<void(const std::string&)>& note);

}  // namespace kiln
