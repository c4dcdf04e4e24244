// Compiled programs in a process of their own: what running one and running several devices share.
#pragma once

#include <xmmintrin.h>

#include <memory>
#include <string>
#include <vector>

#include "aot/compile.h"
#include "aot/emulator/emulator.h"
#include "aot/tools/runner.h"
#include "compiler/base/temp_folder.h"
#include "runtime_min/abi.h"

namespace kiln {

// Memory that the child writes and the parent reads.
class Shared {
 public:
  explicit Shared(size_t bytes);
  ~Shared();
  absl::Status Mapped() const;
  char* at(size_t k) const { return static_cast<char*>(data_) + k; }

 private:
  const size_t size_;
  void* const data_;
};

using RunFn = int32_t (*)(const kiln_call*);
// The entry of a GPU program that was compiled for the emulator.
using EmulatedFn = int32_t (*)(void* const*, void* const*, void*, const void*, const void*);

// The emulator's kernels flush subnormal numbers, as the GPU's do, if the model does.
class FlushWhileEmulating {
 public:
  FlushWhileEmulating(const CompiledModel& m, bool emulated) : mode_(_mm_getcsr()) {
    constexpr unsigned kFlushAndZero = 0x8040;
    if (emulated && m.flush_subnormals) _mm_setcsr(mode_ | kFlushAndZero);
  }
  ~FlushWhileEmulating() { _mm_setcsr(mode_); }

 private:
  unsigned mode_;
};

// What stands behind the GPU program of a loaded library, if it was compiled for the emulator.
std::unique_ptr<Emulator> EmulatorOf(void* lib, const CompiledModel& m);

// A model with the memory of one run. In the child, which ends where there is no memory.
class Instance {
 public:
  // `arguments` outlive it.
  Instance(const CompiledModel& model, const std::vector<Literal>& arguments);
  // Donated arguments as they were, after a run has overwritten them.
  void Restore();
  int32_t Run(RunFn run, EmulatedFn emulated, Emulator* emulator, const kiln_pool* pool, const kiln_comm* comm);
  void KeepResults(const std::vector<size_t>& offsets, const Shared& shared) const;

 private:
  const CompiledModel& m_;
  const std::vector<Literal>& arguments_;
  std::vector<void*> args_, results_;
  kiln_arena arena_, slow_arena_;  // the second: of a GPU program, its arena on the host
};

// A compiled and linked program.
struct Linked {
  CompiledModel model;
  std::string so;
};
absl::StatusOr<Linked> CompileAndLink(std::unique_ptr<Module> module, const CompileOptions& compile, TempFolder* dir,
                                      const std::string& stem);
// The library; null, with the reason on stderr, if it cannot be loaded.
void* Load(const CompiledModel& m, const std::string& so);

// Where the results of a run lie in the shared memory, behind `total`.
std::vector<size_t> ResultOffsets(const CompiledModel& m, size_t* total);
std::vector<Literal> ReadResults(const CompiledModel& m, const std::vector<size_t>& offsets, const Shared& shared);
// Arguments in the layouts that the ports have.
std::vector<Literal> InMemory(const CompiledModel& m, const std::vector<Literal>& arguments);
absl::Status WaitFor(pid_t pid);

absl::Status CheckBackend(const RunOptions& o, const CompileOptions& compile);
// Options of a compile for this way of running.
CompileOptions For(const RunOptions& run, const CompileOptions& compile);
// Of runs one after the other: the first is left out of all other figures.
void SetTimes(std::vector<double> us, RunResult* out);

}  // namespace kiln
