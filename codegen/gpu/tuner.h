// The candidates of every product and convolution that is to be measured on a GPU, and their tables (gpu/tune.h).
#pragma once

#include <string>
#include <vector>

#include "codegen/gpu/entry.h"
#include "compiler/hlo/tuning.h"

namespace kiln::gpu {

struct TuneCandidate {
  int64_t algorithm = 0;
  // kiln's own kernel, by place in the program, and how it is started; a library's routine where there is none.
  std::optional<Program::Start> start;
};

struct TuneSubject {
  const Instruction* instruction = nullptr;
  std::vector<TuneCandidate> candidates;  // the reference first
};

// Every algorithm that may compute each of `subjects` on `target` and is not denied: kernels are emitted into `ir`'s
// module under names that begin with `name`, and added to `program`.
absl::StatusOr<std::vector<TuneSubject>> EmitCandidates(Ir& ir, const GpuTarget& target, const std::string& name,
                                                        const std::vector<Instruction*>& subjects,
                                                        const TuningResults* denied, Program* program);

// Emits <name>_tune_program into a module of the host. `images`: how many forms of the code the library has; all are
// started alike. `tf32`: as RoutineOf.
absl::Status EmitTuneTables(Ir& ir, const std::string& name, const std::string& target, int64_t level, bool tf32,
                            size_t images, const std::vector<TuneSubject>& subjects);

}  // namespace kiln::gpu
