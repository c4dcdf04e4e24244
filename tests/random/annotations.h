// What programs carry besides operations: layouts, control edges and shardings, on random modules; and whether a pass
// kept them.
#pragma once

#include "absl/status/status.h"
#include "compiler/hlo/instruction.h"

namespace kiln {

struct Annotations {
  bool layouts = false;
  bool control_edges = false;
  bool shardings = false;
};

// Adds random annotations of the kinds asked for to the entry and to loop bodies and branches. The module computes what
// it did. The same for the same seed on every machine.
void Annotate(Module* m, uint64_t seed, const Annotations& which);

// An error if a pass that made `after` of `before` lost the order that control edges ask for: instructions that both
// modules have, and what stands in the place of one in a tuple, are compared. Edges within a fusion are gone by right.
// `first_new`: the id from which on instructions of `after` are the pass's own, whatever name they took over.
absl::Status CheckControlEdgesKept(const Module& before, const Module& after, int64_t first_new);

// The same for shardings of instructions that stayed and kept their shape.
absl::Status CheckShardingsKept(const Module& before, const Module& after, int64_t first_new);

}  // namespace kiln
