// The host code of a model: its thunks as one function, and the function that picks a CPU level.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/cpu/kernels.h"
#include "compiler/thunk/thunk.h"

namespace kiln::cpu {

struct EntryStats {
  int64_t kernels = 0;
};

// Emits `<name>_entry_<level>(ptr arguments, ptr results, ptr arena, ptr pool) -> i32` and every kernel it calls, each
// distinct kernel once. Constants are read at offsets of `<name>_weights`.
// `threads`: the most that one run uses; 0: as many as its pool has; 1: kernels are called, never split.
// `poison_freed`: the bytes of every arena slice are overwritten after the last thunk of the entry that touches it.
absl::Status EmitEntry(Ir& ir, const std::string& name, const ThunkSequence& thunks,
                       const std::vector<int64_t>& constant_offsets, EntryStats* stats, int threads, bool poison_freed = false);

}  // namespace kiln::cpu
