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

struct EntryOptions {
  std::string library;        // whose weights and runtime the entry uses
  int threads = 0;            // the most that one run uses; 0: as many as its pool has; 1: kernels are never split
  bool poison_freed = false;  // overwrite the bytes of every arena slice after the last thunk that touches it
  int64_t replicas = 1, partitions = 1;
};

// Emits `<name>_entry_<level>(ptr arguments, ptr results, ptr arena, ptr pool, ptr comm) -> i32` and every kernel it
// calls, each distinct kernel once. Constants are read at offsets of
// `<library>_weights`.
absl::Status EmitEntry(Ir& ir, const std::string& name, const ThunkSequence& thunks,
                       const std::vector<int64_t>& constant_offsets, const EntryOptions& options, EntryStats* stats);

}  // namespace kiln::cpu
