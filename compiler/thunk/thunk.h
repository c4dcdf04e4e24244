// The steps of a run, with every read and write named.
//
// What: a scheduled, buffer-assigned module as a list of thunks: kernels, copies, loops, branches, calls to the user's
//   functions. Code generation lowers the list to straight host code; nothing of it is interpreted at run time.
// Guarantees: slices are final; order is the schedule's; values that only pass on (tuples, bitcasts) have no thunk.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/plan/buffer_assignment.h"

namespace kiln {

enum class ThunkKind {
#define THUNK(e, ...) e,
#include "compiler/thunk/thunks.def"
};

struct Thunk {
  ThunkKind kind;
  const Instruction* instruction = nullptr;
  std::vector<Slice> reads, writes;
  // Arena bytes used only while the thunk runs; size 0: none.
  Slice scratch;
  // While: condition, body. Conditional: the branches.
  std::vector<std::vector<Thunk>> nested;
  // While: the condition's result. Conditional: the index.
  Slice predicate;
};

using ThunkSequence = std::vector<Thunk>;

absl::StatusOr<ThunkSequence> BuildThunks(const Module& module, const Schedule& schedule,
                                          const BufferAssignment& buffers);
// One line a thunk, nested ones indented.
std::string ToText(const ThunkSequence& thunks, int indent = 0);
int64_t CountThunks(const ThunkSequence& thunks);
// Some thunk exchanges data with other devices or with the host program.
bool Communicates(const ThunkSequence& thunks);
// The most bytes that one of those reads and writes: of a gather, its block and all blocks; of a queue, one array.
// Without `gathers`, of queues alone.
int64_t LargestExchange(const ThunkSequence& thunks, bool gathers = true);

}  // namespace kiln
